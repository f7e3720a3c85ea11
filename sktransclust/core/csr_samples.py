"""Sparse samples in compressed rows; every step costs in proportion to the stored entries."""

from __future__ import annotations

import numpy as np
import torch

from .frame import Frame
from .samples import TORCH_DTYPES, cluster_sums, pairwise_squares, row_dot


class CSRSamples:
    """Samples in compressed sparse rows, without duplicate entries.

    Parameters
    ----------
    data, indices, indptr : ndarray
        As of a `scipy.sparse.csr_array`; indices of any integer type.
    n_features : int
    score_frame, reference_frame : Frame
        Without a shift.
    device : torch.device
        Where tiles are computed.

    Attributes
    ----------
    norms : Tensor of shape (n_samples,) or None
        The lengths of the samples in the score frame, once they are known.
    """

    def __init__(
        self,
        data: np.ndarray,
        indices: np.ndarray,
        indptr: np.ndarray,
        n_features: int,
        score_frame: Frame,
        reference_frame: Frame,
        device: torch.device,
    ) -> None:
        self.data, self.indices, self.indptr = data, indices, indptr
        self.score_frame, self.reference_frame, self.device = score_frame, reference_frame, device
        self.n_samples = len(indptr) - 1
        self.n_features = n_features
        self.row_size = max(1, len(data) // self.n_samples)
        self.numpy_dtype = data.dtype
        self.dtype = TORCH_DTYPES[data.dtype]
        self.norms: torch.Tensor | None = None

    def memory(self) -> dict[str, int]:
        """Return where the samples lie, as `Problem` of kernel.h names it."""
        self._memory = values, columns, offsets = (
            np.ascontiguousarray(self.data),
            np.ascontiguousarray(self.indices, None if self.indices.dtype == np.int32 else np.int64),
            np.ascontiguousarray(self.indptr, np.int64),
        )
        named = {"values": values, "columns": columns, "offsets": offsets}
        pointers = {name: array.ctypes.data for name, array in named.items()}
        longest = int(np.diff(offsets).max())
        return {**pointers, "wide_columns": columns.itemsize == 8, "n_terms": longest}

    def tile(self, start: int, stop: int) -> CSRTile:
        """Return samples start..stop."""
        return CSRTile(self, start, stop)

    def tile_of(self, index: torch.Tensor) -> CSRTile:
        """Return the samples at `index`, of shape (m,), int64, as a tile."""
        rows = index.cpu().numpy()
        begin, length = self.indptr[rows], self.indptr[rows + 1] - self.indptr[rows]
        indptr = np.concatenate([[0], np.cumsum(length)])
        entry = np.arange(indptr[-1]) + np.repeat(begin - indptr[:-1], length)
        frames = self.score_frame, self.reference_frame
        chosen = CSRSamples(
            self.data[entry], self.indices[entry], indptr, self.n_features, *frames, self.device
        )
        chosen.norms = None if self.norms is None else self.norms[index]
        return chosen.tile(0, len(index))

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
            with np.errstate(over="ignore"):  # infinite scores send a sample to the exact rule
                np.ldexp(local, -frame.exponent, out=local)
        return torch.from_numpy(local).to(self.device)


class CSRTile:
    """A range of sparse samples."""

    def __init__(self, samples: CSRSamples, start: int, stop: int) -> None:
        stored = slice(samples.indptr[start], samples.indptr[stop])
        indptr = samples.indptr[start : stop + 1].astype(np.int64) - samples.indptr[start]
        data = samples.data[stored]
        self._samples = samples
        self._range = slice(start, stop)
        self._local = samples.entries(data, samples.score_frame, data.dtype)  # (nnz,)
        self._reference = samples.entries(data, samples.reference_frame, np.dtype(np.float64))
        self._columns = torch.from_numpy(samples.indices[stored].astype(np.int64)).to(samples.device)
        self._offsets = torch.from_numpy(indptr).to(samples.device)
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
        if self._samples.norms is not None:
            return self._samples.norms[self._range]
        return self._sum_rows(self._local.square()).sqrt()

    def rows(self, index: torch.Tensor) -> torch.Tensor:
        """Return some samples of the tile, of shape (m, n_features), float64, in the reference frame."""
        begin, length = self._offsets[index], torch.diff(self._offsets)[index]
        row = torch.repeat_interleave(length)  # of each stored entry that is wanted
        first = torch.cumsum(length, 0) - length
        entry = torch.arange(len(row), device=row.device) - first[row] + begin[row]
        dense = torch.zeros(len(index), self._samples.n_features, dtype=torch.float64, device=row.device)
        dense[row, self._columns[entry]] = self._reference[entry]
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
