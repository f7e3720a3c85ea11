"""Dense samples: arrays of any strides, memory-mapped ones too, and CUDA tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .frame import Frame, safe_exponent
from .samples import cluster_sums, row_dot

# With no more clusters than this, a CPU finds minima faster with the scores of a center side by side.
FEW_CLUSTERS = 16


class DenseSamples:
    """Samples in an array of shape (n_samples, n_features).

    Parameters
    ----------
    values : ndarray or Tensor of shape (n_samples, n_features)
        Of float32 or float64. Read in place; an array with negative strides is copied.
    score_frame, reference_frame : Frame
    device : torch.device
        Where tiles are computed; that of `values` if they are a tensor on a GPU.

    Attributes
    ----------
    norms : Tensor of shape (n_samples,) or None
        The lengths of the samples in the score frame, once they are known.
    """

    def __init__(
        self,
        values: np.ndarray | torch.Tensor,
        score_frame: Frame,
        reference_frame: Frame,
        device: torch.device,
    ) -> None:
        self.values = _as_tensor(values) if isinstance(values, np.ndarray) else values
        self.score_frame, self.reference_frame, self.device = score_frame, reference_frame, device
        self.n_samples: int = values.shape[0]
        self.n_features: int = values.shape[1]
        self.row_size = self.n_features
        self.dtype = self.values.dtype
        self.numpy_dtype = np.dtype(np.float32 if self.dtype == torch.float32 else np.float64)
        self.norms: torch.Tensor | None = None

    def memory(self) -> dict[str, int]:
        """Return where the samples lie, as `Problem` of kernel.h names it."""
        row_stride, column_stride = self.values.stride()
        strides = {"row_stride": row_stride, "column_stride": column_stride}
        return {"values": self.values.data_ptr(), "n_terms": self.n_features, **strides}

    def tile(self, start: int, stop: int) -> DenseTile:
        """Return samples start..stop."""
        return DenseTile(self, slice(start, stop))

    def tile_of(self, index: torch.Tensor) -> DenseTile:
        """Return the samples at `index`, of shape (m,), int64, as a tile."""
        return DenseTile(self, index)

    def rows(self, index: np.ndarray) -> torch.Tensor:
        """Return the samples at `index`, of shape (m, n_features), float64, in the reference frame."""
        chosen = self.values[torch.from_numpy(index.copy()).to(self.values.device)]
        return self.local(chosen, self.reference_frame, torch.float64)

    def local(self, block: torch.Tensor, frame: Frame, dtype: torch.dtype) -> torch.Tensor:
        """Return a block of samples in the coordinates of `frame`, on the device."""
        local = block.to(self.device, dtype)
        if frame.shift is not None:
            local = local - torch.as_tensor(frame.shift, dtype=dtype, device=self.device)
        return torch.ldexp(local, torch.tensor(-frame.exponent)) if frame.exponent else local


def _as_tensor(array: np.ndarray) -> torch.Tensor:
    """Return a tensor over the memory of an array, which may be read-only: nothing here writes to X."""
    if any(stride < 0 or stride % array.itemsize for stride in array.strides):
        array = array.copy()
    if array.flags.writeable or array.size == 0:
        return torch.from_numpy(np.asarray(array))
    return torch.from_numpy(np.asarray(_Writeable(array)))


class _Writeable:
    """Shows the memory of a read-only array as writeable, since PyTorch warns of any other."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array  # keeps the memory alive
        interface: dict[str, Any] = dict(array.__array_interface__)
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


class DenseTile:
    """Some dense samples: a range, or those at an index tensor."""

    def __init__(self, samples: DenseSamples, members: slice | torch.Tensor) -> None:
        self.n_terms = samples.n_features
        self._samples = samples
        self._members = members
        block = samples.values[members]
        self._local = samples.local(block, samples.score_frame, samples.dtype)  # (tile, d)
        if samples.reference_frame is samples.score_frame:
            self._reference = self._local.double()  # exact: see frame_of
        else:
            self._reference = samples.local(block, samples.reference_frame, torch.float64)

    def scores(self, keys: torch.Tensor, key_norms: torch.Tensor) -> torch.Tensor:
        """Return ``|key|^2 - 2 sample . key``, of shape (tile, n_clusters), in the score frame."""
        if len(keys) <= FEW_CLUSTERS:
            return torch.addmm(key_norms[:, None], keys, self._local.T, alpha=-2).T
        return torch.addmm(key_norms, self._local, keys.T, alpha=-2)

    def norms(self) -> torch.Tensor:
        """Return the length of each sample, of shape (tile,), in the score frame."""
        if self._samples.norms is not None:
            return self._samples.norms[self._members]
        return torch.linalg.vector_norm(self._local, dim=1)

    def rows(self, index: torch.Tensor) -> torch.Tensor:
        """Return some samples of the tile, of shape (m, n_features), float64, in the reference frame."""
        return self._reference[index]

    def add_to(self, sums: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None) -> None:
        """Add each sample, times its weight, to row `label` of `sums` (float64, reference frame)."""
        values = self._reference if weights is None else self._reference * weights[:, None]
        cluster_sums(sums, values, labels)

    def squares(self) -> torch.Tensor:
        """Return the squared length of each sample, of shape (tile,), float64, in the reference frame."""
        return row_dot(self._reference, self._reference)

    def squared_distances(self, centers: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return squared distances to ``centers[labels]``, of shape (tile,), by direct differences."""
        difference = self._reference - centers.index_select(0, labels)
        return row_dot(difference, difference)

    def dot(self, points: torch.Tensor) -> torch.Tensor:
        """Return inner products with points (m, n_features): shape (tile, m), float64, reference frame."""
        return self._reference @ points.T

    def distances(self, points: torch.Tensor) -> torch.Tensor:
        """Return distances to points (m, n_features): shape (tile, m), float64, reference frame.

        Each from its own row and point alone, by direct differences: the same bits in any tile.
        """
        values = self._reference
        sizes = torch.maximum(values.abs().amax(1), points.abs().max()).cpu().numpy()
        if not (_exponent(sizes.min()) or _exponent(sizes.max())):
            return _plain_distances(values, points)
        exponents = np.array(list(map(_exponent, sizes)))
        distances = torch.empty(len(values), len(points), dtype=torch.float64, device=values.device)
        for exponent in np.unique(exponents):
            rows = torch.from_numpy(np.flatnonzero(exponents == exponent)).to(values.device)
            power = torch.tensor(int(exponent))
            scaled = _plain_distances(torch.ldexp(values[rows], -power), torch.ldexp(points, -power))
            distances[rows] = torch.ldexp(scaled, power)
        return distances


def _plain_distances(values: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    return torch.cdist(values, points, compute_mode="donot_use_mm_for_euclid_dist")


def _exponent(size: float) -> int:
    return safe_exponent(np.asarray(size), np.dtype(np.float64))
