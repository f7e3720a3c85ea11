"""What the ways of scaling leave of Cauchy and other tasks, without any training (beyond the paper)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
from torch import Tensor

from ...tasks import FAMILIES, TaskDistribution
from ...training import Recipe, inertia, lloyd_step, smoothed_inertia
from ...training.loss import squared_distances
from .cauchy import SCALINGS, middle_range
from .context import Context
from .profiles import Profile
from .settings import NORMAL
from .tables import tidy

FAR = 0.01  # of the samples


@dataclass(frozen=True)
class ScaledTasks:
    """Table of what the samples look like, and of what the loss sees, after Lloyd's iterations."""

    def recipes(self, profile: Profile) -> list[Recipe]:
        """No model takes part."""
        return []

    def measure(self, context: Context) -> pd.DataFrame:
        """Draw tasks of every family and scaling, and let Lloyd's iterations cluster them."""
        rows: list[dict[str, Any]] = []
        for family in FAMILIES:
            for scaling in SCALINGS:
                for seed in range(context.profile.n_seeds):
                    where = {"family": family, "scaling": scaling, "model": "Lloyd", "seed": seed}
                    tasks = self._tasks(context, family, scaling, seed)
                    for metric, value in _describe(*tasks, context.profile.n_iterations):
                        rows.append(where | {"metric": metric, "value": value})
        return tidy(rows)

    def _tasks(self, context: Context, family: str, scaling: str, seed: int) -> tuple[Tensor, Tensor]:
        distribution = TaskDistribution(
            families=(family,), scalings=(scaling,), n_samples=context.profile.n_samples
        )
        shape = (NORMAL.n_features, NORMAL.n_clusters)
        return context.tasks(distribution, shape, context.profile.n_surface_tasks, seed)


def _describe(samples: Tensor, start: Tensor, n_steps: int) -> Iterator[tuple[str, float]]:
    """Yield the table's numbers, most of them medians over the tasks, at Lloyd's last centers.

    In float64: where tails stay, squares of coordinates are beyond what float32 resolves.
    """
    samples, start = samples.double(), start.double()
    centers = start
    for _ in range(n_steps):
        centers = lloyd_step(samples, centers)
    reached = inertia(samples, centers)
    smoothed = smoothed_inertia(samples, centers, "l2", NORMAL.tau)
    yield "middle_range", middle_range(samples)
    yield "margin", margins(samples, centers).median().item()
    yield "smoothed", (smoothed / reached).median().item()
    yield "far_share", far_shares(samples, centers).median().item()
    yield "gain", (inertia(samples, start) / reached).median().item()


def margins(samples: Tensor, centers: Tensor) -> Tensor:
    """How much farther the second nearest center is, in tau: the median over the samples (B,).

    A margin of squared distances below 1 gives both centers a part of the smoothed loss (L2).
    """
    nearest = squared_distances(samples, centers).topk(2, dim=-1, largest=False).values
    return (nearest[..., 1] - nearest[..., 0]).median(dim=-1).values / NORMAL.tau


def far_shares(samples: Tensor, centers: Tensor) -> Tensor:
    """Share (B,) of the objective that the farthest samples have."""
    least = squared_distances(samples, centers).amin(dim=-1)  # (B, n)
    n_far = max(1, round(FAR * least.shape[-1]))
    return least.topk(n_far, dim=-1).values.sum(dim=-1) / least.sum(dim=-1)
