"""What the machine can do at best, measured in the same run: the denominators of the shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

_SIDE = {"float32": 1536, "float64": 1024}  # of the square matrices
_COPY_BYTES = 2**27


@dataclass(frozen=True)
class Limits:
    """Rates of the machine, on as many threads as the benchmark uses."""

    flops: dict[str, float]  # of a matrix product, a second, by dtype
    bytes: float  # read or written by a copy, a second

    def seconds_per_iteration(self, X: np.ndarray | sp.csr_array, n_clusters: int) -> float:
        """Return the time for all scores, or for reading X (n_samples, n_features) once, at these rates."""
        entries = X.size  # of sparse data, what is stored
        return max(
            2.0 * entries * n_clusters / self.flops[str(X.dtype)], entries * X.dtype.itemsize / self.bytes
        )


def measure_limits(clock: Callable[[], float], repeat: int) -> Limits:
    """Measure matrix products and copies with NumPy; the best of `repeat`."""
    flops = {}
    for dtype, side in _SIDE.items():
        a = np.ones((side, side), dtype)
        flops[dtype] = 2.0 * side**3 / _fastest(lambda a=a: a @ a, clock, repeat)  # type: ignore[misc]
    source = np.ones(_COPY_BYTES // 8)
    target = np.ones_like(source)
    return Limits(flops, 2.0 * _COPY_BYTES / _fastest(lambda: np.copyto(target, source), clock, repeat))


def _fastest(work: Callable[[], object], clock: Callable[[], float], repeat: int) -> float:
    return min(seconds(work, clock) for _ in range(repeat + 1))


def seconds(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return how long a call takes."""
    start = clock()
    work()
    return max(clock() - start, 1e-9)
