"""What each part of the network for any problem is worth: it is trained anew without it, and compared.

``python -m sktransclust.evaluation.universal ablations FILE.csv`` trains nine networks one after the other,
a few minutes each on one core, and writes the table of the documentation.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .. import TransformerKMeans
from ..checkpoint import checkpoint_info, load_checkpoint
from ..model import LloydTransformer
from ..tasks import MixedDistribution, MixedSampler
from ..tasks.mixed import start_centers
from ..training import UnrolledRecipe, UnrolledTrainer, inertia, read_recipe
from .checkpoints import held_out_tasks
from .universal_data import problems

N_STEPS = 20  # of the network, before exact iterations
N_TASKS = 64  # of the paper's tasks at a shape, and of mixtures
SHAPES = ((4, 6), (32, 10))
MOVE_SEEDS = range(100, 102)
STARTS = ("random", "k-means++")
RECIPE = Path(__file__).parents[1] / "checkpoints" / "universal.toml"

#: What a network is trained without, or otherwise: the features that it keeps, and the steps unrolled.
VARIANTS: dict[str, tuple[tuple[str, ...], int]] = {
    "all features, 5 steps": (("mass", "error", "gap"), 5),
    "without mass": (("error", "gap"), 5),
    "without error": (("mass", "gap"), 5),
    "without gap": (("mass", "error"), 5),
    "without features": ((), 5),
    "1 step": (("mass", "error", "gap"), 1),
    "3 steps": (("mass", "error", "gap"), 3),
    "8 steps": (("mass", "error", "gap"), 8),
}

Step = Callable[[Tensor, Tensor], Tensor]


class Trained(NamedTuple):
    """A network and what its training took."""

    network: LloydTransformer
    n_steps: int
    seconds: float  # CPU time


class Tasks(NamedTuple):
    """Tasks from one kind of start, and where exact iterations end from there."""

    batches: list[tuple[Tensor, Tensor]]  # samples (B, n, d) and centers (B, k, d)
    exact: np.ndarray  # (tasks,)


def train(features: tuple[str, ...], n_unrolled: int) -> Trained:
    """Train a network by the bundled recipe, but for its features and the steps unrolled."""
    recipe = read_recipe(RECIPE)
    assert isinstance(recipe, UnrolledRecipe)
    model = replace(recipe.model, features=features)
    trainer = UnrolledTrainer(
        [replace(recipe, model=model, training=replace(recipe.training, n_unrolled=n_unrolled))]
    )
    start = time.process_time()
    while not trainer.finished:
        trainer.advance()
    return Trained(trainer.network(), recipe.training.n_steps, time.process_time() - start)


def ends(batches: Sequence[tuple[Tensor, Tensor]], step: Step | None = None) -> np.ndarray:
    """Return where exact iterations end, from the start or from the best of it and some steps.

    Parameters
    ----------
    batches : sequence of (samples, centers)
    step : callable, optional
        A network's ``step``.

    Returns
    -------
    ndarray of shape (tasks,)
        Inertias.
    """
    found = []
    for samples, centers in batches:
        best = centers if step is None else _best_on_the_way(step, samples, centers)
        for X, start in zip(samples.double().numpy(), best.double().numpy(), strict=True):
            exact = TransformerKMeans(len(start), init=start, n_init=1, tol=0, device="cpu")
            found.append(exact.fit(X).inertia_)
    return np.array(found)


def _best_on_the_way(step: Step, samples: Tensor, centers: Tensor) -> Tensor:
    best, least = centers, inertia(samples, centers)
    with torch.no_grad():
        for _ in range(N_STEPS):
            centers = step(samples, centers)
            now = inertia(samples, centers)
            better = now < least  # never where it is not a number
            best = torch.where(better[:, None, None], centers, best)
            least = torch.where(better, now, least)
    return best


@cache
def paper_tasks(n_features: int, n_clusters: int, start: str) -> Tasks:
    """Draw the paper's normal tasks of a shape (App. D)."""
    generator = torch.Generator().manual_seed(2**40)
    batches = [
        (samples, start_centers(samples, n_clusters, start, generator))
        for samples, _ in held_out_tasks(n_features, n_clusters, "normal", 128, N_TASKS)
    ]
    return Tasks(batches, ends(batches))


@cache
def mixtures(start: str, n_tasks: int = 4) -> Tasks:
    """Draw tasks as in the training, with another seed."""
    generator, batches = torch.Generator().manual_seed(2**41), []
    for _ in range(N_TASKS // n_tasks):
        samples, centers = MixedSampler(MixedDistribution()).draw(n_tasks, generator)
        batches.append((samples, start_centers(samples, centers.shape[1], start, generator)))
    return Tasks(batches, ends(batches))


@cache
def _real_ends(weights: str | LloydTransformer) -> np.ndarray:
    """Return the logarithms of the inertias of fits to real data: (problems, seeds)."""
    return np.log(
        [
            [
                TransformerKMeans(k, weights=weights, n_init=1, random_state=seed, device="cpu")
                .fit(X)
                .inertia_
                for seed in MOVE_SEEDS
            ]
            for _, X, k in problems()
        ]
    )


def relative(tasks: Tasks, step: Step) -> float:
    """Geometric mean of where exact iterations end after a network's steps, relative to without."""
    return float(np.exp(np.log(ends(tasks.batches, step) / tasks.exact).mean()))


def compare(name: str, trained: Trained) -> dict[str, Any]:
    """Return a row of the table; what a network is not for stays empty."""
    network, n_steps, seconds = trained
    row: dict[str, Any] = {"network": name, "training steps": n_steps, "training, s": round(seconds) or None}
    scalar = network.config.projection == "scalar"
    for shape in SHAPES:
        fits = scalar or shape == (network.config.n_features, network.config.n_clusters)
        for start in STARTS:
            row[f"{shape}, {start}"] = relative(paper_tasks(*shape, start), network.step) if fits else None
    for start in STARTS:
        row[f"mixtures, {start}"] = relative(mixtures(start), network.step) if scalar else None
    moves = float(np.exp((_real_ends(network) - _real_ends("exact")).mean())) if scalar else None
    return row | {"moves, real data": moves}


def ablations() -> Iterator[dict[str, Any]]:
    """Compare bundled dense networks, the bundled scalar one, and scalar ones that are trained anew."""
    for name in (*(f"binary-l2-d{d}-k{k}" for d, k in SHAPES), "universal"):
        steps = (checkpoint_info(name).training or {}).get("n_steps", 0)
        yield compare(name, Trained(load_checkpoint(name), int(steps), 0.0))
    for name, (features, n_unrolled) in VARIANTS.items():
        yield compare(name, train(features, n_unrolled))
