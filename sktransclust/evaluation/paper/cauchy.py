"""Why Cauchy tasks fail: the same training on tasks that are scaled in other ways (beyond the paper)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from ...tasks import TaskDistribution
from ...training import Recipe, lloyd_step
from ..checkpoints import iterate
from .context import Context
from .profiles import Profile
from .settings import Setting, models
from .tables import tidy

SCALINGS = ("per_dimension", "scalar", "quantile", "clipped")
FAMILIES = ("normal", "cauchy")


@dataclass(frozen=True)
class CauchyScalings:
    """Table of Eq. 20 and of many steps, for each scaling of the tasks a model is trained and tested on.

    Parameters
    ----------
    settings : sequence of Setting
        One for each family and scaling.
    curves : sequence of str
        Which models.
    """

    settings: Sequence[Setting]
    curves: Sequence[str] = ("OH:L2", "BN:L2")

    def recipes(self, profile: Profile) -> list[Recipe]:
        """All models of the table."""
        return [found for *_, found in models(profile, self.settings, self.curves)]

    def measure(self, context: Context) -> pd.DataFrame:
        """Compare each model with Lloyd's iterations on tasks of its own training distribution."""
        rows: list[dict[str, Any]] = []
        for setting, curve, seed, trained in models(context.profile, self.settings, self.curves):
            where = {"family": setting.family, "scaling": setting.scaling, "model": curve, "seed": seed}
            network = context.store.network(trained)
            tasks = self._tasks(context, setting, trained.tasks, seed)
            for metric, value in _compare(network.step, *tasks, context.profile.n_iterations):
                rows.append(where | {"metric": metric, "value": value})
        return tidy(rows)

    def _tasks(
        self, context: Context, setting: Setting, distribution: TaskDistribution, seed: int
    ) -> tuple[Tensor, Tensor]:
        shape = (setting.n_features, setting.n_clusters)
        return context.tasks(distribution, shape, context.profile.n_test_tasks, seed)


def _compare(step: Any, samples: Tensor, centers: Tensor, n_steps: int) -> Iterator[tuple[str, float]]:
    learned = iterate(step, samples, centers, n_steps)
    lloyd = iterate(lloyd_step, samples, centers, n_steps)
    yield "relative_inertia", (learned[1] / lloyd[1]).mean().item()
    yield "log_inertia_less_lloyd", (learned[-1].log() - lloyd[-1].log()).mean().item()
    yield "middle_range", middle_range(samples)


def middle_range(samples: Tensor) -> float:
    """Mean length, in a dimension, of the interval that the middle nine tenths of the samples fill.

    Of the unit cube's 1: near 0 the bulk of the samples is in a small corner of it.
    """
    low, high = samples.quantile(torch.tensor([0.05, 0.95]).to(samples), dim=1)
    return (high - low).mean().item()
