"""Learned steps taken many times: the mean logarithm of the inertia beside that of Lloyd's iterations."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from ...model import LloydTransformer, embed_centers, embed_samples, lloyd_layer
from ...tasks import TaskDistribution
from ...tasks.starts import kmeans_plus_plus_centers
from ...training import Recipe, inertia, lloyd_step
from ..checkpoints import iterate
from .context import Context
from .profiles import Profile
from .settings import CURVES, NORMAL, Setting, models
from .tables import tidy

LLOYD = "Lloyd"
FROM_KMEANS_PLUS_PLUS = "Lloyd from k-means++"


@dataclass(frozen=True)
class Test:
    """Tasks on which the models of a panel take their steps."""

    title: str
    family: str = "normal"
    scale: float = 0.1
    shape: str = "isotropic"
    mixture_weights: str = "equal"
    n_samples: int = 512  # the paper's, which a profile scales

    def distribution(self, profile: Profile) -> TaskDistribution:
        """Return where the tasks come from."""
        return TaskDistribution(
            families=(self.family,),
            scales=(self.scale,),
            shapes=(self.shape,),
            mixture_weights=(self.mixture_weights,),
            n_samples=profile.scaled(self.n_samples),
        )


@dataclass(frozen=True)
class MultiStep:
    """Figure of steps: one panel for each way of stepping, training setting and test.

    Parameters
    ----------
    tests : sequence of Test
        On what.
    settings : sequence of Setting
        How the models were trained.
    curves : sequence of str
        Which models.
    iterated : bool
        Whether there is also a panel in which Eq. 4 is iterated without embedding anew.
    references : bool
        Whether scikit-learn's KMeans and Lloyd's iterations from k-means++ are drawn too.
    """

    tests: Sequence[Test]
    settings: Sequence[Setting] = (NORMAL,)
    curves: Sequence[str] = CURVES
    iterated: bool = False
    references: bool = False

    def recipes(self, profile: Profile) -> list[Recipe]:
        """All models of the figure."""
        return [found for *_, found in models(profile, self.settings, self.curves)]

    def measure(self, context: Context) -> pd.DataFrame:
        """Let every model take its steps on every test, beside Lloyd's iterations."""
        rows: list[dict[str, Any]] = []
        for test in self.tests:
            for seed in range(context.profile.n_seeds):
                rows += self._one_seed(context, test, seed)
        return tidy(rows)

    def _one_seed(self, context: Context, test: Test, seed: int) -> Iterator[dict[str, Any]]:
        shape = (self.settings[0].n_features, self.settings[0].n_clusters)
        tasks = context.tasks(test.distribution(context.profile), shape, context.profile.n_test_tasks, seed)
        n_steps = context.profile.n_iterations
        where = {"test": test.title, "seed": seed}
        black = {LLOYD: iterate(lloyd_step, *tasks, n_steps)}
        if self.references:
            black |= references(*tasks, n_steps, context.generator(1, seed), seed)
        for name, objectives in black.items():
            for setting in self.settings:
                for stepping in self._steppings():
                    yield from steps(where | self._trained(setting, stepping, name), objectives)
        for setting, curve, model_seed, trained in models(context.profile, self.settings, self.curves):
            if model_seed == seed:
                network = context.store.network(trained)
                for stepping, run in self._steppings().items():
                    objectives = run(network, *tasks, n_steps)
                    yield from steps(where | self._trained(setting, stepping, curve), objectives)

    def _steppings(self) -> dict[str, Callable[[LloydTransformer, Tensor, Tensor, int], Tensor]]:
        return (
            {"Eq. 4 iterated": eq4_iterated, "re-embedded": reembedded}
            if self.iterated
            else {"re-embedded": reembedded}
        )

    def _trained(self, setting: Setting, stepping: str, model: str) -> dict[str, Any]:
        return {"trained_on": setting.family, "stepping": stepping, "model": model}


def reembedded(network: LloydTransformer, samples: Tensor, centers: Tensor, n_steps: int) -> Tensor:
    """Objectives (n_steps + 1, B) of steps on fresh tokens."""
    return iterate(network.step, samples, centers, n_steps)


@torch.no_grad()
def eq4_iterated(network: LloydTransformer, samples: Tensor, centers: Tensor, n_steps: int) -> Tensor:
    """Objectives (n_steps + 1, B) of a layer applied again and again to its own tokens (Eq. 4).

    In float64: the tokens of learned networks grow beyond what float32 can square.
    """
    network, samples, centers = network.double(), samples.double(), centers.double()
    x, c = embed_samples(samples, network.config), embed_centers(centers, network.config)
    projections = dict(network.named_parameters())
    objectives = [inertia(samples, centers)]
    for _ in range(n_steps):
        x, c = lloyd_layer(x, c, projections, network.config)
        objectives.append(inertia(samples, c[..., : centers.shape[-1]]))
    network.float()
    return torch.stack(objectives)


def references(
    samples: Tensor, centers: Tensor, n_steps: int, generator: torch.Generator, seed: int
) -> dict[str, Tensor]:
    """Objectives of what a user has without learned steps; KMeans's final ones at every step."""
    start = kmeans_plus_plus_centers(samples, centers.shape[1], generator)
    found = {FROM_KMEANS_PLUS_PLUS: iterate(lloyd_step, samples, start, n_steps)}
    for n_init in (1, 10):
        final = [
            KMeans(centers.shape[1], n_init=n_init, random_state=seed).fit(task).inertia_
            for task in samples.double().cpu().numpy()
        ]
        found[f"KMeans, n_init={n_init}"] = torch.tensor([final] * (n_steps + 1))
    return found


def steps(where: dict[str, Any], objectives: Tensor) -> Iterator[dict[str, Any]]:
    """Yield a row a step: the mean over the tasks of the logarithm of the objective."""
    for step, value in enumerate(objectives.log().mean(dim=1).tolist()):
        yield where | {"step": step, "metric": "log_inertia", "value": value}
