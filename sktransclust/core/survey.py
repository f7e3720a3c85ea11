"""The extent of each feature of dense data on the host: its mean, its least and its largest value."""

from __future__ import annotations

from typing import Any

import numpy as np

from .library import Crew, Problem, checked, instruction_sets
from .threads import n_threads, ordered_map

Extent = tuple[np.ndarray, np.ndarray, np.ndarray]

_BLOCK_ELEMENTS = 2**20  # read at once
_MAX_CHUNKS = 64
_CHUNK_ELEMENTS = 2**18  # of a chunk at least


def extent_of(X: np.ndarray) -> Extent:
    """Return the mean, the least and the largest value of each feature: float64, shape (n_features,) each.

    Rounding may carry the mean past the largest float; `frame_of` clips it to the data.
    """
    if instruction_sets() and not any(stride % X.itemsize for stride in X.strides):
        total, low, high = _compiled_survey(X)
        if np.isfinite(total).all():
            return total / len(X), low, high
    return plain_extent_of(X)


def _compiled_survey(X: np.ndarray) -> np.ndarray:
    """Return the sum, the least and the largest value of each feature: float64, shape (3, n_features)."""
    n_samples, n_features = X.shape
    row_stride, column_stride = (stride // X.itemsize for stride in X.strides)
    problem = Problem(
        n_samples=n_samples,
        values=X.ctypes.data,
        row_stride=row_stride,
        column_stride=column_stride,
        n_features=n_features,
    )
    rows = max(_CHUNK_ELEMENTS // n_features, -(-n_samples // _MAX_CHUNKS), 1)
    *_, fastest = instruction_sets().values()
    found = np.empty((3, n_features))
    kind = 0 if X.dtype == np.float32 else 1
    checked(fastest.survey(kind, problem, Crew(rows, n_threads()), found.ctypes.data))
    return found


def plain_extent_of(X: np.ndarray) -> Extent:
    """Do the same in NumPy."""

    def look_through(block: tuple[int, int]) -> Extent:
        rows = X[slice(*block)]
        low, high = _over_rows(np.minimum, rows), _over_rows(np.maximum, rows)
        return _mean(rows) * (len(rows) / len(X)), low, high

    means, lows, highs = zip(*ordered_map(look_through, blocks(*X.shape)), strict=True)
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    return np.sum(means, axis=0), low.astype(np.float64), high.astype(np.float64)


def blocks(n_samples: int, n_features: int) -> list[tuple[int, int]]:
    """Divide rows into ranges of a bounded number of elements."""
    rows = max(1, _BLOCK_ELEMENTS // n_features)
    return [(start, min(start + rows, n_samples)) for start in range(0, n_samples, rows)]


def _over_rows(ufunc: np.ufunc, rows: np.ndarray, **dtype: Any) -> np.ndarray:
    """Reduce rows to one; short ones that lie in one piece side by side first, for NumPy is slow at them."""
    n_features = rows.shape[1]
    beside = max(1, 1024 // n_features)
    whole = len(rows) // beside * beside
    if beside > 1 and whole and rows.flags.c_contiguous:
        wide = ufunc.reduce(rows[:whole].reshape(-1, beside * n_features), axis=0, **dtype)
        rows = np.concatenate([wide.reshape(beside, n_features), rows[whole:]])
    return ufunc.reduce(rows, axis=0, **dtype)


def _mean(rows: np.ndarray) -> np.ndarray:
    """Return the mean of rows in float64; dividing first where their sum would overflow."""
    with np.errstate(over="ignore"):
        mean = _over_rows(np.add, rows, dtype=np.float64) / len(rows)
        if not np.isfinite(mean).all():
            mean = (rows / len(rows)).sum(0, dtype=np.float64)
    return mean
