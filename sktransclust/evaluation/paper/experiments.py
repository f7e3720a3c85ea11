"""The registry: every figure and table of the paper, by its number."""

from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd

from ...tasks import FAMILIES
from ...training import Recipe
from .bundled import Bundled
from .cauchy import FAMILIES as CAUCHY_FAMILIES
from .cauchy import SCALINGS, CauchyScalings
from .context import Context
from .costs import Costs
from .curves import TrainingCurves
from .dissimilarity import Dissimilarity
from .multistep import MultiStep, Test
from .profiles import Profile
from .scalings import ScaledTasks
from .settings import CODES, L2_CURVES, NORMAL, Setting, vary
from .stability import Stability
from .surfaces import Surfaces

#: The paper's norm is not stated; with 1 no training of ours diverged.
CLIP_NORM = 1.0


class Measurement(Protocol):
    """What makes a table: the models it needs, and what it measures with them."""

    def recipes(self, profile: Profile) -> list[Recipe]:
        """Models to train."""
        ...

    def measure(self, context: Context) -> pd.DataFrame:
        """Measure with the trained models."""
        ...


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper."""

    title: str
    measurement: Measurement
    drawing: str  # a name in `drawing.DRAWINGS`


def _fig2() -> dict[str, list[Setting]]:
    base = Setting(n_clusters=6)
    return {
        "(a) d = 4": vary(base, n_features=[4], tau=[1.0, 0.1]),
        "(b) tau = 0.25": vary(base, tau=[0.25], n_features=[4, 16]),
    }


def _by_dimension(**choices: Any) -> dict[str, list[Setting]]:
    base = Setting(n_clusters=6)
    return {
        f"({letter}) d = {d}": vary(base, n_features=[d], **choices)
        for letter, d in zip("ab", (4, 32), strict=True)
    }


def _learning_rates() -> dict[str, list[Setting]]:
    """Half as many steps; those at the usual rate are the first half of the usual training."""
    return {
        block: [
            setting if setting.learning_rate == NORMAL.learning_rate else vary(setting, steps=[0.5])[0]
            for setting in settings
        ]
        for block, settings in _by_dimension(learning_rate=[0.001, 0.01, 0.1, 1.0]).items()
    }


def _fig15() -> dict[str, list[Setting]]:
    pairs = ((4, 1.0), (4, 0.1), (32, 1.0), (32, 0.1))
    blocks = {
        f"({letter}) d = {d}, tau = {tau:g}": vary(
            NORMAL, n_features=[d], tau=[tau], n_clusters=[6, 10, 16, 25]
        )
        for letter, (d, tau) in zip("abcd", pairs, strict=True)
    }
    clipped = vary(NORMAL, n_features=[32], tau=[0.1], n_clusters=[25], clip_norm=[CLIP_NORM])
    return blocks | {"d = 32, tau = 0.1, clipped": clipped}


def _families(*n_clusters: int) -> dict[str, list[Setting]]:
    cases = [(k, tau) for tau in (1.0, 0.1) for k in n_clusters]
    return {
        f"({letter}) k = {k}, tau = {tau:g}": vary(NORMAL, n_clusters=[k], tau=[tau], family=sorted(FAMILIES))
        for letter, (k, tau) in zip("abcd", cases, strict=False)
    }


def _fig17() -> dict[str, list[Setting]]:
    base = Setting(tau=1.0, clip_norm=CLIP_NORM)
    sizes = [256, 512, 1024]
    return {
        "(a) k = 16, d = 16": vary(base, n_features=[16], n_clusters=[16], n_samples=sizes),
        "(b) k = 25, d = 32": vary(base, n_features=[32], n_clusters=[25], n_samples=sizes),
    }


_FIG7 = (
    Test("unequal weights", mixture_weights="random"),
    Test("anisotropic", shape="anisotropic"),
    Test("scale 0.05", scale=0.05),
    Test("scale 0.2", scale=0.2),
)
_ACROSS = MultiStep(
    [Test(family, family=family) for family in sorted(FAMILIES)],
    vary(NORMAL, family=sorted(FAMILIES)),
    L2_CURVES,
)
_SMALL_AND_LARGE = [
    (Setting(n_features=d, n_clusters=6), curve) for d in (4, 32) for curve in ("OH:L2", "BN:L2")
]
_BUNDLED = [f"{code}-l2-d{d}-k6" for d in (4, 32) for code in ("onehot", "binary")]

EXPERIMENTS: dict[str, Experiment] = {
    "fig1": Experiment(
        "Cost of BN against OH", Costs((4, 8, 16, 32, 64, 128), (10, 16, 25, 40, 64, 100)), "cost_grid"
    ),
    "fig2": Experiment(
        "Training: penalty and dimension",
        TrainingCurves(_fig2()),
        "training",
    ),
    "fig3": Experiment("Loss surfaces", Surfaces(_SMALL_AND_LARGE), "surfaces"),
    "fig4": Experiment(
        "Training: families, k = 10",
        TrainingCurves(_families(10)),
        "training",
    ),
    "fig5": Experiment(
        "Surfaces of the gap between the losses",
        Surfaces([(setting, "BN:L2") for setting in vary(NORMAL, family=["normal", "cauchy"])], gap=True),
        "surfaces",
    ),
    "fig6": Experiment(
        "Many steps: iterated and re-embedded",
        MultiStep([Test("normal")], iterated=True, references=True),
        "steps",
    ),
    "fig7": Experiment("Many steps: other mixtures", MultiStep(_FIG7, curves=L2_CURVES), "steps"),
    "fig8": Experiment("Many steps: other families", _ACROSS, "steps"),
    "fig9": Experiment("Dissimilarity of 4 tasks a family", Dissimilarity(4), "matrix"),
    "fig10": Experiment(
        "Training: penalty",
        TrainingCurves(_by_dimension(tau=[1.0, 0.25, 0.14, 0.1])),
        "training",
    ),
    "fig11": Experiment(
        "Training: learning rate",
        TrainingCurves(_learning_rates(), until=0.5),
        "training",
    ),
    "fig12": Experiment(
        "Many steps: other numbers of samples",
        MultiStep([Test(f"n = {n}", n_samples=n) for n in (128, 256, 1024, 2048)], curves=L2_CURVES),
        "steps",
    ),
    "fig13": Experiment(
        "Training: number of samples",
        TrainingCurves(_by_dimension(n_samples=[128, 256, 512, 1024])),
        "training",
    ),
    "fig14": Experiment(
        "Training: dimension",
        TrainingCurves(
            {
                f"({letter}) tau = {tau:g}": vary(Setting(n_clusters=6, tau=tau), n_features=[4, 8, 16, 32])
                for letter, tau in zip("ab", (0.25, 0.1), strict=True)
            }
        ),
        "training",
    ),
    "fig15": Experiment(
        "Training: number of clusters",
        TrainingCurves(_fig15()),
        "training",
    ),
    "fig16": Experiment(
        "Training: families",
        TrainingCurves(_families(6, 10)),
        "training",
    ),
    "fig17": Experiment(
        "Training against time",
        TrainingCurves(_fig17(), curves=("OH:L2", "BN:L2"), timed=True),
        "training_time",
    ),
    "fig18": Experiment("Many steps: other families, larger", _ACROSS, "steps_large"),
    "fig19": Experiment("Dissimilarity of 16 tasks a family", Dissimilarity(16), "matrix"),
    "tab1": Experiment("Cost of BN against OH, d = 32", Costs((32,), (6, 25, 100, 400, 1000)), "cost_table"),
    "tab2": Experiment("Stability constants", Stability(_BUNDLED), "bounds"),
    "tab3": Experiment("Norms in the attentions", Stability(_BUNDLED, terms=True), "bounds"),
    "cauchy": Experiment(
        "Beyond the paper: Cauchy tasks scaled in other ways",
        CauchyScalings(vary(NORMAL, family=CAUCHY_FAMILIES, scaling=SCALINGS)),
        "cauchy",
    ),
    "scalings": Experiment(
        "Beyond the paper: what the scalings leave of each family", ScaledTasks(), "scalings"
    ),
    "bundled": Experiment(
        "Beyond the paper: many steps of the networks that come with the package",
        Bundled(
            {curve: f"{CODES[curve[:2]]}-l2-d32-k10" for curve in L2_CURVES},
            [Test(family, family=family) for family in FAMILIES] + list(_FIG7),
        ),
        "steps_wrapped",
    ),
}
