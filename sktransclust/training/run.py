"""A training run on disk: checkpoints, the history, and the state from which it resumes."""

import csv
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open

from ..checkpoint import save_checkpoint, write_atomically
from .config import Recipe, UnrolledRecipe, recipe_to_mapping
from .trainer import Record, Trainer
from .unrolled import UnrolledTrainer

_COLUMNS = [field.name for field in fields(Record)]


def train(
    recipes: Sequence[Recipe] | Sequence[UnrolledRecipe],
    paths: Sequence[str | Path],
    *,
    resume: bool = False,
    device: torch.device | str = "cpu",
    on_validation: Callable[[list[Record]], None] | None = None,
) -> None:
    """Train models at once and keep everything on disk after every validation.

    Parameters
    ----------
    recipes : sequence of Recipe, or of one UnrolledRecipe
        One per model; see `Trainer` for what they may differ in.
    paths : sequence of str or Path
        The checkpoint of each model. Beside the first one lie, with the suffixes ``.csv`` and ``.state``
        added, the history of all models and the state of the run.
    resume : bool, default=False
        Continue from the state, if there is one, to the same weights as without the interruption.
    device : torch.device or str, default="cpu"
        Where to train.
    on_validation : callable, optional
        Given the new records, one per model, after they are on disk.

    Raises
    ------
    FileExistsError
        If there is the state of a run and `resume` was not asked for.
    ValueError
        If the state belongs to other recipes or is damaged.

    Warns
    -----
    RuntimeWarning
        When a model's loss is no longer finite; it keeps its last good weights, and the others go on.
    """
    state, history = (Path(f"{paths[0]}{suffix}") for suffix in (".state", ".csv"))
    trainer = _trainer(recipes, device)
    if state.exists():
        if not resume:
            raise FileExistsError(f"{state} exists: resume that run, or delete the file to start anew.")
        _restore(trainer, state)
    _cut_history(history, trainer.step)
    diverged = set(torch.nonzero(~trainer.active).flatten().tolist())
    while not trainer.finished:
        records = trainer.advance()
        _append_history(history, [record for i, record in enumerate(records) if i not in diverged])
        _warn_of_divergence(records, diverged)
        _save_checkpoints(trainer, records, paths)
        # Last, because it is what a resumed run believes.
        write_atomically(state, _state_bytes(trainer))
        if on_validation is not None:
            on_validation(records)


def _trainer(
    recipes: Sequence[Recipe] | Sequence[UnrolledRecipe], device: torch.device | str
) -> Trainer | UnrolledTrainer:
    if any(isinstance(recipe, UnrolledRecipe) for recipe in recipes):
        return UnrolledTrainer([recipe for recipe in recipes if isinstance(recipe, UnrolledRecipe)], device)
    return Trainer([recipe for recipe in recipes if isinstance(recipe, Recipe)], device)


def _state_bytes(trainer: Trainer | UnrolledTrainer) -> bytes:
    about = json.dumps(_mappings(trainer))
    tensors = {name: tensor.cpu().contiguous() for name, tensor in trainer.state().items()}
    return safetensors.torch.save(tensors, metadata={"recipes": about})


def _mappings(trainer: Trainer | UnrolledTrainer) -> list[dict[str, dict[str, Any]]]:
    recipes: Sequence[Recipe | UnrolledRecipe] = trainer.recipes
    return [recipe_to_mapping(recipe) for recipe in recipes]


def _restore(trainer: Trainer | UnrolledTrainer, path: Path) -> None:
    """Load the state after a check that the recipes are the same."""
    try:
        with safe_open(path, framework="pt") as file:
            saved = json.loads((file.metadata() or {}).get("recipes", "null"))
            state = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path} is not the state of a training run: {error}") from error
    # Through JSON, as the saved ones went.
    if saved != json.loads(json.dumps(_mappings(trainer))):
        raise ValueError(f"{path} is the state of a run with other recipes: resume with the same ones.")
    trainer.load_state(state)


def _cut_history(path: Path, step: int) -> None:
    """Drop the lines after the state's step, of a run that was killed before it saved its state."""
    rows = []
    if step and path.exists():
        with open(path, newline="", encoding="utf-8") as file:
            rows = [
                row for row in csv.DictReader(file) if None not in row.values() and int(row["step"]) <= step
            ]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def _append_history(path: Path, records: Sequence[Record]) -> None:
    with open(path, "a", newline="", encoding="utf-8") as file:
        csv.DictWriter(file, _COLUMNS).writerows(asdict(record) for record in records)


def _warn_of_divergence(records: Sequence[Record], known: set[int]) -> None:
    """Warn once of each model that diverged, and remember it in `known`."""
    for index, record in enumerate(records):
        if record.diverged and index not in known:
            known.add(index)
            warnings.warn(
                f"The model of seed {record.seed} diverged: its loss is no longer finite. It keeps its "
                f"weights of step {record.step}; a smaller learning_rate or clip_norm may help.",
                RuntimeWarning,
                stacklevel=3,
            )


def _save_checkpoints(
    trainer: Trainer | UnrolledTrainer, records: Sequence[Record], paths: Sequence[str | Path]
) -> None:
    recipes: Sequence[Recipe | UnrolledRecipe] = trainer.recipes
    for index, (recipe, record, path) in enumerate(zip(recipes, records, paths, strict=True)):
        sections = recipe_to_mapping(recipe)
        step, validation = trainer.kept(record)
        save_checkpoint(
            path,
            trainer.network(index),
            training=sections["training"],
            tasks=sections["tasks"],
            seed=recipe.training.seed,
            step=step,
            validation=validation,
        )
