"""The data, as the core reads it: tile by tile, dense or CSR, never as a copy of the whole.

Two coordinate frames are at work. Scores are computed in the *score frame*, in the data's own
dtype; whatever must be exact is computed in the *reference frame*, in float64. Sparse data
have no shift, which would fill them.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch

from .frame import Frame

TORCH_DTYPES = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64}


class Samples(Protocol):
    """What `streamed` asks of the data; rows are named by a range or an index array.

    Attributes
    ----------
    row_size : int
        How many numbers a row is stored as, on average.
    """

    n_samples: int
    n_features: int
    row_size: int
    numpy_dtype: np.dtype
    dtype: torch.dtype
    device: torch.device
    score_frame: Frame
    reference_frame: Frame
    norms: torch.Tensor | None

    def tile(self, start: int, stop: int) -> Tile:
        """Return samples start..stop."""

    def rows(self, index: np.ndarray) -> torch.Tensor:
        """Return the samples at `index`, of shape (m, n_features), float64, in the reference frame."""


class Tile(Protocol):
    """A range of samples, loaded once and used by several steps.

    Attributes
    ----------
    n_terms : int
        The most products that one score of this tile is a sum of.
    """

    n_terms: int

    def scores(self, keys: torch.Tensor, key_norms: torch.Tensor) -> torch.Tensor:
        """Return ``|key|^2 - 2 sample . key``, of shape (tile, n_clusters), in the score frame."""

    def norms(self) -> torch.Tensor:
        """Return the length of each sample, of shape (tile,), in the score frame."""

    def rows(self, index: torch.Tensor) -> torch.Tensor:
        """Return some samples of the tile, of shape (m, n_features), float64, in the reference frame."""

    def add_to(self, sums: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None) -> None:
        """Add each sample, times its weight, to row `label` of `sums` (float64, reference frame)."""

    def squares(self) -> torch.Tensor:
        """Return the squared length of each sample, of shape (tile,), float64, in the reference frame."""

    def dot(self, points: torch.Tensor) -> torch.Tensor:
        """Return inner products with points (m, n_features): shape (tile, m), float64, reference frame."""

    def squared_distances(self, centers: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return squared distances to ``centers[labels]``, of shape (tile,), by direct differences."""

    def distances(self, points: torch.Tensor) -> torch.Tensor:
        """Return distances to points (m, n_features): shape (tile, m), float64, reference frame."""


def pairwise_squares(tile: Tile, points: torch.Tensor) -> torch.Tensor:
    """Return squared distances of a tile to points (m, n_features): shape (tile, m), float64.

    As ``|x|^2 + |p|^2 - 2 x.p``; where that cancels, by direct differences, so that the
    distance of equal points is exactly 0.
    """
    squares = tile.squares()[:, None] + row_dot(points, points)
    squared = torch.sub(squares, tile.dot(points), alpha=2)
    row, column = torch.nonzero(~(squared >= squares * 2.0**-16), as_tuple=True)
    per_pass = max(1, 2**20 // points.shape[1])
    for rows, columns in zip(row.split(per_pass), column.split(per_pass), strict=True):
        difference = tile.rows(rows) - points[columns]
        squared[rows, columns] = row_dot(difference, difference)
    return squared


def row_dot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the inner product of each row of `a` with the same row of `b`, of shape (m,)."""
    return (a * b).sum(1)


def cluster_sums(sums: torch.Tensor, values: torch.Tensor, labels: torch.Tensor) -> None:
    """Add row i of `values` to row ``labels[i]`` of `sums`, in a fixed order."""
    if values.device.type == "cpu":
        sums.index_add_(0, labels, values)  # one thread: in the order of the rows
        return
    # On a GPU index_add_ would use atomics, whose order changes from run to run.
    order = torch.argsort(labels, stable=True)
    lengths = torch.bincount(labels, minlength=len(sums))
    sums += torch.segment_reduce(values[order], "sum", lengths=lengths, axis=0, initial=0.0)
