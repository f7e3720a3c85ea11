"""Greedy k-means++ by compiled kernels; `PlainSeeding` is their plain twin."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .library import SEEDING_BLOCK, InstructionSet, Problem, Seeds, checked
from .threads import n_threads

if TYPE_CHECKING:
    from .cells import Cells
    from .compiled import CompiledCore

# Candidates at once, a bit each; with the usual number, that is enough for 3 million centers.
MOST_TRIALS = 16

# In features of samples times candidates.
_CHUNK_WORK = 2**22  # of what is worth a thread
_CALL_WORK = 2**30  # of a call, in which nothing can interrupt, at least


class CompiledSeeding:
    """`Seeding` with dense samples on a CPU.

    Masses are added up within blocks of samples, then these sums. A draw can differ from that of one sum over
    all samples in their order only where its number lies within the rounding of a sample's end, as fewer than
    ``n_samples**2 * 2**-52`` of them do.

    Parameters
    ----------
    core : CompiledCore
        Owns what `problem` points to.
    instructions : InstructionSet
    problem : Problem
        Describes the samples.
    weights : ndarray of shape (n_samples,), float64, or None
        None for weights of 1.
    first : int
        The sample that is the first center.
    cells : Cells, optional
        Whose samples the problem describes.
    """

    def __init__(
        self,
        core: CompiledCore,
        instructions: InstructionSet,
        problem: Problem,
        weights: np.ndarray | None,
        first: int,
        cells: Cells | None = None,
    ) -> None:
        dtype, n_samples = core.samples.numpy_dtype, core.samples.n_samples
        self._instructions, self._kind = instructions, 0 if dtype == np.float32 else 1
        self._core, self._problem = core, problem
        self._n_blocks = -(-n_samples // SEEDING_BLOCK)
        shape = self._n_blocks * SEEDING_BLOCK
        self._memory = {
            "nearest": np.empty(shape),
            "squares": np.empty(shape, dtype),
            "limits": np.empty(shape, dtype),
            "marks": np.empty(shape, np.uint16),
            "sums": np.empty(self._n_blocks),
            "n_closer": np.empty(self._n_blocks, np.int64),
            "places": np.empty(shape, np.uint16),
            "closer": np.empty(shape),
            "found": np.empty(self._n_blocks),
            "open": np.empty(self._n_blocks, np.uint16),
            "stale": np.zeros(self._n_blocks, np.uint8),
        }
        if cells is not None:
            inverse = np.empty(n_samples, np.int64)
            inverse[cells.order] = np.arange(n_samples)
            reaches = np.zeros_like(cells.radii)
            self._memory |= {"order": cells.order, "places_in_order": inverse, "reaches": reaches}
        self._memory["drawn"] = self._memory["nearest"] if cells is None else np.empty(shape)
        self._memory["nearest"][n_samples:] = self._memory["drawn"][n_samples:] = 0.0
        self._memory["limits"][n_samples:] = -np.inf
        self._seeds = Seeds(**{name: array.ctypes.data for name, array in self._memory.items()})
        self._seeds.weight_scale, self._seeds.chunk_work = 1.0, _CHUNK_WORK
        if weights is not None:
            in_order = weights if cells is None else weights[cells.order]
            self._weights = weights, in_order
            self._seeds.weights, problem.weights = weights.ctypes.data, in_order.ctypes.data
            self._seeds.weight_scale = math.ldexp(1.0, -math.frexp(weights.max())[1])
        self._take_candidates(1)[0] = first if cells is None else inverse[first]
        checked(instructions.begin_seeds(*self._call()))

    def extend(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add centers; see `Seeding.extend`."""
        count, n_trials = shares.shape
        shares = np.ascontiguousarray(shares)
        centers, gains = np.empty(count, np.int64), np.empty(count)
        self._take_candidates(n_trials)
        samples = self._core.samples
        per_call = 1 + _CALL_WORK // (samples.n_samples * (samples.n_features + 4) * n_trials)
        for start in range(0, count, per_call):
            part = slice(start, start + per_call)
            pointers = (array[part].ctypes.data for array in (centers, gains))
            n = len(centers[part])
            checked(self._instructions.extend_seeds(*self._call(), shares[part].ctypes.data, n, *pointers))
        return centers, gains

    def _take_candidates(self, count: int) -> np.ndarray:
        """Make memory for so many candidates and their gains; return that for the first."""
        candidates, gains = np.empty(count, np.int64), np.empty((self._n_blocks, count))
        self._candidates = candidates, gains  # stays where it is
        self._seeds.candidates, self._seeds.gains = candidates.ctypes.data, gains.ctypes.data
        self._seeds.n_candidates = count
        return candidates

    def _call(self) -> tuple[int, Problem, Seeds]:
        self._seeds.n_threads = n_threads()
        return self._kind, self._problem, self._seeds
