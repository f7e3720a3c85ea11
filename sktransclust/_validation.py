"""Checks of what a user passes in; the only file that uses scikit-learn's private helpers."""

from __future__ import annotations

import sys
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import (
    _check_sample_weight,
    _is_arraylike_not_scalar,
    check_array,
    validate_data,
)

if TYPE_CHECKING:
    import torch

__all__ = ["PARAMETER_CONSTRAINTS", "check_centers", "check_data", "check_weights", "fit_context", "is_array"]

PARAMETER_CONSTRAINTS: dict[str, list[Any]] = {
    "n_clusters": [Interval(Integral, 1, None, closed="left")],
    "init": [StrOptions({"k-means++", "random"}), callable, "array-like"],
    "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "verbose": ["verbose"],
    "random_state": ["random_state"],
    "copy_x": ["boolean"],
    "algorithm": [StrOptions({"lloyd", "elkan"})],
    # a name, a path or a network
    "weights": [str, HasMethods(["__fspath__"]), HasMethods(["step", "decode_labels"])],
    "embedding": [StrOptions({"binary", "onehot"})],
    "n_steps": [Interval(Integral, 0, None, closed="left")],
    # torch.device, without importing torch, is what enters a context
    "device": [str, HasMethods(["__enter__", "__exit__"])],
    "backend": [StrOptions({"auto", "compiled", "dense", "streamed"})],
}

is_array = _is_arraylike_not_scalar


def check_data(
    estimator: Any, X: Any, *, reset: bool, device: torch.device | None = None
) -> np.ndarray | sp.csr_array | sp.csr_matrix | torch.Tensor:
    """Validate samples of any kind, without a copy where the kind allows.

    Parameters
    ----------
    estimator : estimator
        Gives messages their name, and holds the number and the names of features.
    X : array-like, sparse matrix, data frame or Tensor of shape (n_samples, n_features)
    reset : bool
        Whether to remember the number and the names of features (fit) or to compare (all others).
    device : torch.device, optional
        A tensor that lies there is kept there.

    Returns
    -------
    X : ndarray, CSR array or matrix, or CUDA Tensor, of float32 or float64
        A CSR result has no duplicate entries.
    """
    on_device = None
    if _is_tensor(X):
        X = X.detach()
        if X.dtype not in _torch_floats():
            X = X.double()
        if X.device == device and X.device.type == "cuda":
            on_device, X = X, _stand_in(X)
        else:
            X = X.cpu().numpy()
    with np.errstate(over="ignore", invalid="ignore"):  # the sum by which finiteness is checked first
        X = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            accept_large_sparse=True,
        )
    if on_device is not None:
        return on_device
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _is_tensor(X: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def _torch_floats() -> tuple[Any, Any]:
    import torch

    return torch.float32, torch.float64


def _stand_in(X: torch.Tensor) -> np.ndarray:
    """Return an array of X's shape that fails validation exactly where X on its device would."""
    total = float(X.sum(dtype=_torch_floats()[1])) if X.numel() else 0.0
    value = 0.0
    if not np.isfinite(total):
        value = np.nan if bool(X.isnan().any()) else (0.0 if bool(X.isfinite().all()) else np.inf)
    return np.broadcast_to(np.float64(value), tuple(X.shape))


def check_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Validate sample weights.

    Returns
    -------
    sample_weight : ndarray of shape (n_samples,), float64, or None if they are None

    Raises
    ------
    ValueError
        If they are not one finite number >= 0 a sample, or all are 0.
    """
    if sample_weight is None:
        return None
    if _is_tensor(sample_weight):
        sample_weight = sample_weight.detach().cpu().double().numpy()
    like = X if isinstance(X, np.ndarray) or sp.issparse(X) else np.broadcast_to(0.0, tuple(X.shape))
    weights = _check_sample_weight(sample_weight, like, dtype=np.float64)
    if weights.min() < 0:
        raise ValueError(f"`sample_weight` should have no negative entries, got {weights.min()}.")
    if weights.max() == 0:
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weights


def check_centers(centers: Any, dtype: np.dtype, n_clusters: int, n_features: int) -> np.ndarray:
    """Validate initial centers of shape (n_clusters, n_features)."""
    centers = check_array(centers, dtype=dtype)
    if centers.shape[0] != n_clusters:
        raise ValueError(
            f"The shape of the initial centers {centers.shape} does not "
            f"match the number of clusters {n_clusters}."
        )
    if centers.shape[1] != n_features:
        raise ValueError(
            f"The shape of the initial centers {centers.shape} does not "
            f"match the number of features of the data {n_features}."
        )
    return centers
