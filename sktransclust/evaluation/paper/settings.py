"""Which models the paper trains: a setting is what the six curves of a panel have in common."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf

from ...model import LloydConfig
from ...tasks import TaskDistribution
from ...training import Recipe, TrainingConfig
from .profiles import Profile

#: The paper's names of the codes and of the smoothings, in the order of its legends.
CODES = {"OH": "onehot", "BN": "binary", "NA": "none"}
SMOOTHINGS = {"NE": "ne", "L2": "l2"}
CURVES = tuple(f"{code}:{smoothing}" for code, smoothing in product(CODES, SMOOTHINGS))
L2_CURVES = tuple(curve for curve in CURVES if curve.endswith("L2"))


@dataclass(frozen=True)
class Setting:
    """What the models of one panel share. The defaults are those of Fig. 6."""

    n_features: int = 32  # d
    n_clusters: int = 10  # k
    tau: float = 0.1
    family: str = "normal"  # of the training tasks
    n_samples: int = 512  # n of the paper, which a profile scales
    learning_rate: float = 0.01
    clip_norm: float = inf
    steps: float = 1.0  # part of the profile's M
    scaling: str = "per_dimension"  # of the training tasks into the unit cube


NORMAL = Setting()


def recipe(profile: Profile, setting: Setting, curve: str, seed: int) -> Recipe:
    """Return what trains one model.

    Parameters
    ----------
    profile : Profile
        How long, and from how many samples.
    setting : Setting
        The panel.
    curve : str
        One of `CURVES`: the code of the clusters and the smoothing of the loss.
    seed : int
        Models of one seed and shape see the same tasks.
    """
    code, smoothing = curve.split(":")
    return Recipe(
        LloydConfig(setting.n_features, setting.n_clusters, embedding=CODES[code]),
        TaskDistribution(
            families=(setting.family,),
            scalings=(setting.scaling,),
            n_samples=profile.scaled(setting.n_samples),
        ),
        TrainingConfig(
            smoothing=SMOOTHINGS[smoothing],
            tau=setting.tau,
            learning_rate=setting.learning_rate,
            n_steps=int(profile.n_steps * setting.steps),
            batch_size=profile.batch_size,
            clip_norm=setting.clip_norm,
            validate_every=profile.validate_every,
            n_validation_batches=profile.n_validation_batches,
            seed=seed,
        ),
    )


def models(
    profile: Profile, settings: Sequence[Setting], curves: Sequence[str] = CURVES
) -> Iterator[tuple[Setting, str, int, Recipe]]:
    """Yield setting, curve, seed and recipe of every model, in the order of the panels."""
    for setting, curve, seed in product(settings, curves, range(profile.n_seeds)):
        yield setting, curve, seed, recipe(profile, setting, curve, seed)


def vary(base: Setting, **choices: Sequence[object]) -> list[Setting]:
    """Return the settings with every combination of the fields' values, the last field varying fastest."""
    return [
        replace(base, **dict(zip(choices, values, strict=True)))  # type: ignore[arg-type]
        for values in product(*choices.values())
    ]
