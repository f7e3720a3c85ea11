"""The streamed attention by compiled kernels, for dense samples on a CPU.

`StreamedCore` is its plain twin. A kernel (kernel.cpp) labels the samples that the error bound of
`nearest` makes certain and adds them up by cluster; the doubtful ones come back and are decided, and
added, as everywhere. So the labels are the same ones, whatever the instruction set. The library is
built when the package is installed with a C++ compiler at hand.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch

from .dense_samples import DenseSamples
from .library import Problem, instruction_sets
from .nearest import Keys, bound_coefficients, nearest
from .partial import Closer, Moments, Partial
from .streamed import Iteration, Ranges, Result, StreamedCore
from .threads import ordered_map

_WORTH_BOUNDS = 2**21  # n_samples * n_clusters * (n_features + 5), from which bounds save more than they cost
_CHUNK_WORK = 2**24  # of a chunk at least, in features of samples times clusters
_MAX_CHUNKS = 64
_PANEL_WIDTH = 6  # at most: the keys whose scores a kernel holds in registers


class PackedKeys:
    """Centers as the kernels read them.

    Parameters
    ----------
    centers : ndarray of shape (n_clusters, n_features), float64, in the reference frame
    samples : DenseSamples
    problem : Problem
        Describes the samples; here it is completed, but for what belongs to a chunk.
    pack : callable
        The kernel that fills in the panels.
    """

    def __init__(
        self, centers: np.ndarray, samples: DenseSamples, problem: Problem, pack: Callable[..., float]
    ) -> None:
        self.centers, self._samples, self.problem = np.ascontiguousarray(centers), samples, problem
        self._score = self.centers
        if samples.score_frame is not samples.reference_frame:
            self._score = samples.score_frame.to_local(samples.reference_frame.to_data(self.centers))
        n_clusters, n_features = centers.shape
        n_panels = -(-n_clusters // _PANEL_WIDTH)
        width = -(-n_clusters // n_panels)
        self._panels = np.empty((n_panels * width, n_features), samples.numpy_dtype)
        self._norms = np.empty(n_panels * width, samples.numpy_dtype)
        problem.n_clusters, problem.n_panels, problem.panel_width = n_clusters, n_panels, width
        problem.centers, problem.keys = self.centers.ctypes.data, self._score.ctypes.data
        problem.panels, problem.key_norms = self._panels.ctypes.data, self._norms.ctypes.data
        problem.reach = reach = pack(problem)
        problem.bound[:] = bound_coefficients(n_features, reach, samples.dtype)
        problem.longest = _longest(reach, n_features, samples.dtype)
        problem.distinct = int(np.isfinite(self._norms[:n_clusters]).all())
        # Differences of such integers, squared and added up over the features, stay below 2^53.
        problem.largest_integer = math.floor(math.sqrt(2.0**51 / n_features))
        if 2.0**-400 < reach < 2.0**400:  # squares of the lattice's unit do not vanish
            problem.lattice = 2.0 ** (math.frexp(reach)[1] + 2 - math.frexp(problem.largest_integer)[1])

    @functools.cached_property
    def plain(self) -> Keys:
        """The same centers for the plain rule."""
        return Keys.of(self.centers, self._samples)


def _longest(reach: float, n_features: int, dtype: torch.dtype) -> float:
    """Return the length up to which a sample's scores cannot overflow; negative for none.

    A score and what is added up for it are at most (r + R)^2. The second order of rounding, of a
    sample's length also, is small only while n_features times the unit roundoff is.
    """
    kind = torch.finfo(dtype)
    return math.sqrt(kind.max) / 4 - reach if n_features * kind.eps <= 2.0**-7 else -1.0


class _Memory:
    """What is carried from one iteration to the next: bounds on distances (bounds.h), and sums.

    They hold for the centers and labels of the last iteration.
    """

    def __init__(self, samples: DenseSamples, n_clusters: int) -> None:
        self.until, self.lower = np.empty((2, samples.n_samples), samples.numpy_dtype)
        self.drift, self.others = np.zeros((2, n_clusters))
        self._own = np.zeros(n_clusters)
        self._total = Partial.zeros(n_clusters, samples.n_features, samples.device)
        self._peaks = np.zeros(n_clusters)  # the largest mass of each cluster while sums were changed
        self._n_changed = 0  # since sums were added up anew
        self._labels: torch.Tensor | None = None
        self._centers = np.empty(0)
        self.bounded = self.only_changes = False

    def follow(self, centers: np.ndarray, labels: torch.Tensor) -> None:
        """Find how far the centers have moved, if `labels` are those of the last iteration."""
        self.bounded = labels is self._labels
        self.only_changes = self.bounded and self._n_changed <= len(labels)
        if self.bounded:
            difference = centers - self._centers
            self._drift_by(np.sqrt(np.einsum("ij,ij->i", difference, difference)) * (1 + 1e-9))
        self._labels, self._centers = None, centers.copy()

    def _drift_by(self, moves: np.ndarray) -> None:
        """Add moves of shape (n_clusters,), rounding up."""
        farthest = int(np.argmax(moves))
        largest = np.full(len(moves), moves[farthest])
        largest[farthest] = np.max(np.delete(moves, farthest), initial=0.0)
        self._own = np.nextafter(self._own + moves, np.inf)
        self.others = np.nextafter(self.others + largest, np.inf)
        self.drift = np.nextafter(self._own + self.others, np.inf)

    def change(self, changes: Partial) -> Partial | None:
        """Return the partial of all samples, given that of the changes; None if they are to be added up anew.

        A sum's rounding is proportional to the mass that it held, so no cluster may have lost most of what it
        held, at its largest, since it was added up.
        """
        changes += self._total
        self._n_changed += changes.n_changed
        masses = changes.masses.numpy()
        self._peaks = np.maximum(self._peaks, masses)
        return changes if (self._peaks <= 8 * masses).all() else None

    def remember(self, labels: torch.Tensor, total: Partial) -> None:
        """Take up the labels and the partial of all samples; changes are counted from 0 if it is new."""
        if not self.only_changes:
            self._n_changed, self._peaks = 0, total.masses.numpy().copy()
        self._labels, self._total = labels, dataclasses.replace(total, n_changed=0)


class CompiledCore(StreamedCore):
    """Hard attention of dense samples on a CPU, by compiled kernels.

    Parameters
    ----------
    samples : DenseSamples
        In the memory of the host.
    sample_weight : Tensor of shape (n_samples,), float64, or None
    instruction_set : str, optional
        One of `instruction_sets()`, by default the last.
    """

    name = "compiled"
    samples: DenseSamples

    def __init__(
        self,
        samples: DenseSamples,
        sample_weight: torch.Tensor | None = None,
        instruction_set: str | None = None,
    ) -> None:
        super().__init__(samples, sample_weight)
        kernels = instruction_sets()[instruction_set or list(instruction_sets())[-1]]
        kind = 0 if samples.dtype == torch.float32 else 1
        self._pack, self._assign = kernels.pack[kind], kernels.assign[kind]
        self._squares, self._moments = kernels.squares[kind], kernels.moments[kind]
        self._add_up, self._closer = kernels.sums[kind], kernels.closer[kind]
        shift = samples.score_frame.shift
        self._shift = np.zeros(samples.n_features) if shift is None else shift
        self._shift = self._shift.astype(samples.numpy_dtype)
        self._same_frame = samples.reference_frame is samples.score_frame
        assert self._same_frame or samples.reference_frame.shift is None
        self._base = Problem(
            values=samples.values.data_ptr(),
            row_stride=samples.values.stride(0),
            column_stride=samples.values.stride(1),
            n_features=samples.n_features,
            shift=self._shift.ctypes.data,
            scale=math.ldexp(1.0, -samples.score_frame.exponent),
            weights=None if sample_weight is None else sample_weight.data_ptr(),
        )
        unit, unit64 = torch.finfo(samples.dtype).eps / 2, torch.finfo(torch.float64).eps / 2
        self._base.certainty = 2.1 * (samples.n_features + 4) * unit64 + 4 * unit
        self._base.length_error = 2.1 * (samples.n_features + 4) * unit
        self._memory: _Memory | None = None
        if not self._same_frame:
            self._base.reference_scale = math.ldexp(1.0, -samples.reference_frame.exponent)

    def _problem(self) -> Problem:
        problem = Problem.from_buffer_copy(self._base)
        if self.samples.norms is not None:
            problem.lengths = self.samples.norms.data_ptr()
        return problem

    def keys(self, centers: np.ndarray) -> PackedKeys:
        """Prepare centers of shape (n_clusters, n_features), given in the reference frame."""
        return PackedKeys(centers, self.samples, self._problem(), self._pack)

    def iterate(self, centers: np.ndarray, previous: torch.Tensor) -> Iteration:
        """Assign, without the scores that bounds prove needless, and update; see `StreamedCore.iterate`.

        Sums are changed by the samples that change their labels, as long as that is as good as adding up all.
        """
        work = self.samples.n_samples * len(centers) * (self.samples.n_features + 5)
        if self.samples.norms is None or work < _WORTH_BOUNDS:
            self._memory = None
        elif self._memory is None or len(self._memory.drift) != len(centers):
            self._memory = _Memory(self.samples, len(centers))
        if self._memory is not None:
            self._memory.follow(centers, previous)
        return super().iterate(centers, previous)

    def total(self, partials: Iterable[Partial], labels: torch.Tensor) -> Partial:
        """Return the partial of all samples."""
        total = super().total(partials, labels)
        if (memory := self._memory) is None:
            return total
        if memory.only_changes:
            n_changed = total.n_changed
            changed = memory.change(total)
            memory.only_changes = changed is not None
            total = self._sums(labels, len(total.weights)) if changed is None else changed
            total.n_changed = n_changed
        memory.remember(labels, total)
        return total

    def _sums(self, labels: torch.Tensor, n_clusters: int) -> Partial:
        """Add up all samples by their labels."""

        def work(tiles: Ranges) -> Partial:
            partial = Partial.zeros(n_clusters, self.samples.n_features, self.samples.device)
            problem = self._problem()
            self._collect(problem, partial, labels)
            self._add_up(problem, tiles[0][0], tiles[-1][1])
            return partial

        return functools.reduce(operator.iadd, self._results(work, n_clusters))

    def _collect(self, problem: Problem, partial: Partial, labels: torch.Tensor) -> None:
        """Let a kernel read and write labels, and add to a partial."""
        problem.labels = labels.data_ptr()
        problem.sums, problem.cluster_weights = partial.sums.data_ptr(), partial.weights.data_ptr()
        problem.masses = partial.masses.data_ptr()

    def assign_chunk(self, tiles: Ranges, keys: PackedKeys, labels: torch.Tensor) -> None:
        """Write the labels of a chunk of tiles."""
        problem = Problem.from_buffer_copy(keys.problem)
        problem.labels = labels.data_ptr()
        doubtful, _ = self._label(tiles, problem)
        for index in self._parts(doubtful, problem.n_clusters):
            labels[index] = nearest(self.samples.tile_of(index), keys.plain).int()

    def iterate_chunk(
        self,
        tiles: Ranges,
        keys: PackedKeys,
        previous: torch.Tensor,
        labels: torch.Tensor,
        partial: Partial,
    ) -> None:
        """Write the labels of a chunk of tiles, and add their samples and their changes to `partial`."""
        assert self._same_frame
        problem = Problem.from_buffer_copy(keys.problem)
        problem.previous = previous.data_ptr()
        self._collect(problem, partial, labels)
        if (memory := self._memory) is not None:
            problem.only_changes = int(memory.only_changes)
            problem.until, problem.lower = memory.until.ctypes.data, memory.lower.ctypes.data
            problem.drift, problem.others = memory.drift.ctypes.data, memory.others.ctypes.data
            problem.bounded = int(memory.bounded)
        doubtful, n_changed = self._label(tiles, problem)
        partial.n_changed += n_changed
        for index in self._parts(doubtful, problem.n_clusters):
            self._decide(index, keys, previous, labels, partial)

    def _decide(
        self,
        index: torch.Tensor,
        keys: PackedKeys,
        previous: torch.Tensor,
        labels: torch.Tensor,
        partial: Partial,
    ) -> None:
        """Do for the doubtful samples at `index` by the plain rule what the kernel does for all others."""
        only_changes = self._memory is not None and self._memory.only_changes
        label = nearest(self.samples.tile_of(index), keys.plain)
        labels[index] = label.int()
        changed = label != previous[index]
        partial.n_changed += int(changed.sum())
        if only_changes:
            index, label = index[changed], label[changed]
        weight = torch.ones(len(index)).double() if self.sample_weight is None else self.sample_weight[index]
        tile = self.samples.tile_of(index)
        changes = [(label, weight)]
        if only_changes:
            changes.insert(0, (previous[index].long(), -weight))
        for cluster, factor in changes:
            partial.add(tile, cluster, factor)
            if self.samples.norms is not None:
                partial.masses.index_add_(0, cluster, factor * self.samples.norms[index])

    def squares_chunk(
        self, tiles: Ranges, centers: np.ndarray, labels: torch.Tensor, squared: torch.Tensor
    ) -> None:
        """Write the squared distances of a chunk of tiles to ``centers[labels]``."""
        problem, centers = self._problem(), np.ascontiguousarray(centers)
        problem.centers, problem.labels = centers.ctypes.data, labels.data_ptr()
        point = np.empty(self.samples.n_features)
        self._squares(problem, tiles[0][0], tiles[-1][1], point.ctypes.data, squared.data_ptr())

    def closer_chunk(
        self, tiles: Ranges, points: np.ndarray, nearest: np.ndarray, weights: np.ndarray
    ) -> Closer:
        """Return which samples of a chunk of tiles are closer to each point than `nearest`."""
        problem, start, stop = self._problem(), tiles[0][0], tiles[-1][1]
        problem.centers, problem.n_clusters = points.ctypes.data, len(points)
        problem.weights = weights.ctypes.data
        rows, squared = (np.empty((len(points), stop - start), dtype) for dtype in (np.int64, np.float64))
        counts, gains = np.zeros(len(points), np.int64), np.zeros(len(points))
        outputs = (array.ctypes.data for array in (nearest, rows, squared, counts, gains))
        if self._closer(problem, start, stop, *outputs) < 0:
            raise MemoryError("The scratch memory of a compiled kernel could not be allocated.")
        return Closer(
            [row[:count].copy() for row, count in zip(rows, counts, strict=True)],
            [found[:count].copy() for found, count in zip(squared, counts, strict=True)],
            gains,
        )

    def moments_chunk(self, tiles: Ranges, moments: Moments, norms: torch.Tensor) -> None:
        """Add a chunk of tiles to `moments`, and write its samples' lengths."""
        assert self._same_frame
        problem, origin = self._problem(), np.zeros(self.samples.n_features)
        problem.centers, problem.lengths = origin.ctypes.data, norms.data_ptr()
        problem.sums = moments.sums.data_ptr()
        point, squares = np.empty(self.samples.n_features), np.zeros(2)
        self._moments(problem, tiles[0][0], tiles[-1][1], point.ctypes.data, squares.ctypes.data)
        moments.squares += float(squares[0])
        moments.weighted_squares += float(squares[1])

    def _chunks(self, n_clusters: int) -> list[Ranges]:
        """Make chunks that are worth a call, and the sums that each has of its own."""
        tiles = list(itertools.chain.from_iterable(super()._chunks(n_clusters)))
        rows = max(_CHUNK_WORK // (max(n_clusters, 16) * (self.samples.n_features + 8)), 2 * n_clusters)
        per_chunk = max(-(-len(tiles) // _MAX_CHUNKS), rows // (tiles[0][1] - tiles[0][0]), 1)
        return [tiles[first : first + per_chunk] for first in range(0, len(tiles), per_chunk)]

    def _results(self, work: Callable[[Ranges], Result], n_clusters: int) -> Iterator[Result]:
        chunks = self._chunks(n_clusters)
        return ordered_map(work, chunks) if len(chunks) > 1 else map(work, chunks)

    def _label(self, tiles: Ranges, problem: Problem) -> tuple[np.ndarray, int]:
        """Run the kernel on a chunk; return the indices of doubtful samples and how many others changed."""
        start, stop = tiles[0][0], tiles[-1][1]
        doubtful = np.empty(stop - start, dtype=np.int64)
        n_changed = ctypes.c_int64()
        count = self._assign(problem, start, stop, doubtful.ctypes.data, n_changed)
        if count < 0:
            raise MemoryError("The scratch memory of a compiled kernel could not be allocated.")
        return doubtful[:count], n_changed.value

    def _parts(self, index: np.ndarray, n_clusters: int) -> tuple[torch.Tensor, ...]:
        """Divide an index into tiles."""
        return torch.from_numpy(index).split(self._tile_rows(n_clusters)) if len(index) else ()
