"""Training curves: the smoothed loss and Eq. 20, validation by validation."""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ...training import Recipe, Trainer
from .context import Context
from .profiles import Profile
from .settings import CURVES, Setting, models, recipe
from .tables import tidy

#: Steps over which the time of a step is measured, several times in turn with the other models.
TIMED_STEPS = 10


@dataclass(frozen=True)
class TrainingCurves:
    """Figure of training curves: blocks of panels, each panel one setting with up to six curves.

    Parameters
    ----------
    blocks : mapping of str to sequence of Setting
        Title of each block, and its panels.
    curves : sequence of str
        Which curves a panel has.
    until : float, default=1
        Part of the profile's M that is shown.
    timed : bool, default=False
        Whether the time of a step is measured too.
    """

    blocks: Mapping[str, Sequence[Setting]]
    curves: Sequence[str] = CURVES
    until: float = 1.0
    timed: bool = False

    def recipes(self, profile: Profile) -> list[Recipe]:
        """All models of the figure."""
        return [
            found for settings in self.blocks.values() for *_, found in models(profile, settings, self.curves)
        ]

    def measure(self, context: Context) -> pd.DataFrame:
        """Read the histories of the models, and time their steps if the figure shows time."""
        rows = list(self._histories(context))
        if self.timed:
            for block, settings in self.blocks.items():
                for setting in settings:
                    rows += self._times(context, block, setting)
        return tidy(rows)

    def _histories(self, context: Context) -> Iterator[dict[str, Any]]:
        last = context.profile.n_steps * self.until
        for block, settings in self.blocks.items():
            for setting, curve, seed, trained in models(context.profile, settings, self.curves):
                where = self._where(context.profile, block, setting) | {"model": curve, "seed": seed}
                for point in context.store.history(trained):
                    if point.step > last:
                        break
                    for metric in ("loss", "relative_inertia", "diverged"):
                        value = float(getattr(point, metric))
                        if metric != "diverged" or value:
                            yield where | {"step": point.step, "metric": metric, "value": value}

    def _times(self, context: Context, block: str, setting: Setting) -> Iterator[dict[str, Any]]:
        """Measure a step of each curve's model, trained alone, in turn with the others."""
        recipes = [recipe(context.profile, setting, curve, seed=0) for curve in self.curves]
        rounds = max(context.profile.repetitions // 2, 2)
        for curve, seconds in zip(self.curves, seconds_a_step(recipes, rounds, context), strict=True):
            where = self._where(context.profile, block, setting)
            yield where | {"model": curve, "metric": "seconds_a_step", "value": seconds}

    def _where(self, profile: Profile, block: str, setting: Setting) -> dict[str, Any]:
        return {
            "block": block,
            "d": setting.n_features,
            "k": setting.n_clusters,
            "n": profile.scaled(setting.n_samples),
            "tau": setting.tau,
            "family": setting.family,
            "learning_rate": setting.learning_rate,
            "clip_norm": setting.clip_norm,
        }


def seconds_a_step(recipes: Sequence[Recipe], rounds: int, context: Context) -> list[float]:
    """Measure a training step of each model, with the drawing of its tasks and its share of a validation.

    The models take turns, so that what else the machine does slows all of them alike; medians over rounds.
    """
    trainers = []
    for trained in recipes:
        training = replace(
            trained.training,
            n_steps=TIMED_STEPS * (rounds + 1),
            validate_every=TIMED_STEPS,
            n_validation_batches=1,
        )
        trainers.append(Trainer([replace(trained, training=training)], context.device))
    seconds: list[list[float]] = [[] for _ in trainers]
    for _ in range(rounds + 1):
        for trainer, found in zip(trainers, seconds, strict=True):
            started = time.perf_counter()
            trainer.advance()
            found.append((time.perf_counter() - started) / TIMED_STEPS)
    return [statistics.median(found[1:]) for found in seconds]  # the first round is warm-up
