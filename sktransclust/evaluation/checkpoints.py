"""What the bundled checkpoints can do, beside Lloyd's iterations: the table of the documentation.

``python -m sktransclust.evaluation.checkpoints FILE.csv`` computes it anew.
"""

import csv
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import groupby
from pathlib import Path

import torch
from torch import Tensor

from ..checkpoint import CheckpointInfo, list_checkpoints, load_checkpoint
from ..tasks import FAMILIES, TaskDistribution, TaskSampler
from ..training import inertia, lloyd_step

SEED = 512_000_001  # of the held-out tasks; no training run uses a seed of torch that small
N_TASKS = 512
N_STEPS = 20
BATCH_SIZE = 64  # tasks at once, to bound the memory
#: The paper's tasks of each family at the size of the training tasks; normal ones at the paper's size too.
CASES = [(family, 128) for family in FAMILIES] + [("normal", 512)]

Step = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Row:
    """One line of the table: a checkpoint on the tasks of one family."""

    checkpoint: str
    family: str
    n_samples: int
    relative_inertia: float  # Eq. 20
    log_inertia: float  # mean over the tasks, after 20 re-embedded steps
    log_inertia_lloyd: float  # the same after 20 Lloyd iterations from the same random samples


def iterate(step: Step, samples: Tensor, centers: Tensor, n_steps: int) -> Tensor:
    """Apply a step again and again to freshly embedded centers.

    Parameters
    ----------
    step : callable
        From samples and centers to new centers: `lloyd_step`, or a network's ``step``.
    samples : Tensor of shape (B, n, d)
        The samples of each task.
    centers : Tensor of shape (B, k, d)
        The centers to start from.
    n_steps : int
        How often.

    Returns
    -------
    Tensor of shape (n_steps + 1, B)
        The objective of each task before the first and after every step.
    """
    objectives = [inertia(samples, centers)]
    with torch.no_grad():
        for _ in range(n_steps):
            centers = step(samples, centers)
            objectives.append(inertia(samples, centers))
    return torch.stack(objectives)


def held_out_tasks(
    n_features: int, n_clusters: int, family: str, n_samples: int, n_tasks: int = N_TASKS
) -> list[tuple[Tensor, Tensor]]:
    """Draw the paper's tasks of one family (App. D), in batches, always the same ones."""
    distribution = replace(TaskDistribution(), families=(family,), n_samples=n_samples)
    sampler = TaskSampler(distribution, n_features, n_clusters)
    generator = torch.Generator().manual_seed(SEED)
    sizes = [BATCH_SIZE] * (n_tasks // BATCH_SIZE) + [n_tasks % BATCH_SIZE] * bool(n_tasks % BATCH_SIZE)
    return [sampler.draw(size, generator) for size in sizes]


def evaluate(
    networks: Mapping[str, Step], n_features: int, n_clusters: int, n_tasks: int = N_TASKS
) -> Iterator[Row]:
    """Compare networks of one shape with Lloyd's iterations.

    Parameters
    ----------
    networks : mapping of str to callable
        Each network's ``step`` by its name.
    n_features, n_clusters : int
        The shape they are for.
    n_tasks : int, default=512
        Held-out tasks of each family.

    Yields
    ------
    Row
        For each of `CASES` and each network.
    """
    for family, n_samples in CASES:
        tasks = held_out_tasks(n_features, n_clusters, family, n_samples, n_tasks)
        lloyd = torch.cat(
            [iterate(lloyd_step, *task, N_STEPS) for task in tasks], dim=1
        )  # (steps + 1, tasks)
        for name, step in networks.items():
            learned = torch.cat([iterate(step, *task, N_STEPS) for task in tasks], dim=1)
            yield Row(
                name,
                family,
                n_samples,
                float((learned[1] / lloyd[1]).mean()),
                float(learned[-1].log().mean()),
                float(lloyd[-1].log().mean()),
            )


def evaluate_bundled(infos: Sequence[CheckpointInfo], n_tasks: int = N_TASKS) -> Iterator[Row]:
    """Evaluate bundled checkpoints; those of one shape share the tasks and Lloyd's iterations."""

    def shape(info: CheckpointInfo) -> tuple[int, int]:
        return info.model.n_features, info.model.n_clusters

    for (n_features, n_clusters), group in groupby(sorted(infos, key=shape), key=shape):
        networks: dict[str, Step] = {info.name: load_checkpoint(info.name).step for info in group}
        yield from evaluate(networks, n_features, n_clusters, n_tasks)


def main(arguments: Sequence[str]) -> None:
    """Write the table of all bundled checkpoints to the CSV file named."""
    (path,) = arguments
    with open(Path(path), "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        for row in evaluate_bundled(list_checkpoints("dense")):
            numbers = {key: round(value, 4) for key, value in asdict(row).items() if isinstance(value, float)}
            writer.writerow(asdict(row) | numbers)
            print(row, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
