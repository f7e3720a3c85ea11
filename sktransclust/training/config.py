"""What a training run is: the recipe, and the TOML file that holds it."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import torch

from .._configs import config_from_mapping, config_to_mapping
from ..model.config import LloydConfig
from ..tasks.mixed import MixedDistribution
from ..tasks.sampler import TaskDistribution
from .loss import SMOOTHINGS

DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained (Alg. 1). The defaults are the paper's, with the schedule of its predecessor."""

    smoothing: str = "l2"  # of the minimum in the loss: ne (negative entropy) or l2 (squared norm)
    tau: float = 0.1  # penalty of the smoothed minimum
    learning_rate: float = 0.01  # of Adam, at the start
    n_steps: int = 10_000  # M, a multiple of validate_every
    batch_size: int = 32  # B, fresh tasks per step
    clip_norm: float = inf  # largest norm of a gradient; longer ones are shortened to it
    validate_every: int = 50  # steps between two validations (Eq. 20)
    n_validation_batches: int = 10  # of 32 tasks each, drawn once
    patience: int = 5  # validations without a better Eq. 20 before the learning rate is halved
    seed: int = 0  # of the initial weights, the validation tasks and the training tasks
    dtype: str = "float32"  # float32 or float64

    def __post_init__(self) -> None:
        """Refuse values that make no sense, naming the field."""
        for name, allowed in (("smoothing", SMOOTHINGS), ("dtype", DTYPES)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"`{name}` should be {' or '.join(allowed)}, got {getattr(self, name)!r}.")
        for name in ("tau", "learning_rate", "clip_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"`{name}` should be positive, got {getattr(self, name)}.")
        for name in ("n_steps", "batch_size", "validate_every", "n_validation_batches"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` should be at least 1, got {getattr(self, name)}.")
        for name in ("patience", "seed"):
            if getattr(self, name) < 0:
                raise ValueError(f"`{name}` should not be negative, got {getattr(self, name)}.")
        if self.n_steps % self.validate_every:
            raise ValueError(
                f"`n_steps` should be a multiple of validate_every={self.validate_every}, got {self.n_steps}."
            )


@dataclass(frozen=True)
class Recipe:
    """All that determines one trained model: the sections of a recipe file."""

    model: LloydConfig  # the network
    tasks: TaskDistribution = field(default_factory=TaskDistribution)  # what it learns from
    training: TrainingConfig = field(default_factory=TrainingConfig)  # how

    def __post_init__(self) -> None:
        """Refuse tasks with fewer samples than clusters, and what Alg. 1 does not train."""
        if self.model.projection != "dense":
            raise ValueError(f"`projection` should be 'dense', got {self.model.projection!r}.")
        if self.model.n_layers != 1:
            raise ValueError(f"`n_layers` should be 1 to train (Alg. 1), got {self.model.n_layers}.")
        if self.tasks.n_samples < self.model.n_clusters:
            raise ValueError(
                f"`n_samples` should be at least n_clusters={self.model.n_clusters}, "
                f"got {self.tasks.n_samples}."
            )


@dataclass(frozen=True)
class UnrolledConfig:
    """How a network for any problem is trained."""

    n_unrolled: int = 5  # steps of the network before its loss is taken
    smoothing: str = "ne"  # of the minimum in the loss: ne (negative entropy) or l2 (squared norm)
    tau: float = 0.1  # penalty of the smoothed minimum, relative to a task's mean squared distance
    learning_rate: float = 0.02  # of Adam, at its highest; it falls along a cosine
    n_steps: int = 1500  # a multiple of validate_every
    batch_size: int = 6  # fresh tasks of one size per step
    clip_norm: float = 1.0  # largest norm of a gradient; longer ones are shortened to it
    validate_every: int = 100  # steps between two validations
    n_validation_batches: int = 20  # of batch_size tasks each, drawn once
    seed: int = 0  # of the validation tasks and the training tasks
    dtype: str = "float32"  # float32 or float64

    def __post_init__(self) -> None:
        """Refuse values that make no sense, naming the field."""
        for name, allowed in (("smoothing", SMOOTHINGS), ("dtype", DTYPES)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"`{name}` should be {' or '.join(allowed)}, got {getattr(self, name)!r}.")
        for name in ("n_unrolled", "n_steps", "batch_size", "validate_every", "n_validation_batches"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` should be at least 1, got {getattr(self, name)}.")
        for name in ("tau", "learning_rate", "clip_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"`{name}` should be positive, got {getattr(self, name)}.")
        if self.seed < 0:
            raise ValueError(f"`seed` should not be negative, got {self.seed}.")
        if self.n_steps % self.validate_every:
            raise ValueError(
                f"`n_steps` should be a multiple of validate_every={self.validate_every}, got {self.n_steps}."
            )


@dataclass(frozen=True)
class UnrolledRecipe:
    """All that determines a trained network for any problem: the sections of its recipe file."""

    model: LloydConfig  # with scalar projections
    tasks: MixedDistribution = field(default_factory=MixedDistribution)  # what it learns from
    training: UnrolledConfig = field(default_factory=UnrolledConfig)  # how

    def __post_init__(self) -> None:
        """Refuse another kind of network."""
        if self.model.projection != "scalar":
            raise ValueError(f"`projection` should be 'scalar', got {self.model.projection!r}.")


SECTIONS: dict[str, Any] = {"model": LloydConfig, "tasks": TaskDistribution, "training": TrainingConfig}
_UNROLLED: dict[str, Any] = {"model": LloydConfig, "tasks": MixedDistribution, "training": UnrolledConfig}


def recipe_from_mapping(mapping: Mapping[str, Any]) -> Recipe | UnrolledRecipe:
    """Build a recipe from its sections, refusing unknown ones.

    Parameters
    ----------
    mapping : Mapping
        With the keys ``model`` and, if not the defaults, ``tasks`` and ``training``.

    Returns
    -------
    Recipe or UnrolledRecipe
        By the projections of the network; checked.

    Raises
    ------
    ValueError
        Naming the section and field at fault.
    """
    unknown = sorted(set(mapping) - set(SECTIONS))
    if unknown:
        raise ValueError(f"A recipe has the sections {', '.join(SECTIONS)}; got `{unknown[0]}`.")
    if "model" not in mapping:
        raise ValueError("A recipe should have a section [model] with n_features and n_clusters.")
    model = mapping["model"]
    scalar = isinstance(model, Mapping) and model.get("projection") == "scalar"
    kind, classes = (UnrolledRecipe, _UNROLLED) if scalar else (Recipe, SECTIONS)
    return kind(
        **{name: config_from_mapping(classes[name], part, f"[{name}]") for name, part in mapping.items()}
    )


def recipe_to_mapping(recipe: Recipe | UnrolledRecipe) -> dict[str, dict[str, Any]]:
    """Turn a recipe into nested mappings of plain values, every field written out."""
    return {name: config_to_mapping(getattr(recipe, name)) for name in SECTIONS}


def read_recipe(path: str | Path) -> Recipe | UnrolledRecipe:
    """Read a recipe file.

    Parameters
    ----------
    path : str or Path
        A TOML file with the sections of `Recipe`.

    Returns
    -------
    Recipe or UnrolledRecipe
        By the projections of the network; checked.

    Raises
    ------
    ValueError
        If the file is not TOML, or naming the section and field at fault.
    """
    try:
        mapping = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from error
    try:
        return recipe_from_mapping(mapping)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def format_sections(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Write sections of plain values as TOML, without the values that are None."""
    return "\n".join(
        f"[{name}]\n"
        + "".join(f"{key} = {_toml(value)}\n" for key, value in part.items() if value is not None)
        for name, part in sections.items()
    )


def format_recipe(recipe: Recipe | UnrolledRecipe) -> str:
    """Write a recipe as TOML, every field that is not None; `read_recipe` reads it back."""
    return format_sections(recipe_to_mapping(recipe))


def _toml(value: Any) -> str:
    """Write a number, string, boolean or list as TOML, which has inf where JSON has none."""
    return repr(value) if isinstance(value, float) else json.dumps(value)
