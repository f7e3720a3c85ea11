"""Many steps of the networks that come with the package, beside what a user has without them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...checkpoint import load_checkpoint
from ...training import Recipe, lloyd_step
from ..checkpoints import iterate
from .context import Context
from .multistep import LLOYD, Test, references, steps
from .profiles import Profile
from .tables import tidy


@dataclass(frozen=True)
class Bundled:
    """Figure of steps, one panel a test.

    Parameters
    ----------
    checkpoints : mapping of str to str
        Curve to the name of a network that comes with the package; all of one shape.
    tests : sequence of Test
        On what.
    """

    checkpoints: Mapping[str, str]
    tests: Sequence[Test]

    def recipes(self, profile: Profile) -> list[Recipe]:
        """No model is trained for it."""
        return []

    def measure(self, context: Context) -> pd.DataFrame:
        """Let every network take its steps on every test, beside KMeans and Lloyd's iterations."""
        networks = {curve: load_checkpoint(name) for curve, name in self.checkpoints.items()}
        config = next(iter(networks.values())).config
        steppers = {LLOYD: lloyd_step}
        steppers |= {curve: network.to(context.device).step for curve, network in networks.items()}
        n_steps = context.profile.n_iterations
        rows: list[dict[str, Any]] = []
        for test in self.tests:
            for seed in range(context.profile.n_seeds):
                tasks = context.tasks(
                    test.distribution(context.profile),
                    (config.n_features, config.n_clusters),
                    context.profile.n_test_tasks,
                    seed,
                )
                found = {name: iterate(step, *tasks, n_steps) for name, step in steppers.items()}
                found |= references(*tasks, n_steps, context.generator(1, seed), seed)
                for name, objectives in found.items():
                    where = {"test": test.title, "trained_on": "mixture", "stepping": "re-embedded"}
                    rows += steps(where | {"model": name, "seed": seed}, objectives)
        return tidy(rows)
