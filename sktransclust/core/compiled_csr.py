"""The compiled attention of sparse samples (sparse.h)."""

from __future__ import annotations

import numpy as np
import torch

from .compiled import CompiledCore
from .csr_samples import CSRSamples
from .library import SPARSE_POINTS
from .seeding import Seeding
from .streamed import Ranges, StreamedCore


class CompiledCSRCore(CompiledCore):
    """Hard attention of sparse samples on a CPU, by compiled kernels.

    Parameters
    ----------
    samples : CSRSamples
        In the memory of the host.
    sample_weight : Tensor of shape (n_samples,), float64, or None
    instruction_set : str, optional
        One of `instruction_sets()`, by default the last.
    """

    keeps_bounds = False  # an entry costs little more than to read it
    samples: CSRSamples

    def squares_chunk(
        self, tiles: Ranges, centers: np.ndarray, labels: torch.Tensor, squared: torch.Tensor
    ) -> None:
        """Write the squared distances of a chunk of tiles to ``centers[labels]``."""
        problem, centers = self._problem(), np.ascontiguousarray(centers)
        problem.centers, problem.labels = centers.ctypes.data, labels.data_ptr()
        squares, point = _squared_lengths(centers), np.empty(self.samples.n_features)
        self._kernel("sparse_squares")(
            problem, tiles[0][0], tiles[-1][1], squares.ctypes.data, point.ctypes.data, squared.data_ptr()
        )

    def pairs(self, start: int, stop: int, points: np.ndarray) -> np.ndarray:
        """Return squared distances of samples start..stop to points; see `StreamedCore.pairs`."""
        problem, points = self._problem(), np.ascontiguousarray(points)
        problem.centers, problem.n_clusters = points.ctypes.data, len(points)
        squares, beside, point = _squared_lengths(points), _beside(points), np.empty(self.samples.n_features)
        squared = np.empty((stop - start, len(points)))
        pointers = (array.ctypes.data for array in (beside, squares, point, squared))
        self._kernel("sparse_pairs")(problem, start, stop, *pointers)
        return squared

    def seeding(self, weights: np.ndarray | None, first: int, n_trials: int, n_centers: int = 1) -> Seeding:
        """Begin a greedy k-means++; see `StreamedCore.seeding`."""
        return StreamedCore.seeding(self, weights, first, n_trials, n_centers)


def _squared_lengths(points: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", points, points)


def _beside(points: np.ndarray) -> np.ndarray:
    """Return points (m, n_features) as groups with a feature's values side by side, and zeros at the end."""
    n_points, n_features = points.shape
    beside = np.zeros((-(-n_points // SPARSE_POINTS), n_features, SPARSE_POINTS))
    for i, point in enumerate(points):
        beside[i // SPARSE_POINTS, :, i % SPARSE_POINTS] = point
    return beside
