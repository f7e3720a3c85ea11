"""The attention core in plain PyTorch: assign and update, without the n x k matrix.

Samples are read in tiles of a fixed number of rows. For each tile, the nearest center of
each sample is found (assign) and the samples are added up by cluster into a `Partial`
(update). Several tiles make a chunk, the unit of work of a thread. Chunks depend on the shape
of the problem alone and their partials are added in order, so that the result has the same
bits for any number of threads.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch

from .nearest import Keys, nearest
from .partial import Closer, Moments, Partial
from .samples import Samples, pairwise_squares
from .seeding import PlainSeeding, Seeding
from .threads import ordered_map

Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., Any])
Ranges = list[tuple[int, int]]

_TILE_ELEMENTS = {"cpu": 2**18, "cuda": 2**26}  # scores, or stored numbers, of one tile
_TILE_ROWS = {"cpu": (64, 8192), "cuda": (1024, 2**20)}
_MAX_CHUNKS = 64


def _with_smaller_tiles(method: Method) -> Method:
    """Start `method` again with tiles of half the size when the device runs out of memory."""

    @functools.wraps(method)
    def retrying(core: StreamedCore, *args: Any) -> Any:
        while True:
            try:
                return method(core, *args)
            except torch.cuda.OutOfMemoryError:
                if not core.halve_tiles():
                    raise
                torch.cuda.empty_cache()

    return retrying  # type: ignore[return-value]


@dataclass(frozen=True)
class Ahead:
    """How far a core may iterate on its own, where nobody is told of each iteration.

    It may go on from the means as long as labels change, no cluster is empty, and these bounds are exceeded.

    Attributes
    ----------
    n_iter : int
        Iterations at most; a core may do fewer.
    tol : float
        Bound on `Iteration.shift`.
    least_spread : float
        Bound on `Iteration.spread`.
    """

    n_iter: int
    tol: float
    least_spread: float


@dataclass
class Iteration:
    """What an iteration finds, the last of those that a core has done on its own.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_features), float64
        Where it began.
    labels : Tensor of shape (n_samples,), int32
    means : ndarray of shape (n_clusters, n_features), float64
        Weighted mean of each cluster; the old center where the cluster is empty.
    weights : ndarray of shape (n_clusters,), float64
        Total weight of each cluster.
    n_changed : int
        How many samples have another label than before.
    shift : float
        Sum of the squared distances from `centers` to `means`.
    spread : float
        The inertia of `centers`, less the weighted squared lengths of the samples.
    passed : tuple of float
        The spreads of the iterations before this one.
    """

    centers: np.ndarray
    labels: torch.Tensor
    means: np.ndarray
    weights: np.ndarray
    n_changed: int
    shift: float
    spread: float
    passed: tuple[float, ...] = ()

    @classmethod
    def measured(
        cls, centers: np.ndarray, labels: torch.Tensor, means: np.ndarray, weights: np.ndarray, n_changed: int
    ) -> Iteration:
        """Return an iteration, and find its shift and its spread.

        Within a cluster, the sum of squares around c is that around 0, less W |m|^2, plus W |m - c|^2. Frames
        keep centers near enough for finite squares, so that an empty cluster adds nothing.
        """
        difference = means - centers
        moves = np.einsum("ij,ij->i", difference, difference)
        spread = float(weights @ (moves - np.einsum("ij,ij->i", means, means)))
        return cls(centers, labels, means, weights, n_changed, float(moves.sum()), spread)


class StreamedCore:
    """Hard attention of samples on centers, tile by tile.

    Parameters
    ----------
    samples : Samples
        The data and their frames; centers are given, and sums returned, in the reference frame.
    sample_weight : Tensor of shape (n_samples,), float64, on the samples' device, or None
        None for weights of 1.
    """

    name = "streamed"

    def __init__(self, samples: Samples, sample_weight: torch.Tensor | None = None) -> None:
        self.samples = samples
        self.sample_weight = sample_weight
        self._tile_divisor = 1

    @_with_smaller_tiles
    def assign(self, centers: np.ndarray) -> torch.Tensor:
        """Return the index of the nearest center of each sample: shape (n_samples,), int32."""
        keys = self.keys(centers)
        labels = self._empty_labels()

        def work(tiles: Ranges) -> None:
            self.assign_chunk(tiles, keys, labels)

        self.run(work, len(centers))
        return labels

    def assign_again(self, centers: np.ndarray, labels: torch.Tensor) -> torch.Tensor:
        """As `assign`, given the labels of centers close by, which the result may be written over."""
        return self.assign(centers)

    def keys(self, centers: np.ndarray) -> Any:
        """Prepare centers of shape (n_clusters, n_features), given in the reference frame."""
        return Keys.of(centers, self.samples)

    def assign_chunk(self, tiles: Ranges, keys: Any, labels: torch.Tensor) -> None:
        """Write the labels of a chunk of tiles; `keys` is what the method `keys` returns."""
        for start, stop in tiles:
            labels[start:stop] = nearest(self.samples.tile(start, stop), keys)

    @_with_smaller_tiles
    def iterate(self, centers: np.ndarray, previous: torch.Tensor, ahead: Ahead | None = None) -> Iteration:
        """Assign, and move each center to the mean of its samples; one without samples stays.

        Parameters
        ----------
        centers : ndarray of shape (n_clusters, n_features), float64
        previous : Tensor of shape (n_samples,), int32
            Labels of the iteration before, to count the changes against.
        ahead : Ahead, optional
            How many iterations may follow; here, none does.
        """
        keys = self.keys(centers)
        labels = self._empty_labels()

        def work(tiles: Ranges) -> Partial:
            partial = Partial.zeros(len(centers), self.samples.n_features, self.samples.device)
            self.iterate_chunk(tiles, keys, previous, labels, partial)
            return partial

        total = functools.reduce(operator.iadd, self._results(work, len(centers)))
        sums, weights = total.sums.cpu().numpy(), total.weights.cpu().numpy().copy()
        means = centers.copy()
        np.divide(sums, weights[:, None], out=means, where=weights[:, None] > 0)
        return Iteration.measured(centers, labels, means, weights, total.n_changed)

    def iterate_chunk(
        self, tiles: Ranges, keys: Any, previous: torch.Tensor, labels: torch.Tensor, partial: Partial
    ) -> None:
        """Write the labels of a chunk of tiles, and add their samples and their changes to `partial`."""
        for start, stop in tiles:
            tile = self.samples.tile(start, stop)
            label = nearest(tile, keys)
            labels[start:stop] = label
            partial.add(tile, label, self._weights(start, stop))
            partial.n_changed += int((label != previous[start:stop]).sum())

    @_with_smaller_tiles
    def squared_distances(self, centers: np.ndarray, labels: torch.Tensor) -> torch.Tensor:
        """Return squared distances to ``centers[labels]``: shape (n_samples,), float64.

        By direct differences in the reference frame; samples of weight 0 have distance 0.
        """
        squared = torch.empty(self.samples.n_samples, dtype=torch.float64, device=self.samples.device)

        def work(tiles: Ranges) -> None:
            self.squares_chunk(tiles, centers, labels, squared)

        self.run(work, 1)
        if self.sample_weight is not None:
            squared[self.sample_weight == 0] = 0.0
        return squared

    def squares_chunk(
        self, tiles: Ranges, centers: np.ndarray, labels: torch.Tensor, squared: torch.Tensor
    ) -> None:
        """Write the squared distances of a chunk of tiles to ``centers[labels]``."""
        reference = torch.as_tensor(centers).to(self.samples.device)
        for start, stop in tiles:
            tile, label = self.samples.tile(start, stop), labels[start:stop].long()
            squared[start:stop] = tile.squared_distances(reference, label)

    def inertia(self, centers: np.ndarray, labels: torch.Tensor) -> float:
        """Return the weighted sum of squared distances to ``centers[labels]``."""
        squared = self.squared_distances(centers, labels)
        if self.sample_weight is not None:
            squared *= self.sample_weight
        return float(np.sum(squared.cpu().numpy()))  # pairwise and on one thread: one order

    def seeding(self, weights: np.ndarray | None, first: int, n_trials: int, n_centers: int = 1) -> Seeding:
        """Begin a greedy k-means++ with a sample as the first center.

        Parameters
        ----------
        weights : ndarray of shape (n_samples,), float64, or None
            None for weights of 1.
        first : int
            The sample.
        n_trials : int
            Candidates for each further center.
        n_centers : int
            About how many there will be: what is worth preparing depends on it.
        """
        return PlainSeeding(self, weights, first)

    @_with_smaller_tiles
    def closer(self, points: np.ndarray, nearest: np.ndarray, weights: np.ndarray) -> Closer:
        """Find the samples that are closer to some of them than `nearest`.

        Parameters
        ----------
        points : ndarray of shape (m, n_features), float64
            Samples, in the reference frame.
        nearest : ndarray of shape (n_samples,), float64
            Squared distances.
        weights : ndarray of shape (n_samples,), float64
            For the gains.
        """
        points = np.ascontiguousarray(points)

        def work(tiles: Ranges) -> Closer:
            return self.closer_chunk(tiles, points, nearest, weights)

        return Closer.joined(self._results(work, len(points)))

    def closer_chunk(
        self, tiles: Ranges, points: np.ndarray, nearest: np.ndarray, weights: np.ndarray
    ) -> Closer:
        """Return which samples of a chunk of tiles are closer to each point than `nearest`."""
        parts = []
        for start, stop in tiles:
            squared = self.pairs(start, stop, points).T  # (m, tile)
            rows = [start + np.flatnonzero(distances < nearest[start:stop]) for distances in squared]
            found = [distances[row - start] for distances, row in zip(squared, rows, strict=True)]
            gains = [weights[row] @ (nearest[row] - less) for row, less in zip(rows, found, strict=True)]
            parts.append(Closer(rows, found, np.array(gains)))
        return Closer.joined(parts)

    def pairs(self, start: int, stop: int, points: np.ndarray) -> np.ndarray:
        """Return squared distances of samples start..stop to points of shape (m, n_features), float64.

        In the reference frame; the result is of shape (stop - start, m).
        """
        reference = torch.as_tensor(points).to(self.samples.device)
        return pairwise_squares(self.samples.tile(start, stop), reference).cpu().numpy()

    @_with_smaller_tiles
    def moments(self) -> Moments:
        """Return the sums over all samples that no iteration changes; keep the samples' lengths too."""
        norms = torch.empty(self.samples.n_samples, dtype=self.samples.dtype, device=self.samples.device)

        def work(tiles: Ranges) -> Moments:
            moments = Moments.zeros(self.samples.n_features, self.samples.device)
            self.moments_chunk(tiles, moments, norms)
            return moments

        total = functools.reduce(operator.iadd, self._results(work, 1))
        self.samples.norms = norms
        return total

    def moments_chunk(self, tiles: Ranges, moments: Moments, norms: torch.Tensor) -> None:
        """Add a chunk of tiles to `moments`, and write its samples' lengths."""
        for start, stop in tiles:
            tile = self.samples.tile(start, stop)
            norms[start:stop] = tile.norms()
            moments.add(tile, self._weights(start, stop))

    @_with_smaller_tiles
    def distances(self, centers: np.ndarray, out: np.ndarray) -> None:
        """Write the distance of each sample to each center, in the reference frame, to `out`.

        Parameters
        ----------
        centers : ndarray of shape (n_clusters, n_features), float64
        out : ndarray of shape (n_samples, n_clusters)
        """
        reference = torch.as_tensor(centers).to(self.samples.device)
        target = torch.from_numpy(out)

        def work(tiles: Ranges) -> None:
            for start, stop in tiles:
                target[start:stop] = self.samples.tile(start, stop).distances(reference)

        self.run(work, len(centers))

    def run(self, work: Callable[[Ranges], None], n_clusters: int) -> None:
        """Call `work` with each chunk of tiles, sized for `n_clusters` scores a sample."""
        for _ in self._results(work, n_clusters):
            pass

    def halve_tiles(self) -> bool:
        """Use tiles of half as many rows from now on, with a warning; False if they are at their least."""
        rows = self._tile_rows(1)
        if rows <= _TILE_ROWS["cuda"][0] // 16:
            return False
        self._tile_divisor *= 2
        warnings.warn(
            f"Out of memory on {self.samples.device}; going on with tiles of {rows // 2} samples.",
            RuntimeWarning,
            stacklevel=4,
        )
        return True

    def _weights(self, start: int, stop: int) -> torch.Tensor | None:
        return None if self.sample_weight is None else self.sample_weight[start:stop]

    def _empty_labels(self) -> torch.Tensor:
        return torch.empty(self.samples.n_samples, dtype=torch.int32, device=self.samples.device)

    def _tile_rows(self, n_clusters: int) -> int:
        kind = self.samples.device.type
        least, most = _TILE_ROWS[kind]
        rows = _TILE_ELEMENTS[kind] // max(n_clusters, self.samples.row_size)
        return min(max(rows, least), most) // self._tile_divisor

    def _chunks(self, n_clusters: int) -> list[Ranges]:
        n_samples, rows = self.samples.n_samples, self._tile_rows(n_clusters)
        starts = range(0, n_samples, rows)
        tiles = [(start, min(start + rows, n_samples)) for start in starts]
        per_chunk = -(-len(tiles) // _MAX_CHUNKS)
        return [tiles[first : first + per_chunk] for first in range(0, len(tiles), per_chunk)]

    def _results(self, work: Callable[[Ranges], Result], n_clusters: int) -> Iterator[Result]:
        chunks = self._chunks(n_clusters)
        return ordered_map(work, chunks) if self.samples.device.type == "cpu" else map(work, chunks)
