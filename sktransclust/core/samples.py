"""The data, as the core reads it: tile by tile, dense or CSR, never as a copy of the whole.

Two coordinate frames are at work. Scores are computed in the *score frame*, in the data's own
dtype; whatever must be exact is computed in the *reference frame*, in float64. Sparse data
have no shift, which would fill them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from .frame import Frame, safe_exponent

_TORCH_DTYPES = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64}


class Samples(Protocol):
    """What `streamed` asks of the data; rows are named by a range or an index array."""

    n_samples: int
    n_features: int
    numpy_dtype: np.dtype
    dtype: torch.dtype
    device: torch.device
    score_frame: Frame
    reference_frame: Frame

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


@dataclass
class DenseSamples:
    """Samples in an array of shape (n_samples, n_features): NumPy of any strides, or a CUDA tensor."""

    values: np.ndarray | torch.Tensor
    score_frame: Frame
    reference_frame: Frame
    device: torch.device

    def __post_init__(self) -> None:
        self.n_samples, self.n_features = self.values.shape
        if isinstance(self.values, np.ndarray):
            self.numpy_dtype = self.values.dtype
        else:
            self.numpy_dtype = np.dtype(str(self.values.dtype).removeprefix("torch."))
        self.dtype = _TORCH_DTYPES[self.numpy_dtype]

    def tile(self, start: int, stop: int) -> DenseTile:
        """Return samples start..stop."""
        return DenseTile(self, self.values[start:stop])

    def rows(self, index: np.ndarray) -> torch.Tensor:
        """Return the samples at `index`, of shape (m, n_features), float64, in the reference frame."""
        index = index if isinstance(self.values, np.ndarray) else torch.as_tensor(index, device=self.device)
        return self.local(self.values[index], self.reference_frame, torch.float64)

    def local(self, block: np.ndarray | torch.Tensor, frame: Frame, dtype: torch.dtype) -> torch.Tensor:
        """Return a block of samples in the coordinates of `frame`, contiguous, on the device."""
        if isinstance(block, np.ndarray):
            numpy_dtype = np.float32 if dtype == torch.float32 else np.float64
            local = np.empty(block.shape, numpy_dtype)
            if frame.shift is None:
                local[...] = block
            else:
                np.subtract(block, frame.shift.astype(numpy_dtype), out=local, dtype=numpy_dtype)
            if frame.exponent:
                np.ldexp(local, -frame.exponent, out=local)
            return torch.from_numpy(local).to(self.device)
        tensor = block.to(dtype)
        if frame.shift is not None:
            tensor = tensor - torch.as_tensor(frame.shift, dtype=dtype, device=self.device)
        return torch.ldexp(tensor, torch.tensor(-frame.exponent)) if frame.exponent else tensor


class DenseTile:
    """A range of dense samples."""

    def __init__(self, samples: DenseSamples, block: np.ndarray | torch.Tensor) -> None:
        self.n_terms = samples.n_features
        self._samples = samples
        self._block = block
        self._local = samples.local(block, samples.score_frame, samples.dtype)  # (tile, d)
        self._reference: torch.Tensor | None = None

    def _in_reference(self) -> torch.Tensor:
        if self._reference is None:
            samples = self._samples
            if samples.dtype == torch.float64 and samples.reference_frame is samples.score_frame:
                self._reference = self._local
            else:
                self._reference = samples.local(self._block, samples.reference_frame, torch.float64)
        return self._reference

    def scores(self, keys: torch.Tensor, key_norms: torch.Tensor) -> torch.Tensor:
        """Return ``|key|^2 - 2 sample . key``, of shape (tile, n_clusters), in the score frame."""
        return torch.addmm(key_norms, self._local, keys.T, alpha=-2)

    def norms(self) -> torch.Tensor:
        """Return the length of each sample, of shape (tile,), in the score frame."""
        return torch.linalg.vector_norm(self._local, dim=1)

    def rows(self, index: torch.Tensor) -> torch.Tensor:
        """Return some samples of the tile, of shape (m, n_features), float64, in the reference frame."""
        return self._in_reference()[index]

    def add_to(self, sums: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None) -> None:
        """Add each sample, times its weight, to row `label` of `sums` (float64, reference frame)."""
        values = self._in_reference()
        cluster_sums(sums, values if weights is None else values * weights[:, None], labels)

    def squares(self) -> torch.Tensor:
        """Return the squared length of each sample, of shape (tile,), float64, in the reference frame."""
        values = self._in_reference()
        return row_dot(values, values)

    def squared_distances(self, centers: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return squared distances to ``centers[labels]``, of shape (tile,), by direct differences."""
        difference = self._in_reference() - centers.index_select(0, labels)
        return row_dot(difference, difference)

    def dot(self, points: torch.Tensor) -> torch.Tensor:
        """Return inner products with points (m, n_features): shape (tile, m), float64, reference frame."""
        return self._in_reference() @ points.T

    def distances(self, points: torch.Tensor) -> torch.Tensor:
        """Return distances to points (m, n_features): shape (tile, m), float64, reference frame.

        Each from its own row and point alone, by direct differences: the same bits in any tile.
        """
        values = self._in_reference()
        largest = torch.maximum(values.abs().max(), points.abs().max())
        exponent = safe_exponent(largest.cpu().numpy(), np.dtype(np.float64))
        if exponent:
            power = torch.tensor(-exponent)
            values, points = torch.ldexp(values, power), torch.ldexp(points, power)
        distances = torch.cdist(values, points, compute_mode="donot_use_mm_for_euclid_dist")
        return torch.ldexp(distances, torch.tensor(exponent)) if exponent else distances


