"""What a range of samples contributes: small, and added up in a fixed order.

Partials of neighbouring ranges add up to the partial of both. Nothing else needs to travel
between threads, devices or machines but the centers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from .samples import Tile, cluster_sums


@dataclass
class Partial:
    """Samples added up by cluster, given their labels.

    Attributes
    ----------
    sums : Tensor of shape (n_clusters, n_features), float64
        Weighted sum of the samples of each cluster, in the reference frame.
    weights : Tensor of shape (n_clusters,), float64
        Total weight of each cluster.
    n_changed : int
        How many samples have another label than before.
    """

    sums: torch.Tensor
    weights: torch.Tensor
    n_changed: int = 0

    @classmethod
    def zeros(cls, n_clusters: int, n_features: int, device: torch.device) -> Partial:
        """Return the partial of no samples."""
        sums = torch.zeros(n_clusters, n_features, dtype=torch.float64, device=device)
        return cls(sums, torch.zeros(n_clusters, dtype=torch.float64, device=device))

    def add(self, tile: Tile, labels: torch.Tensor, weights: torch.Tensor | None) -> None:
        """Add a tile's samples; `labels` (int64) and `weights` (None: 1) are of shape (tile,)."""
        tile.add_to(self.sums, labels, weights)
        if weights is None:
            self.weights += torch.bincount(labels, minlength=len(self.weights))
        else:
            cluster_sums(self.weights, weights, labels)

    def __iadd__(self, other: Partial) -> Partial:
        """Add the samples of `other`."""
        self.sums += other.sums
        self.weights += other.weights
        self.n_changed += other.n_changed
        return self


@dataclass
class Moments:
    """Sums over samples that do not depend on any centers, in the reference frame.

    Attributes
    ----------
    sums : Tensor of shape (n_features,), float64
        Sum of the samples.
    squares : float
        Sum of their squared lengths.
    weighted_squares : float
        The same, each times its weight.
    """

    sums: torch.Tensor
    squares: float = 0.0
    weighted_squares: float = 0.0

    @classmethod
    def zeros(cls, n_features: int, device: torch.device) -> Moments:
        """Return the moments of no samples."""
        return cls(torch.zeros(n_features, dtype=torch.float64, device=device))

    def add(self, tile: Tile, weights: torch.Tensor | None) -> None:
        """Add a tile's samples; `weights` is of shape (tile,), or None for 1."""
        squares = tile.squares()
        nothing = torch.zeros(len(squares), dtype=torch.int64, device=squares.device)
        tile.add_to(self.sums[None], nothing, None)
        self.squares += float(squares.sum())
        self.weighted_squares += float((squares if weights is None else squares * weights).sum())

    def __iadd__(self, other: Moments) -> Moments:
        """Add the samples of `other`."""
        self.sums += other.sums
        self.squares += other.squares
        self.weighted_squares += other.weighted_squares
        return self


@dataclass
class Closer:
    """Which samples of a range are closer to some points than to the centers so far.

    Attributes
    ----------
    rows : list of ndarray of shape (n_closer,), int64
        For each point, the indices of samples that are closer to it, in order.
    squared : list of ndarray of shape (n_closer,), float64
        Their squared distances to the point, in the reference frame.
    gains : ndarray of shape (n_points,), float64
        By how much the weighted squared distances of all of them become less.
    """

    rows: list[np.ndarray]
    squared: list[np.ndarray]
    gains: np.ndarray

    @classmethod
    def joined(cls, parts: Iterable[Closer]) -> Closer:
        """Return what several ranges contribute, in their order."""
        found = list(parts)
        rows, squared = (
            [np.concatenate(of_point) for of_point in zip(*(getattr(f, name) for f in found), strict=True)]
            for name in ("rows", "squared")
        )
        return cls(rows, squared, np.sum([f.gains for f in found], axis=0))
