"""How far tasks of different families are from each other (Fig. 9, 19)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist

from ...tasks import FAMILIES, TaskDistribution
from ...training import Recipe
from .context import DISSIMILARITY, Context
from .profiles import Profile
from .settings import NORMAL
from .tables import tidy


@dataclass(frozen=True)
class Dissimilarity:
    """Matrix of earth mover's distances between tasks.

    Parameters
    ----------
    tasks_a_family : int
        How many tasks of each family, in the paper's order.
    """

    tasks_a_family: int

    def recipes(self, profile: Profile) -> list[Recipe]:
        """No model takes part."""
        return []

    def measure(self, context: Context) -> pd.DataFrame:
        """Compute the distance of every pair of tasks."""
        return tidy(self._pairs(context))

    def _pairs(self, context: Context) -> Iterator[dict[str, Any]]:
        sets = {family: self._distances(context, family) for family in FAMILIES}
        labels = [(family, task) for family in FAMILIES for task in range(self.tasks_a_family)]
        matrix = earth_movers_distances(np.concatenate(list(sets.values())))
        for (family, task), row in zip(labels, matrix, strict=True):
            for (other_family, other_task), value in zip(labels, row, strict=True):
                yield {
                    "family": family,
                    "task": task,
                    "other_family": other_family,
                    "other_task": other_task,
                    "metric": "emd",
                    "value": value,
                }

    def _distances(self, context: Context, family: str) -> np.ndarray:
        """Squared distances of all samples to all initial centers, a row (n * k) a task."""
        distribution = TaskDistribution(families=(family,), n_samples=context.profile.n_samples)
        shape = (NORMAL.n_features, NORMAL.n_clusters)
        drawn = context.tasks(distribution, shape, self.tasks_a_family, 0, DISSIMILARITY)
        pairs = zip(*(part.double().cpu().numpy() for part in drawn), strict=True)
        return np.stack([cdist(samples, centers, "sqeuclidean").ravel() for samples, centers in pairs])


def earth_movers_distances(values: np.ndarray) -> np.ndarray:
    """Distances (T, T) between T sets of equally many numbers (T, m).

    On the line the best transport keeps the order: the mean difference of the sorted sets.
    """
    ordered = np.sort(values, axis=1)
    return np.stack([np.abs(ordered - row).mean(axis=1) for row in ordered])
