"""From validated data to a core: frames, samples, backend and device."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import scipy.sparse as sp
import torch

from ._dense import DenseNetwork
from ._validation import Data
from .core.compiled import CompiledCore, instruction_sets
from .core.compiled_csr import CompiledCSRCore
from .core.csr_samples import CSRSamples
from .core.dense_samples import DenseSamples
from .core.frame import Frame, frame_of, safe_exponent
from .core.streamed import StreamedCore
from .core.survey import blocks, extent_of

_FEW_CENTERS = 2**12  # numbers; more are no longer quick to compare


def fit_core(
    X: Data,
    sample_weight: np.ndarray | None,
    device: torch.device,
    backend: str,
    embedding: str,
    n_clusters: int,
) -> StreamedCore:
    """Return the core of a fit: its frame lies at the mean of the data."""
    frame = data_frame(X)
    samples = _samples(X, frame, frame, device)
    return _core(samples, sample_weight, backend, embedding, n_clusters)


def query_core(
    X: Data,
    centers: np.ndarray,
    sample_weight: np.ndarray | None,
    device: torch.device,
    backend: str,
    embedding: str,
) -> tuple[StreamedCore, np.ndarray]:
    """Return a core for fitted centers, and the centers in its reference frame.

    Its frames come from the centers alone, so that a sample's answer does not depend on the
    other samples.
    """
    centers = np.ascontiguousarray(centers, np.float64)
    asked = _dtype_of(X), sp.issparse(X)
    if centers.size <= _FEW_CENTERS:
        dtype, score, reference = _kept_frames(centers.tobytes(), centers.shape[1], *asked)
    else:
        dtype, score, reference = _query_frames(centers, *asked)
    if dtype != asked[0]:
        X = X.double() if isinstance(X, torch.Tensor) else X.astype(dtype)
    samples = _samples(X, score, reference, device)
    return _core(samples, sample_weight, backend, embedding, len(centers)), reference.to_local(centers)


def _query_frames(centers: np.ndarray, dtype: np.dtype, sparse: bool) -> tuple[np.dtype, Frame, Frame]:
    """Return the type of a query's samples, their score frame and their reference frame."""
    sizes = np.abs(centers)
    if sizes.max() > np.finfo(dtype).max:  # far beyond what float32 data can hold
        dtype = np.dtype(np.float64)
    reference = Frame(None, safe_exponent(sizes, np.dtype(np.float64)))
    score = Frame(None, safe_exponent(sizes, dtype)) if sparse else frame_of(*extent_of(centers), dtype)
    return dtype, score, reference


@functools.lru_cache(maxsize=32)
def _kept_frames(
    centers: bytes, n_features: int, dtype: np.dtype, sparse: bool
) -> tuple[np.dtype, Frame, Frame]:
    """Do the same; kept for some models, since a small prediction takes half as long again without."""
    return _query_frames(np.frombuffer(centers).reshape(-1, n_features), dtype, sparse)


def answer(
    core: StreamedCore,
    X: Data,
    centers: np.ndarray,
    labels: torch.Tensor,
    exponent: int,
    backend: str,
    embedding: str,
) -> tuple[np.ndarray, float]:
    """Return the labels and the inertia that a query finds for a fit's centers, now that they are rounded.

    `labels`, of the last iteration, may be written over. Where the fit's frame keeps the centers as they
    are, distances in it are those of the query, bit for bit, so that the core of the fit can answer. The
    inertia is in units of the data; the core's weights count times ``2**exponent``.
    """
    local = centers.astype(np.float64)
    if core.samples.reference_frame.is_exact_for(local):
        local = core.samples.reference_frame.to_local(local)
        labels = core.assign_again(local, labels)
    else:
        weight = None if core.sample_weight is None else core.sample_weight.cpu().numpy()
        core, local = query_core(X, centers, weight, core.samples.device, backend, embedding)
        labels = core.assign(local)
    inertia = core.samples.reference_frame.squared_to_data(core.inertia(local, labels), exponent)
    return labels.cpu().numpy(), inertia


def _core(
    samples: DenseSamples | CSRSamples,
    sample_weight: np.ndarray | None,
    backend: str,
    embedding: str,
    n_clusters: int,
) -> StreamedCore:
    weight = None if sample_weight is None else torch.tensor(sample_weight, device=samples.device)
    if backend == "dense":
        return DenseNetwork(samples, weight, n_clusters, embedding)
    if backend == "streamed":
        return StreamedCore(samples, weight)
    obstacle = ""
    if not instruction_sets():
        obstacle = "the package was installed without a C++ compiler"
    elif samples.device.type != "cpu":
        obstacle = "it takes data on the CPU alone"
    else:
        return (CompiledCSRCore if isinstance(samples, CSRSamples) else CompiledCore)(samples, weight)
    if backend == "compiled":
        raise ValueError(
            f"backend='compiled' cannot run: {obstacle}. Available here are 'streamed' and 'dense', "
            "and 'auto', which chooses 'streamed'."
        )
    return StreamedCore(samples, weight)


def _samples(X: Data, score: Frame, reference: Frame, device: torch.device) -> DenseSamples | CSRSamples:
    if sp.issparse(X):
        return CSRSamples(X.data, X.indices, X.indptr, X.shape[1], score, reference, device)
    return DenseSamples(_on_device(X, device), score, reference, device)


def _on_device(X: np.ndarray | torch.Tensor, device: torch.device) -> np.ndarray | torch.Tensor:
    """Move dense data to a GPU as a whole, or leave them on the host if they do not fit there."""
    if isinstance(X, torch.Tensor) or device.type == "cpu":
        return X
    try:
        moved = torch.empty(X.shape, dtype=torch.from_numpy(X[:0].copy()).dtype, device=device)
    except torch.cuda.OutOfMemoryError:
        warnings.warn(
            f"X does not fit into the memory of {device}; it is read from the host, tile by tile.",
            RuntimeWarning,
            stacklevel=2,
        )
        return X
    for start, stop in blocks(*X.shape):
        moved[start:stop] = torch.from_numpy(X[start:stop].copy())
    return moved


def data_frame(X: Data) -> Frame:
    """Return the frame at the mean of the data."""
    dtype = _dtype_of(X)
    if sp.issparse(X):
        return Frame(None, safe_exponent(np.abs(X.data), dtype))
    if isinstance(X, torch.Tensor):
        mean, low, high = X.mean(0, dtype=torch.float64), X.amin(0).double(), X.amax(0).double()
        return frame_of(mean.cpu().numpy(), low.cpu().numpy(), high.cpu().numpy(), dtype)

    return frame_of(*extent_of(X), dtype)


def _dtype_of(X: Data) -> np.dtype:
    return X.dtype if isinstance(X.dtype, np.dtype) else np.dtype(str(X.dtype).removeprefix("torch."))


def is_same_clustering(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Tell whether labels `a` and `b`, of shape (n_samples,), differ only in the names of the clusters."""
    first, second = a.long(), b.long()
    n_pairs = len(torch.unique(first * (int(second.max()) + 1) + second))
    return n_pairs == len(torch.unique(first)) == len(torch.unique(second))
