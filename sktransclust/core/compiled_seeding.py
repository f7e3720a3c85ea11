"""The passes of greedy k-means++ by compiled kernels; `PlainSeeding` is their plain twin."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .library import SEEDING_BLOCK, SEEDING_LEAST_GROUP, Problem, Seeds, checked
from .threads import ordered_map

if TYPE_CHECKING:
    from .compiled import CompiledCore

_CHUNK_WORK = 2**23  # of a chunk at least, in features of samples times candidates


class CompiledSeeding:
    """`Seeding` with dense samples on a CPU.

    Parameters
    ----------
    core : CompiledCore
        Owns what `problem` points to.
    kernels : Kernels
    problem : Problem
        Describes the samples.
    weights : ndarray of shape (n_samples,), float64, or None
        None for weights of 1.
    first : int
        The sample that is the first center.
    """

    def __init__(
        self,
        core: CompiledCore,
        kernels: Any,
        problem: Problem,
        weights: np.ndarray | None,
        first: int,
    ) -> None:
        samples = core.samples
        kind = 0 if samples.numpy_dtype == np.float32 else 1
        self._find_gains, self._add_center = kernels.find_gains[kind], kernels.add_center[kind]
        self._draw = kernels.draw
        self._core, self._problem, self._weights = core, problem, weights
        problem.weights = None if weights is None else weights.ctypes.data
        n_samples = samples.n_samples
        n_blocks = -(-n_samples // SEEDING_BLOCK)
        self._nearest = np.zeros(n_blocks * SEEDING_BLOCK)
        self._nearest[:n_samples] = np.inf
        self._limits = np.full(n_blocks * SEEDING_BLOCK, -np.inf, samples.numpy_dtype)
        self._marks = np.full(n_blocks * SEEDING_BLOCK // SEEDING_LEAST_GROUP, 2**64 - 1, np.uint64)
        self._sums = np.zeros(n_blocks)
        self._seeds = Seeds(
            nearest=self._nearest.ctypes.data,
            limits=self._limits.ctypes.data,
            marks=self._marks.ctypes.data,
            sums=self._sums.ctypes.data,
        )
        self._candidates = self._take(np.array([first]))
        self.add(0)

    def draw(self, shares: np.ndarray) -> np.ndarray:
        """Draw samples; see `Seeding.draw`.

        Masses are added up within blocks of samples, then these sums. A draw can differ from that of one sum
        over all samples in their order only where its number lies within the rounding of a sample's end, as
        fewer than ``n_samples**2 * 2**-52`` of them do.
        """
        return np.array([self._draw(self._problem, self._seeds, share) for share in shares.tolist()])

    def gains(self, candidates: np.ndarray) -> np.ndarray:
        """Return what candidates would gain; see `Seeding.gains`."""
        self._candidates = self._take(candidates)
        gains = np.empty((len(self._sums), len(candidates)))
        self._seeds.gains = gains.ctypes.data
        self._run(self._find_gains, len(candidates))
        return gains.sum(0)

    def add(self, candidate: int) -> None:
        """Make one of the last candidates a center, given its place among them."""
        self._run(self._add_center, 1, candidate)

    def _take(self, candidates: np.ndarray) -> np.ndarray:
        candidates = np.ascontiguousarray(candidates, np.int64)
        self._seeds.candidates, self._seeds.n_candidates = candidates.ctypes.data, len(candidates)
        return candidates

    def _run(self, kernel: Callable[..., int], n_points: int, *arguments: int) -> None:
        """Let a kernel do all blocks, in chunks that are worth a call."""
        n_blocks = len(self._sums)
        per_chunk = -(-_CHUNK_WORK // (SEEDING_BLOCK * n_points * (self._core.samples.n_features + 4)))

        def work(start: int) -> None:
            checked(kernel(self._problem, self._seeds, start, min(start + per_chunk, n_blocks), *arguments))

        if per_chunk >= n_blocks:
            work(0)
            return
        for _ in ordered_map(work, range(0, n_blocks, per_chunk)):
            pass
