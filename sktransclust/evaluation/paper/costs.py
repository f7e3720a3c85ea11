"""Time and memory of one layer (Fig. 1, Tab. 1): BN against OH, with the attention matrices and without."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from ...model import LloydConfig, embed_centers, embed_samples, lloyd_layer, random_projections
from ...training import Recipe, smoothed_inertia
from .context import COSTS, Context
from .peak_memory import peak_memory
from .profiles import Profile
from .settings import CODES
from .tables import tidy

#: Whether the self-attention of the samples holds its n x n matrix, as in the paper, or is fused.
HOLDS_MATRIX = {"": True, " fused": False}
VARIANTS = tuple(f"{code}{suffix}" for suffix, code in product(HOLDS_MATRIX, ("OH", "BN")))


@dataclass(frozen=True)
class Costs:
    """Times and memory for every pair of d and k.

    Parameters
    ----------
    n_features, n_clusters : sequence of int
        The grid.
    """

    n_features: Sequence[int]
    n_clusters: Sequence[int]

    def recipes(self, profile: Profile) -> list[Recipe]:
        """No trained model takes part: the cost does not depend on the weights."""
        return []

    def cells(self, profile: Profile) -> list[tuple[int, int]]:
        """Pairs (d, k) within what the profile measures."""
        pairs = product(self.n_features, self.n_clusters)
        return [(d, k) for d, k in pairs if k <= profile.max_cost_clusters]

    def measure(self, context: Context) -> pd.DataFrame:
        """Measure times here, in turn for all variants, and memory in a fresh process."""
        rows: list[dict[str, Any]] = []
        for d, k in self.cells(context.profile):
            rows += times(context, d, k)
        rows += self._memory(context)
        return tidy(rows)

    def _memory(self, context: Context) -> Iterator[dict[str, Any]]:
        cells = [(variant, d, k) for d, k in self.cells(context.profile) for variant in VARIANTS]
        profile = context.profile
        arguments = [str(context.device), str(profile.cost_samples), str(profile.cost_tasks)]
        names = [f"{variant},{d},{k}" for variant, d, k in cells]
        command = [sys.executable, "-m", "sktransclust.evaluation.paper.costs", *arguments, *names]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        lines = done.stdout.split()
        for (variant, d, k), value in zip(cells, lines[-len(cells) :], strict=True):
            yield {"d": d, "k": k, "model": variant, "metric": "memory", "value": float(value)}


class Layer:
    """One layer of a variant with random weights and tasks, and its training loss.

    Parameters
    ----------
    variant : str
        One of `VARIANTS`.
    samples : Tensor of shape (B, n, d)
        Of the tasks.
    centers : Tensor of shape (B, k, d)
        Of the tasks.
    """

    def __init__(self, variant: str, samples: Tensor, centers: Tensor, generator: torch.Generator) -> None:
        code, *suffix = variant.split()
        self.config = LloydConfig(samples.shape[-1], centers.shape[-2], embedding=CODES[code])
        self.holds_matrix = not suffix
        self.samples, self.centers = samples, centers
        drawn = random_projections(self.config, generator)
        self.projections = {name: weights.requires_grad_() for name, weights in drawn.items()}

    def forward(self) -> Tensor:
        """F(X, C): the centers after the layer, (B, k, d)."""
        x, c = embed_samples(self.samples, self.config), embed_centers(self.centers, self.config)
        # Asking for the matrices is what makes the layer hold them.
        found = lloyd_layer(x, c, self.projections, self.config, return_attention=self.holds_matrix)  # type: ignore[call-overload]
        centers: Tensor = found[1][..., : self.config.n_features]
        return centers

    def loss(self) -> Tensor:
        """Smoothed inertia with sparsemax and tau = 0.1, averaged over the tasks."""
        return smoothed_inertia(self.samples, self.forward(), "l2", 0.1).mean()


def random_tasks(
    n_tasks: int, n_samples: int, d: int, k: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw uniform samples (B, n, d) and centers (B, k, d): what they are does not change the cost."""
    device = generator.device
    return (
        torch.rand(n_tasks, n_samples, d, generator=generator, device=device),
        torch.rand(n_tasks, k, d, generator=generator, device=device),
    )


def times(context: Context, d: int, k: int) -> Iterator[dict[str, Any]]:
    """Yield the milliseconds of every repetition; the variants take turns."""
    profile = context.profile
    generator = context.generator(COSTS, 0)
    tasks = random_tasks(profile.cost_tasks, profile.cost_samples, d, k, generator)
    layers = {variant: Layer(variant, *tasks, generator) for variant in VARIANTS}
    for repetition in range(-profile.warmups, profile.repetitions):
        for variant, layer in layers.items():
            found = _one_repetition(layer, context.device)
            for metric, value in found.items() if repetition >= 0 else ():
                where = {"d": d, "k": k, "model": variant, "step": repetition}
                yield where | {"metric": metric, "value": 1000 * value}


def _one_repetition(layer: Layer, device: torch.device) -> dict[str, float]:
    """Seconds of a forward pass for training, its backward pass, and a forward pass without a graph."""
    found = {}
    found["forward_train"], loss = _timed(layer.loss, device)
    found["backward"], _ = _timed(lambda: torch.autograd.grad(loss, list(layer.projections.values())), device)
    with torch.no_grad():
        found["forward_eval"], _ = _timed(layer.forward, device)
    return found


def _timed(call: Callable[[], Any], device: torch.device) -> tuple[float, Any]:
    started = time.perf_counter()
    result = call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - started, result


def training_memory(
    variant: str, d: int, k: int, n_samples: int, n_tasks: int, device: torch.device
) -> float:
    """Peak of allocations in MB of a forward and backward pass, less the n x n attention matrices."""
    generator = torch.Generator(device).manual_seed(0)
    layer = Layer(variant, *random_tasks(n_tasks, n_samples, d, k, generator), generator)

    def step() -> None:
        torch.autograd.grad(layer.loss(), list(layer.projections.values()))

    step()  # what is allocated once and for all
    matrix = n_tasks * n_samples**2 * torch.finfo(torch.float32).bits // 8
    return peak_memory(step, device, leave_out=matrix) / 1e6


def median(table: pd.DataFrame, metric: str, model: str, **where: int) -> float:
    """Median over the repetitions of one variant in one cell of a table."""
    chosen = table[(table.metric == metric) & (table.model == model)]
    for column, value in where.items():
        chosen = chosen[chosen[column] == value]
    return float(statistics.median(chosen["value"]))


def main(arguments: Sequence[str]) -> None:
    """Print the memory of each cell ``VARIANT,d,k``; this is the fresh process."""
    device, n_samples, n_tasks, *cells = arguments
    for cell in cells:
        variant, d, k = cell.split(",")
        size = training_memory(variant, int(d), int(k), int(n_samples), int(n_tasks), torch.device(device))
        print(size, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
