"""Greedy k-means++ on the samples of a core, given the random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from .partial import Closer

if TYPE_CHECKING:
    from .streamed import StreamedCore


class Seeding(Protocol):
    """Centers, all of them samples, to which others are added one by one."""

    def extend(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add centers, each of them the best of a few samples.

        These are drawn with a probability proportional to weight times squared distance to the centers so
        far. The best one is the first of those by which the sum of these becomes least.

        Parameters
        ----------
        shares : ndarray of shape (m, n_trials)
            Uniform numbers in [0, 1): how much of the sum over all samples lies before the one drawn.

        Returns
        -------
        centers : ndarray of shape (m,), int64
            Which samples they are.
        gains : ndarray of shape (m,)
            By how much each has made the sum less.
        """


class PlainSeeding:
    """`Seeding` with any core.

    Parameters
    ----------
    core : StreamedCore
        The samples.
    weights : ndarray of shape (n_samples,), float64, or None
        None for weights of 1.
    first : int
        The sample that is the first center.
    """

    def __init__(self, core: StreamedCore, weights: np.ndarray | None, first: int) -> None:
        n_samples = core.samples.n_samples
        self._core = core
        self._weights = np.ones(n_samples) if weights is None else weights
        self._nearest = np.full(n_samples, np.finfo(np.float64).max)  # squared distance to the centers so far
        self._found = self._closer(np.array([first]), np.zeros(n_samples))  # without a rival, no gain counts
        self._add(0)

    def extend(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add centers; see `Seeding.extend`."""
        centers, gains = np.empty(len(shares), np.int64), np.empty(len(shares))
        for i, row in enumerate(shares):
            candidates = self._draw(row)
            self._found = self._closer(candidates, self._weights)
            best = int(np.argmax(self._found.gains))
            centers[i], gains[i] = candidates[best], self._found.gains[best]
            self._add(best)
        return centers, gains

    def _draw(self, shares: np.ndarray) -> np.ndarray:
        cumulated = np.cumsum(self._weights * self._nearest)
        # Rounding can carry a draw past the end.
        return np.minimum(np.searchsorted(cumulated, shares * cumulated[-1]), len(cumulated) - 1)

    def _add(self, candidate: int) -> None:
        self._nearest[self._found.rows[candidate]] = self._found.squared[candidate]

    def _closer(self, candidates: np.ndarray, weights: np.ndarray) -> Closer:
        points = self._core.samples.rows(candidates).cpu().numpy()
        return self._core.closer(points, self._nearest, weights)
