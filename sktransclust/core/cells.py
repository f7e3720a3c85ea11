"""Samples of few features in an order in which neighbours follow each other; see cells.h.

The order is that of a curve through space (Morton's): the bits of the coordinates, those of all
features in turn, are the digits of a number by which samples are sorted.
"""

from __future__ import annotations

import functools

import numpy as np
import torch

from .dense_samples import DenseSamples
from .library import CELL, Problem
from .survey import blocks

PLACES = 64 * CELL  # samples that whole registers of cells have, whatever the instruction set
_MOST_BITS = 12  # of a coordinate
_WIDTH = 8.0  # of the cube that is divided, in root mean squares of the samples' lengths


class Cells:
    """The same samples once more, in the order of the curve.

    Parameters
    ----------
    samples : DenseSamples
        On the host, with known lengths.
    sample_weight : Tensor of shape (n_samples,), float64, or None

    Attributes
    ----------
    order : ndarray of shape (n_samples,), int64
        Which sample each of these was.
    samples : DenseSamples
    sample_weight : Tensor of shape (n_samples,), float64, or None
    middles : ndarray of shape (n_features + 1, n_places)
        Memory for the kernels, as are the next ones; there are whole registers of places. kernel.h says what
        they write there.
    radii : ndarray of shape (n_places,)
    lanes : ndarray of shape (n_places, n_features * CELL)
    labels : ndarray of shape (n_places,), int32
    """

    def __init__(self, samples: DenseSamples, sample_weight: torch.Tensor | None) -> None:
        assert samples.norms is not None
        self.order = _order(samples, samples.norms)
        values, norms = (array.numpy().take(self.order, axis=0) for array in (samples.values, samples.norms))
        frames = samples.score_frame, samples.reference_frame
        self.samples = DenseSamples(values, *frames, samples.device)
        self.samples.norms = torch.from_numpy(norms)
        self.sample_weight = None if sample_weight is None else sample_weight[self.order]
        n_places = -(-samples.n_samples // PLACES) * PLACES // CELL
        self.middles = np.zeros((samples.n_features + 1, n_places), samples.numpy_dtype)
        self.radii = np.zeros(n_places, samples.numpy_dtype)
        self.lanes = torch.empty(n_places, samples.n_features * CELL, dtype=samples.dtype).numpy()  # aligned
        self.labels = np.empty(n_places, np.int32)

    def lend_to(self, problem: Problem) -> None:
        """Tell the kernels where these arrays are."""
        assert self.samples.norms is not None
        problem.lengths = self.samples.norms.data_ptr()
        problem.cells, problem.radii = self.middles.ctypes.data, self.radii.ctypes.data
        problem.lanes, problem.cell_labels = self.lanes.ctypes.data, self.labels.ctypes.data


def _order(samples: DenseSamples, norms: torch.Tensor) -> np.ndarray:
    """Return the samples' indices in the order of the curve."""
    size = torch.linalg.vector_norm(norms, dtype=torch.float64) / samples.n_samples**0.5
    index_bits = samples.n_samples.bit_length()
    bits = min(_MOST_BITS, (64 - index_bits) // samples.n_features)
    steps = float(2**bits / (_WIDTH * size)) if size > 0 else 0.0
    places = np.arange(samples.n_samples, dtype=np.uint64)
    for start, stop in blocks(samples.n_samples, samples.n_features):
        local = samples.local(samples.values[start:stop], samples.score_frame, samples.dtype).numpy()
        for feature, column in enumerate(local.T):
            cell = np.clip(column * steps + 2 ** (bits - 1), 0, 2**bits - 1).astype(np.intp)
            places[start:stop] |= _spread(bits, samples.n_features)[cell] << np.uint64(index_bits + feature)
    places.sort()
    return (places & np.uint64(2**index_bits - 1)).astype(np.int64)


@functools.cache
def _spread(bits: int, distance: int) -> np.ndarray:
    """Return each number of so many bits with its bits that far apart: uint64, shape (2**bits,)."""
    numbers = np.arange(2**bits, dtype=np.uint64)
    spread = np.zeros_like(numbers)
    for bit in range(bits):
        spread |= (numbers >> np.uint64(bit) & np.uint64(1)) << np.uint64(bit * distance)
    return spread
