"""Checks of what a user passes in; the only file that uses scikit-learn's private helpers."""

from __future__ import annotations

import copy
import functools
import inspect
import math
import sys
from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import (
    _check_sample_weight,
    _is_arraylike_not_scalar,
    check_array,
    validate_data,
)

if TYPE_CHECKING:
    import torch

__all__ = [
    "PARAMETER_CONSTRAINTS",
    "Data",
    "Weights",
    "check_centers",
    "check_fit_data",
    "check_parameters",
    "check_query_data",
    "check_weights",
    "fit_context",
    "is_array",
]

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
_FEATURE_ATTRIBUTES = ("n_features_in_", "feature_names_in_")
_PLAIN_TYPES = (np.dtype(np.float32), np.dtype(np.float64))
_SAFE_EXPONENT = 256  # so much may the weights add to the squares of coordinates in their frame

Data = Any  # ndarray, CSR array or matrix, or CUDA Tensor, of float32 or float64


def check_parameters(estimator: Any) -> None:
    """Validate the parameters of an estimator; those that are left at their defaults are known to be good."""
    given = {
        name: value
        for name, default in _defaults(type(estimator).__init__).items()
        if (value := getattr(estimator, name)) is not default
    }
    validate_parameter_constraints(estimator._parameter_constraints, given, type(estimator).__name__)


@functools.cache
def _defaults(init: Callable[..., None]) -> dict[str, Any]:
    """Return the parameters of an `__init__` in the order in which they are validated."""
    named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    _, *parameters = inspect.signature(init).parameters.values()
    return {p.name: p.default for p in sorted(parameters, key=lambda p: p.name) if p.kind in named}


def check_fit_data(estimator: Any, X: Any, device: torch.device) -> tuple[Data, dict[str, Any]]:
    """Validate samples of a fit, and find the attributes that tell the number and the names of features.

    The estimator itself stays as it is, for a fit that fails or is interrupted. Else as `check_query_data`.
    """
    if _is_plain(X):
        return X, {"n_features_in_": X.shape[1]}
    checked = copy.copy(estimator)
    X = _check_data(checked, X, reset=True, device=device)
    return X, {name: vars(checked)[name] for name in _FEATURE_ATTRIBUTES if name in vars(checked)}


def check_query_data(estimator: Any, X: Any, device: torch.device) -> Data:
    """Validate samples of any kind, without a copy where the kind allows.

    Parameters
    ----------
    estimator : estimator
        A fitted one; gives messages their name, and holds the number and the names of features.
    X : array-like, sparse matrix, data frame or Tensor of shape (n_samples, n_features)
    device : torch.device
        A tensor that lies there is kept there.

    Returns
    -------
    X : ndarray, CSR array or matrix, or CUDA Tensor, of float32 or float64
        A CSR result has no duplicate entries.
    """
    fitted = [getattr(estimator, name, None) for name in _FEATURE_ATTRIBUTES]
    if fitted[1] is None and _is_plain(X) and X.shape[1] == fitted[0]:
        return X
    return _check_data(estimator, X, reset=False, device=device)


def _is_plain(X: Any) -> bool:
    """Tell whether X is an array that scikit-learn's checks, which take long, neither refuse nor change."""
    if type(X) is not np.ndarray or X.ndim != 2 or X.size == 0 or X.dtype not in _PLAIN_TYPES:
        return False
    with np.errstate(over="ignore", invalid="ignore"):  # may be so though all is finite
        return math.isfinite(X.sum())


def _check_data(estimator: Any, X: Any, *, reset: bool, device: torch.device) -> Data:
    """Let scikit-learn validate samples, which may be a tensor, too."""
    on_device = None
    if _is_tensor(X):
        X = _plain_tensor(X)
        if X.device == device and X.device.type == "cuda" and not X.is_complex():
            on_device, X = X, _stand_in(X)
        else:
            X = X.numpy(force=True)
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
    if X.dtype not in _PLAIN_TYPES:  # those of a data frame may be of the other byte order
        X = X.astype(X.dtype.newbyteorder("="))
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _is_tensor(X: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def _plain_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """Return a detached tensor of float32 or float64, or a complex one, which NumPy's check refuses."""
    import torch

    if tensor.layout != torch.strided:
        raise ValueError(f"A dense tensor or a SciPy sparse array was expected, got layout {tensor.layout}.")
    plain = tensor.detach().resolve_neg()
    kept = plain.is_complex() or plain.dtype in (torch.float32, torch.float64)
    return plain if kept else plain.double()


def _stand_in(X: torch.Tensor) -> np.ndarray:
    """Return an array of X's shape that fails validation exactly where X on its device would."""
    import torch

    total = float(X.sum(dtype=torch.float64)) if X.numel() else 0.0
    value = 0.0
    if not np.isfinite(total):
        value = np.nan if bool(X.isnan().any()) else (0.0 if bool(X.isfinite().all()) else np.inf)
    return np.broadcast_to(np.float64(value), tuple(X.shape))


class Weights(NamedTuple):
    """Sample weights, divided by a power of two where their sums would leave the range of floats."""

    values: np.ndarray | None  # (n_samples,), float64; None for weights of 1
    exponent: int  # the weights are `values` times 2**exponent


def check_weights(sample_weight: Any, X: Any) -> Weights:
    """Validate sample weights.

    Raises
    ------
    ValueError
        If they are not one finite number >= 0 a sample, or all are 0.
    """
    if sample_weight is None:
        return Weights(None, 0)
    if _is_tensor(sample_weight):
        sample_weight = _plain_tensor(sample_weight).numpy(force=True)
    like = X if isinstance(X, np.ndarray) or sp.issparse(X) else np.broadcast_to(0.0, tuple(X.shape))
    weights = _check_sample_weight(sample_weight, like, dtype=np.float64)
    if weights.min() < 0:
        raise ValueError(f"`sample_weight` should have no negative entries, got {weights.min()}.")
    if weights.max() == 0:
        raise ValueError("Sample weights must contain at least one non-zero number.")
    exponent = int(np.frexp(weights.max())[1])
    if abs(exponent) <= _SAFE_EXPONENT:
        return Weights(weights, 0)
    exponent -= _SAFE_EXPONENT
    scaled = np.ldexp(weights, -exponent)
    # Beside the largest, such weights count for nothing; alone in a cluster they need their digits.
    scaled[weights > 0] = np.maximum(scaled[weights > 0], 2.0**-700)
    return Weights(scaled, exponent)


def check_centers(centers: Any, dtype: np.dtype, n_clusters: int, n_features: int) -> np.ndarray:
    """Validate initial centers of shape (n_clusters, n_features)."""
    if _is_tensor(centers):
        centers = _plain_tensor(centers).numpy(force=True)
    if not (_is_plain(centers) and centers.dtype == dtype):
        with np.errstate(over="ignore", invalid="ignore"):  # what the data's type cannot hold is refused
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