@dataclass
class CSRSamples:
    """Samples in compressed sparse rows; every step costs in proportion to the stored entries.

    Attributes
    ----------
    data, indices, indptr : ndarray
        As of a `scipy.sparse.csr_array` without duplicate entries.
    n_features : int
    score_frame, reference_frame : Frame
        Without a shift.
    device : torch.device
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_features: int
    score_frame: Frame
    reference_frame: Frame
    device: torch.device

    def __post_init__(self) -> None:
        self.n_samples = len(self.indptr) - 1
        self.numpy_dtype = self.data.dtype
        self.dtype = _TORCH_DTYPES[self.numpy_dtype]

    def tile(self, start: int, stop: int) -> CSRTile:
        """Return samples start..stop."""
        first, last = self.indptr[start], self.indptr[stop]
        return CSRTile(
            self, self.data[first:last], self.indices[first:last], self.indptr[start : stop + 1] - first
        )

    def rows(self, index: np.ndarray) -> torch.Tensor:
        """Return the samples at `index`, of shape (m, n_features), float64, in the reference frame."""
        dense = np.zeros((len(index), self.n_features))
        for row, sample in enumerate(index):
            stored = slice(self.indptr[sample], self.indptr[sample + 1])
            dense[row, self.indices[stored]] = self.data[stored]
        return torch.from_numpy(self.reference_frame.to_local(dense)).to(self.device)

    def entries(self, data: np.ndarray, frame: Frame, dtype: np.dtype) -> torch.Tensor:
        """Return stored entries in the coordinates of `frame`, on the device."""
        local = data.astype(dtype)  # a copy also protects against read-only memory
        if frame.exponent:
            np.ldexp(local, -frame.exponent, out=local)
        return torch.from_numpy(local).to(self.device)


class CSRTile:
    """A range of sparse samples."""

    def __init__(
        self, samples: CSRSamples, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray
    ) -> None:
        self._samples = samples
        self._local = samples.entries(data, samples.score_frame, data.dtype)  # (nnz,)
        self._reference = samples.entries(data, samples.reference_frame, np.dtype(np.float64))
        self._columns = torch.from_numpy(indices.astype(np.int64)).to(samples.device)
        self._offsets = torch.from_numpy(indptr.astype(np.int64)).to(samples.device)
        self._row_of_entry = torch.repeat_interleave(torch.diff(self._offsets))
        self.n_terms = int(np.diff(indptr).max(initial=0))

    def _sum_rows(self, entries: torch.Tensor) -> torch.Tensor:
        lengths = torch.diff(self._offsets)
        return torch.segment_reduce(entries, "sum", lengths=lengths, initial=0.0, unsafe=True)

    def scores(self, keys: torch.Tensor, key_norms: torch.Tensor) -> torch.Tensor:
        """Return ``|key|^2 - 2 sample . key``, of shape (tile, n_clusters), in the score frame."""
        return torch.sub(key_norms, self._times(self._local, keys), alpha=2)

    def dot(self, points: torch.Tensor) -> torch.Tensor:
        """Return inner products with points (m, n_features): shape (tile, m), float64, reference frame."""
        return self._times(self._reference, points)

    def _times(self, entries: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.embedding_bag(
            self._columns,
            points.T.contiguous(),
            self._offsets,
            mode="sum",
            per_sample_weights=entries,
            include_last_offset=True,
        )

    def norms(self) -> torch.Tensor:
        """Return the length of each sample, of shape (tile,), in the score frame."""
        return self._sum_rows(self._local.square()).sqrt()

    def rows(self, index: torch.Tensor) -> torch.Tensor:
        """Return some samples of the tile, of shape (m, n_features), float64, in the reference frame."""
        position = torch.full((len(self._offsets) - 1,), -1, device=index.device)
        position[index] = torch.arange(len(index), device=index.device)
        row = position[self._row_of_entry]
        wanted = row >= 0
        dense = torch.zeros(len(index), self._samples.n_features, dtype=torch.float64, device=index.device)
        dense[row[wanted], self._columns[wanted]] = self._reference[wanted]
        return dense

    def add_to(self, sums: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None) -> None:
        """Add each sample, times its weight, to row `label` of `sums` (float64, reference frame)."""
        values = self._reference if weights is None else self._reference * weights[self._row_of_entry]
        cells = labels[self._row_of_entry] * sums.shape[1] + self._columns
        cluster_sums(sums.view(-1), values, cells)

    def squares(self) -> torch.Tensor:
        """Return the squared length of each sample, of shape (tile,), float64, in the reference frame."""
        return self._sum_rows(self._reference.square())

    def squared_distances(self, centers: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return squared distances to ``centers[labels]``, of shape (tile,).

        As ``|c|^2 + sum over stored entries of (x - c)^2 - c^2``; where that cancels, by
        direct differences of the filled rows.
        """
        nearest = centers[labels[self._row_of_entry], self._columns]
        center_norms = row_dot(centers, centers)[labels]
        change = self._sum_rows((self._reference - nearest).square() - nearest.square())
        squared = center_norms + change
        cancelled = torch.nonzero(squared < center_norms * 2.0**-16).ravel()
        per_pass = max(1, 2**20 // self._samples.n_features)
        for part in cancelled.split(per_pass):
            difference = self.rows(part) - centers[labels[part]]
            squared[part] = row_dot(difference, difference)
        return squared

    def distances(self, points: torch.Tensor) -> torch.Tensor:
        """Return distances to points (m, n_features): shape (tile, m), float64, reference frame."""
        return pairwise_squares(self, points).sqrt_()
