"""The streamed attention by compiled kernels, on a CPU.

`StreamedCore` is its plain twin. A kernel (kernel.cpp) labels the samples that the error bound of
`nearest` makes certain and adds them up by cluster; the doubtful ones come back and are decided, and
added, as everywhere. So the labels are the same ones, whatever the instruction set. The library is
built when the package is installed with a C++ compiler at hand.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch

from .cells import PLACES, Cells
from .compiled_seeding import MOST_TRIALS, CompiledSeeding
from .csr_samples import CSRSamples
from .dense_samples import DenseSamples
from .library import Crew, Problem, State, checked, instruction_sets
from .nearest import Keys, nearest
from .partial import Moments
from .seeding import Seeding
from .streamed import Ahead, Iteration, Ranges, Result, StreamedCore
from .threads import n_threads, ordered_map

_WORTH_BOUNDS = 2**16  # n_samples * n_clusters * (n_features + 5), from which bounds save more than they cost
_WORTH_CELLS = 2**17  # n_samples * n_clusters, times 4 for each feature, from which cells do so instead
_CENTERS_WORTH_CELLS = 32  # from which cells spare more of k-means++ than the order of the draws costs
_MOST_IN_CELLS = 2**26  # values, of which cells keep two copies
_CHUNK_WORK = 2**24  # of a chunk at least, in features of samples times clusters
_WORK_ALONE = 2**26  # features of samples times clusters, that are met before the caller may interrupt
_MAX_CHUNKS = 64
_NOTHING = torch.empty(0, dtype=torch.int32)
_FEW_KEYS = 16  # by so many keys, at most, panels exceed the centers


class PackedKeys:
    """Centers as the kernels read them, and memory for what the kernels make of them.

    Parameters
    ----------
    samples : DenseSamples or CSRSamples
    problem : Problem
        Describes the samples; here it is completed, but for what belongs to a chunk.
    """

    def __init__(self, samples: DenseSamples | CSRSamples, problem: Problem, n_clusters: int) -> None:
        self.samples, self.problem = samples, problem
        self._panels = np.empty((n_clusters + _FEW_KEYS, samples.n_features), samples.numpy_dtype)
        self._norms = np.empty(n_clusters + _FEW_KEYS, samples.numpy_dtype)
        problem.n_clusters = n_clusters
        problem.panels, problem.key_norms = self._panels.ctypes.data, self._norms.ctypes.data

    def take(self, centers: np.ndarray) -> None:
        """Take centers of shape (n_clusters, n_features), float64, in the reference frame."""
        self.centers = keys = np.ascontiguousarray(centers)
        samples = self.samples
        if samples.score_frame is not samples.reference_frame:
            keys = samples.score_frame.to_local(samples.reference_frame.to_data(self.centers))
        self._keys = keys
        self.problem.centers, self.problem.keys = self.centers.ctypes.data, keys.ctypes.data
        self.__dict__.pop("plain", None)

    @functools.cached_property
    def plain(self) -> Keys:
        """The same centers for the plain rule."""
        return Keys.of(self.centers, self.samples)


class _Iterations(PackedKeys):
    """What the kernels carry from one iteration to the next; see iterate.h.

    Parameters
    ----------
    spared : Cells or bool
        By what scores are: cells, whose samples these are, or bounds on distances (bounds.h).
    """

    def __init__(
        self,
        samples: DenseSamples | CSRSamples,
        problem: Problem,
        n_clusters: int,
        chunk_rows: int,
        spared: Cells | bool,
    ) -> None:
        super().__init__(samples, problem, n_clusters)
        self._cells = spared if isinstance(spared, Cells) else None
        shape, n_samples = (n_clusters, samples.n_features), samples.n_samples
        self.labels: torch.Tensor | None = None  # of the last iteration
        # About what an iteration meets: features of samples times clusters; with cells, few of these.
        self.work = n_samples * samples.n_features
        if self._cells is None:
            self.work = n_samples * n_clusters * (samples.n_features + 5)
        self._last, self._sums = np.empty((2, *shape))
        vectors = np.empty((8, n_clusters))
        self.weights = vectors[5]
        self.doubtful = np.empty(n_samples, dtype=np.int64)
        movers = np.empty(n_clusters, dtype=np.int32)
        self._memory = vectors, movers, samples.norms  # stays where it is
        if self._cells is not None:
            chunk_rows = -(-chunk_rows // PLACES) * PLACES
        self.state = State(chunk_rows=chunk_rows, last=self._last.ctypes.data, sums=self._sums.ctypes.data)
        self.state.movers, self.state.doubtful = movers.ctypes.data, self.doubtful.ctypes.data
        names = "own", "drift", "others", "still", "masses", "cluster_weights", "peaks"
        for name, vector in zip(names, vectors, strict=False):
            setattr(self.state, name, vector.ctypes.data)
        for name in "drift", "others", "still", "movers":
            setattr(problem, name, getattr(self.state, name))
        if spared is True:
            self._bounds = np.empty((2, n_samples), samples.numpy_dtype)
            problem.until, problem.lower = (bound.ctypes.data for bound in self._bounds)

    def begin(self, centers: np.ndarray, labels: torch.Tensor, ahead: Ahead | None) -> None:
        """Take centers and the labels of the iteration before."""
        state, n_ahead = self.state, ahead.n_iter if ahead else 1
        self.take(centers.copy())  # where those of further iterations are written over
        self._means, self._passed = np.empty_like(self.centers), np.empty(n_ahead)
        state.centers, state.means = self.centers.ctypes.data, self._means.ctypes.data
        state.passed, state.n_passed, state.n_ahead = self._passed.ctypes.data, 0, n_ahead
        if ahead:
            state.tol, state.least_spread = ahead.tol, ahead.least_spread
        state.n_threads = n_threads()
        state.valid &= labels is self.labels
        self.labels = labels
        if self._cells is None:
            self._inner = labels
        elif not state.valid:
            self._inner = torch.from_numpy(labels.numpy().take(self._cells.order))
        self.problem.labels = self._inner.data_ptr()

    def end(self) -> Iteration:
        """Return what the last iteration has found."""
        assert self.labels is not None
        if self._cells is not None:
            self.labels.numpy()[self._cells.order] = self._inner.numpy()
        state, passed = self.state, tuple(self._passed[: self.state.n_passed].tolist())
        found = self._means, self.weights.copy(), state.n_changed, state.shift, state.spread, passed
        return Iteration(self.centers, self.labels, *found)


class CompiledCore(StreamedCore):
    """Hard attention of samples on a CPU, by compiled kernels; as it stands, of dense ones.

    Parameters
    ----------
    samples : DenseSamples or CSRSamples
        In the memory of the host.
    sample_weight : Tensor of shape (n_samples,), float64, or None
    instruction_set : str, optional
        One of `instruction_sets()`, by default the last.
    """

    name = "compiled"
    keeps_bounds = True
    samples: DenseSamples | CSRSamples

    def __init__(
        self,
        samples: DenseSamples | CSRSamples,
        sample_weight: torch.Tensor | None = None,
        instruction_set: str | None = None,
    ) -> None:
        super().__init__(samples, sample_weight)
        self._set = instruction_sets()[instruction_set or list(instruction_sets())[-1]]
        self._kind = 0 if samples.dtype == torch.float32 else 1
        self._iterations: _Iterations | None = None  # of the last number of clusters
        shift = samples.score_frame.shift
        self._shift = np.zeros(samples.n_features) if shift is None else shift
        self._shift = self._shift.astype(samples.numpy_dtype)
        self._same_frame = samples.reference_frame is samples.score_frame
        assert self._same_frame or samples.reference_frame.shift is None
        self._base = self._described(samples, sample_weight)

    def _described(self, samples: DenseSamples | CSRSamples, sample_weight: torch.Tensor | None) -> Problem:
        problem = Problem(
            **samples.memory(),
            n_samples=samples.n_samples,
            n_features=samples.n_features,
            shift=self._shift.ctypes.data,
            scale=math.ldexp(1.0, -samples.score_frame.exponent),
            weights=None if sample_weight is None else sample_weight.data_ptr(),
        )
        if not self._same_frame:
            problem.reference_scale = math.ldexp(1.0, -samples.reference_frame.exponent)
        return problem

    def _problem(self) -> Problem:
        problem = Problem.from_buffer_copy(self._base)
        if self.samples.norms is not None:
            problem.lengths = self.samples.norms.data_ptr()
        return problem

    def _problem_in(self, cells: Cells) -> Problem:
        problem = self._described(cells.samples, cells.sample_weight)
        cells.lend_to(problem)
        return problem

    def _kernel(self, name: str) -> Callable[..., int]:
        kernel: Callable[..., int] = getattr(self._set.kernels, name)[self._kind]
        return kernel

    def keys(self, centers: np.ndarray) -> PackedKeys:
        """Prepare centers of shape (n_clusters, n_features), given in the reference frame."""
        keys = PackedKeys(self.samples, self._problem(), len(centers))
        keys.take(centers)
        self._kernel("pack")(keys.problem)
        return keys

    def assign_chunk(self, tiles: Ranges, keys: PackedKeys, labels: torch.Tensor) -> None:
        """Write the labels of a chunk of tiles."""
        problem = Problem.from_buffer_copy(keys.problem)
        problem.labels = labels.data_ptr()
        start, stop = tiles[0][0], tiles[-1][1]
        doubtful = np.empty(stop - start, dtype=np.int64)
        count = checked(self._kernel("assign")(problem, start, stop, doubtful.ctypes.data, ctypes.c_int64()))
        if count:
            labels[doubtful[:count]] = self._decide(doubtful[:count], keys)

    def assign_again(self, centers: np.ndarray, labels: torch.Tensor) -> torch.Tensor:
        """As `assign`, given the labels of centers close by; the result is written over them."""
        return self.iterate(centers, labels).labels

    def iterate(self, centers: np.ndarray, previous: torch.Tensor, ahead: Ahead | None = None) -> Iteration:
        """Assign, without the scores that bounds prove needless, and update; see `StreamedCore.iterate`.

        The new labels are written over the previous ones. As long as that is as good as adding up all
        samples, sums are changed by those that change their labels.
        """
        assert self._same_frame
        if self._iterations is None or self._iterations.problem.n_clusters != len(centers):
            self._iterations = self._prepared(len(centers))
        kept = self._iterations
        if ahead:
            ahead = replace(ahead, n_iter=min(ahead.n_iter, 1 + _WORK_ALONE // kept.work))
        kept.begin(centers, previous, ahead)
        call = self._kind, kept.problem, kept.state
        count = checked(self._set.begin_iteration(*call))
        while True:
            decided = self._decide(kept.doubtful[:count], kept) if count else _NOTHING
            count = checked(self._set.end_iteration(*call, decided.data_ptr(), count))
            if not count:
                return kept.end()

    def _prepared(self, n_clusters: int) -> _Iterations:
        """Return what iterations with so many centers need."""
        samples, chunk_rows = self.samples, self._chunk_rows(n_clusters)
        if self._worth_cells(n_clusters):
            cells = self._cells
            return _Iterations(cells.samples, self._problem_in(cells), n_clusters, chunk_rows, cells)
        bounded = self._worth_bounds(n_clusters)
        return _Iterations(samples, self._problem(), n_clusters, chunk_rows, bounded)

    def _worth_bounds(self, n_clusters: int) -> bool:
        samples = self.samples
        work = samples.n_samples * n_clusters * (samples.n_features + 5)
        return self.keeps_bounds and samples.norms is not None and work >= _WORTH_BOUNDS

    def _worth_cells(self, n_clusters: int) -> bool:
        n_samples, n_features = self.samples.n_samples, self.samples.n_features
        many = n_samples * n_clusters >= _WORTH_CELLS * 4**n_features
        return many and n_samples * n_features <= _MOST_IN_CELLS and self._worth_bounds(n_clusters)

    @functools.cached_property
    def _cells(self) -> Cells:
        assert isinstance(self.samples, DenseSamples)
        cells = Cells(self.samples, self.sample_weight)
        self._kernel("enclose")(self._problem_in(cells), 0, self.samples.n_samples)
        return cells

    def _decide(self, doubtful: np.ndarray, keys: PackedKeys) -> torch.Tensor:
        """Return the labels of doubtful samples by the plain rule."""
        labels = torch.empty(len(doubtful), dtype=torch.int32)
        size = self._tile_rows(keys.problem.n_clusters)
        for start in range(0, len(doubtful), size):
            index = torch.from_numpy(doubtful[start : start + size])
            labels[start : start + size] = nearest(keys.samples.tile_of(index), keys.plain)
        return labels

    def squares_chunk(
        self, tiles: Ranges, centers: np.ndarray, labels: torch.Tensor, squared: torch.Tensor
    ) -> None:
        """Write the squared distances of a chunk of tiles to ``centers[labels]``."""
        problem, centers = self._problem(), np.ascontiguousarray(centers)
        problem.centers, problem.labels = centers.ctypes.data, labels.data_ptr()
        point = np.empty(self.samples.n_features)
        self._kernel("squares")(problem, tiles[0][0], tiles[-1][1], point.ctypes.data, squared.data_ptr())

    def seeding(self, weights: np.ndarray | None, first: int, n_trials: int, n_centers: int = 1) -> Seeding:
        """Begin a greedy k-means++; see `StreamedCore.seeding`."""
        if n_trials > MOST_TRIALS:
            return super().seeding(weights, first, n_trials, n_centers)
        many = n_centers >= _CENTERS_WORTH_CELLS
        cells = self._cells if many and self._worth_cells(n_centers) else None
        problem = self._problem_in(cells) if cells else self._problem()
        return CompiledSeeding(self, self._set, problem, weights, first, cells)

    def moments(self) -> Moments:
        """Return the sums over all samples that no iteration changes; keep the samples' lengths too."""
        assert self._same_frame
        samples, problem = self.samples, self._problem()
        norms = torch.empty(samples.n_samples, dtype=samples.dtype)
        problem.lengths, found = norms.data_ptr(), np.empty(samples.n_features + 2)
        crew = Crew(self._chunk_rows(1), n_threads())
        checked(self._set.moments(self._kind, problem, crew, found.ctypes.data))
        samples.norms = norms
        return Moments(torch.from_numpy(found[:-2]), float(found[-2]), float(found[-1]))

    def _chunk_rows(self, n_clusters: int) -> int:
        """Return how many samples are worth a call, and the sums that a chunk of them has of its own."""
        samples, tile = self.samples, self._tile_rows(n_clusters)
        worth_a_call = _CHUNK_WORK // (max(n_clusters, 16) * (samples.row_size + 8))
        rows = max(worth_a_call, 2 * n_clusters * samples.n_features // samples.row_size)
        return tile * max(-(-samples.n_samples // tile // _MAX_CHUNKS), rows // tile, 1)

    def _chunks(self, n_clusters: int) -> list[Ranges]:
        if self.samples.n_samples <= self._tile_rows(n_clusters):
            return [[(0, self.samples.n_samples)]]
        tiles = list(itertools.chain.from_iterable(super()._chunks(n_clusters)))
        per_chunk = self._chunk_rows(n_clusters) // self._tile_rows(n_clusters)
        return [tiles[first : first + per_chunk] for first in range(0, len(tiles), per_chunk)]

    def _results(self, work: Callable[[Ranges], Result], n_clusters: int) -> Iterator[Result]:
        chunks = self._chunks(n_clusters)
        return ordered_map(work, chunks) if len(chunks) > 1 else map(work, chunks)
