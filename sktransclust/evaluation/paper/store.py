"""Trained models on disk, each trained once whichever figures need it, and resumable after a kill."""

import csv
import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from ...checkpoint import SUFFIX, load_checkpoint
from ...model import LloydTransformer
from ...training import Recipe, Record, format_recipe, train

#: Takes the amount of work done since it was last called, as `work` counts it.
Progress = Callable[[float], None]


@dataclass(frozen=True)
class Point:
    """One validation of a model."""

    step: int
    loss: float
    relative_inertia: float
    diverged: bool


class ModelStore:
    """Folder of trained models, found by what trained them.

    Parameters
    ----------
    folder : Path
        One checkpoint and one history a model, and a folder for each training in progress.
    models_at_once : int
        Most models trained in one pass.
    device : torch.device or str, default="cpu"
        Where they are trained.
    """

    def __init__(self, folder: Path, models_at_once: int, device: torch.device | str = "cpu") -> None:
        self.folder = folder
        self.models_at_once = models_at_once
        self.device = torch.device(device)
        folder.mkdir(parents=True, exist_ok=True)

    def missing(self, recipes: Sequence[Recipe]) -> list[Recipe]:
        """Return those that are not trained yet, each once."""
        return [recipe for recipe in dict.fromkeys(recipes) if not self._checkpoint(recipe).exists()]

    def train(self, recipes: Sequence[Recipe], on_progress: Progress = lambda work: None) -> None:
        """Train those that are missing; `on_progress` is told the work done at every validation."""
        for group in self._groups(self.missing(recipes)):
            self._train_group(group, on_progress)

    def network(self, recipe: Recipe) -> LloydTransformer:
        """Load a trained network onto the store's device."""
        return load_checkpoint(self._checkpoint(recipe)).to(self.device)

    def history(self, recipe: Recipe) -> list[Point]:
        """Return a trained model's validations; those after a divergence are left out."""
        with open(self._history(recipe), newline="", encoding="utf-8") as file:
            return [
                Point(
                    int(row["step"]),
                    float(row["loss"]),
                    float(row["relative_inertia"]),
                    row["diverged"] == "True",
                )
                for row in csv.DictReader(file)
            ]

    def _groups(self, recipes: Sequence[Recipe]) -> Iterator[list[Recipe]]:
        """Divide recipes into those that one pass can train, at most `models_at_once` of them."""
        by_shape: dict[object, list[Recipe]] = {}
        for recipe in recipes:
            by_shape.setdefault(_shape(recipe), []).append(recipe)
        for same in by_shape.values():
            for start in range(0, len(same), self.models_at_once):
                yield same[start : start + self.models_at_once]

    def _train_group(self, recipes: list[Recipe], on_progress: Progress) -> None:
        digest = hashlib.sha256("".join(map(_digest, recipes)).encode()).hexdigest()[:16]
        folder = self.folder / f"training-{digest}"
        folder.mkdir(exist_ok=True)
        paths = [folder / f"{_digest(recipe)}{SUFFIX}" for recipe in recipes]
        work_a_validation = sum(map(work, recipes)) / (
            recipes[0].training.n_steps // recipes[0].training.validate_every
        )

        def on_validation(records: list[Record]) -> None:
            on_progress(work_a_validation)

        train(recipes, paths, resume=True, device=self.device, on_validation=on_validation)
        with open(f"{paths[0]}.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for index, (recipe, path) in enumerate(zip(recipes, paths, strict=True)):
            _write_rows(self._history(recipe), [row for row in rows if row["model"] == str(index)])
            shutil.copy(path, self._checkpoint(recipe))  # last: it says that the model is complete
        shutil.rmtree(folder)

    def _checkpoint(self, recipe: Recipe) -> Path:
        return self.folder / f"{_digest(recipe)}{SUFFIX}"

    def _history(self, recipe: Recipe) -> Path:
        return self.folder / f"{_digest(recipe)}.csv"


def work(recipe: Recipe) -> float:
    """Estimate the products of numbers in a training, to share out time among trainings."""
    n, width = recipe.tasks.n_samples, recipe.model.token_width
    a_task = n * n * (width + 16) + 6 * n * width * width + 2 * n * recipe.model.n_clusters * (width + 32)
    return float(recipe.training.n_steps * recipe.training.batch_size * a_task)


@lru_cache(maxsize=4096)
def _digest(recipe: Recipe) -> str:
    return hashlib.sha256(format_recipe(recipe).encode()).hexdigest()[:16]


def _shape(recipe: Recipe) -> tuple[object, ...]:
    """Return what models trained together have in common."""
    training = recipe.training
    return recipe.model, recipe.tasks.n_samples, training.n_steps, training.batch_size


def _write_rows(path: Path, rows: Sequence[dict[str, str]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
