"""Dense samples: NumPy arrays of any strides, memory-mapped ones too, and CUDA tensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from .frame import Frame, safe_exponent
from .samples import TORCH_DTYPES, cluster_sums, row_dot


@dataclass
class DenseSamples:
    """Samples in an array of shape (n_samples, n_features): NumPy of any strides, or a CUDA tensor."""

    values: np.ndarray | torch.Tensor
    score_frame: Frame
    reference_frame: Frame
    device: torch.device

    def __post_init__(self) -> None:
        self.n_samples: int = self.values.shape[0]
        self.n_features: int = self.values.shape[1]
        if isinstance(self.values, np.ndarray):
            self.numpy_dtype = self.values.dtype
        else:
            self.numpy_dtype = np.dtype(str(self.values.dtype).removeprefix("torch."))
        self.dtype = TORCH_DTYPES[self.numpy_dtype]

    def tile(self, start: int, stop: int) -> DenseTile:
        """Return samples start..stop."""
        return DenseTile(self, self.values[start:stop])

    def rows(self, index: np.ndarray) -> torch.Tensor:
        """Return the samples at `index`, of shape (m, n_features), float64, in the reference frame."""
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
