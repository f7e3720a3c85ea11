"""Loss surfaces around trained weights, along two random directions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from ...model import PROJECTION_NAMES, LloydTransformer, embed_centers, embed_samples, lloyd_layer
from ...training import Recipe, inertia, smoothed_inertia
from .context import DIRECTIONS, TEST_TASKS, Context
from .profiles import Profile
from .settings import Setting, recipe
from .tables import tidy

#: Points of the surface computed at once.
CHUNK = 32
#: Losses are given for this many samples, the paper's, whatever a profile's tasks have.
PER_SAMPLES = 512


@dataclass(frozen=True)
class Surfaces:
    """Figure of loss surfaces: one panel a model, seed 0.

    Parameters
    ----------
    panels : sequence of (Setting, str)
        Training setting and curve of each.
    gap : bool, default=False
        Whether the surface is of the smoothed loss less the true one.
    """

    panels: Sequence[tuple[Setting, str]]
    gap: bool = False

    def recipes(self, profile: Profile) -> list[Recipe]:
        """All models of the figure."""
        return [recipe(profile, setting, curve, seed=0) for setting, curve in self.panels]

    def measure(self, context: Context) -> pd.DataFrame:
        """Evaluate the losses on the grid [-1, 1]^2 of Theta + a delta + b eta."""
        rows: list[dict[str, Any]] = []
        for (setting, curve), trained in zip(self.panels, self.recipes(context.profile), strict=True):
            where = {
                "d": setting.n_features,
                "k": setting.n_clusters,
                "tau": setting.tau,
                "family": setting.family,
                "model": curve,
            }
            tasks = context.tasks(
                trained.tasks,
                (setting.n_features, setting.n_clusters),
                context.profile.n_surface_tasks,
                seed=0,
                purpose=TEST_TASKS,
            )
            rows += surface(context, context.store.network(trained), tasks, trained, where)
        return tidy(rows)


def surface(
    context: Context,
    network: LloydTransformer,
    tasks: tuple[Tensor, Tensor],
    trained: Recipe,
    where: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    """Yield the smoothed and the true loss at every point of the grid."""
    weights = torch.stack([network.get_parameter(name).detach() for name in PROJECTION_NAMES])
    generator = context.generator(DIRECTIONS, 0)
    first, second = (row_normalized(weights, generator) for _ in range(2))
    axis = torch.linspace(-1, 1, context.profile.surface_points, device=weights.device)
    points = torch.cartesian_prod(axis, axis)  # (P, 2)
    scale = PER_SAMPLES / trained.tasks.n_samples
    for chunk in points.split(CHUNK):
        a, b = (part[:, None, None, None] for part in chunk.unbind(1))
        for point, smoothed, true in zip(
            chunk.tolist(), *losses(weights + a * first + b * second, tasks, trained), strict=True
        ):
            for metric, value in (("smoothed", smoothed), ("true", true)):
                yield where | {"a": point[0], "b": point[1], "metric": metric, "value": value * scale}


def row_normalized(weights: Tensor, generator: torch.Generator) -> Tensor:
    """Draw a Gaussian direction whose rows have the norms of the rows of the weights (12, e, e)."""
    direction = torch.empty_like(weights).normal_(generator=generator)
    return direction * weights.norm(dim=-1, keepdim=True) / direction.norm(dim=-1, keepdim=True)


@torch.no_grad()
def losses(weights: Tensor, tasks: tuple[Tensor, Tensor], trained: Recipe) -> tuple[list[float], list[float]]:
    """Smoothed and true inertia of S networks (S, 12, e, e), summed over samples, averaged over tasks."""
    samples, centers = (part.expand(len(weights), *part.shape) for part in tasks)  # (S, B, n, d)
    projections = dict(zip(PROJECTION_NAMES, weights.unbind(1), strict=True))
    tokens = embed_samples(samples, trained.model), embed_centers(centers, trained.model)
    found = lloyd_layer(*tokens, projections, trained.model)[1][..., : trained.model.n_features]
    training = trained.training
    smoothed = smoothed_inertia(samples, found, training.smoothing, training.tau)
    return smoothed.mean(dim=1).tolist(), inertia(samples, found).mean(dim=1).tolist()
