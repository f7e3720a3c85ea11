"""The passes of greedy k-means++ over the samples: draws, gains of candidates, moves to new centers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from .partial import Closer

if TYPE_CHECKING:
    from .streamed import StreamedCore


class Seeding(Protocol):
    """Centers, all of them samples, to which others are added one by one."""

    def draw(self, shares: np.ndarray) -> np.ndarray:
        """Draw samples with a probability proportional to weight times squared distance to the centers.

        Parameters
        ----------
        shares : ndarray of shape (m,)
            Uniform numbers in [0, 1): how much of the sum over all samples lies before the one drawn.

        Returns
        -------
        samples : ndarray of shape (m,), int64
        """

    def gains(self, candidates: np.ndarray) -> np.ndarray:
        """Return by how much the weighted squared distances would become less: shape (m,).

        Parameters
        ----------
        candidates : ndarray of shape (m,), int64
            Samples, each of which could be the next center.
        """

    def add(self, candidate: int) -> None:
        """Make one of the last candidates a center, given its place among them."""


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
        self.add(0)

    def draw(self, shares: np.ndarray) -> np.ndarray:
        """Draw samples; see `Seeding.draw`."""
        cumulated = np.cumsum(self._weights * self._nearest)
        # Rounding can carry a draw past the end.
        return np.minimum(np.searchsorted(cumulated, shares * cumulated[-1]), len(cumulated) - 1)

    def gains(self, candidates: np.ndarray) -> np.ndarray:
        """Return what candidates would gain; see `Seeding.gains`."""
        self._found = self._closer(candidates, self._weights)
        return self._found.gains

    def add(self, candidate: int) -> None:
        """Make one of the last candidates a center, given its place among them."""
        self._nearest[self._found.rows[candidate]] = self._found.squared[candidate]

    def _closer(self, candidates: np.ndarray, weights: np.ndarray) -> Closer:
        points = self._core.samples.rows(candidates).cpu().numpy()
        return self._core.closer(points, self._nearest, weights)
