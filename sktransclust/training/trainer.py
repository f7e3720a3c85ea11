"""Learning to cluster (Alg. 1), for any number of models in one batched pass."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..model import (
    PROJECTION_NAMES,
    LloydTransformer,
    embed_centers,
    embed_samples,
    lloyd_layer,
    random_projections,
)
from ..tasks.sampler import TaskSampler
from .config import DTYPES, Recipe, TrainingConfig
from .loss import inertia, smoothed_inertia
from .optimizer import AdamState, PlateauSchedule, adam_step, clip_per_model
from .validation import lloyd_step, relative_inertia

VALIDATION_BATCH_SIZE = 32
#: Most numbers drawn ahead for one model: drawing small batches one by one would cost as much as training.
DRAW_AHEAD = 1 << 20
#: Fields of `TrainingConfig` that models trained together have in common.
SHARED_SETTINGS = ("n_steps", "batch_size", "validate_every", "n_validation_batches", "dtype")


@dataclass(frozen=True)
class Record:
    """One line of a model's history: what a validation saw."""

    model: int  # position among the models trained together, whose seeds may be equal
    seed: int
    step: int  # of the weights; no longer counts up after a divergence
    loss: float  # mean smoothed inertia of a task since the last validation
    relative_inertia: float  # Eq. 20
    learning_rate: float  # during these steps
    diverged: bool  # whether the model went back to its last good weights, for good


class Trainer:
    """Trains S models at once, each as if it were alone.

    Parameters
    ----------
    recipes : sequence of Recipe
        One per model. They may differ in what does not change the shape of the computation: the distribution
        of the tasks (not n_samples), smoothing, tau, learning rate, clip_norm, patience and seed.
    device : torch.device or str, default="cpu"
        Where to train.

    Raises
    ------
    ValueError
        If the recipes differ in anything else.

    Notes
    -----
    A model whose loss or gradient is no longer finite goes back to the last weights for which both were, and
    stays there.
    """

    def __init__(self, recipes: Sequence[Recipe], device: torch.device | str = "cpu") -> None:
        _check_same_shape(recipes)
        self.recipes = tuple(recipes)
        self.device = torch.device(device)
        self.model, self.training = recipes[0].model, recipes[0].training  # what all of them share
        self.dtype = DTYPES[self.training.dtype]
        self.step = 0
        settings = [recipe.training for recipe in recipes]
        self._tau = _spread(self._per_model([setting.tau for setting in settings]))
        self._clip_norm = self._per_model([setting.clip_norm for setting in settings])
        self.schedule = PlateauSchedule.start(
            self._per_model([setting.learning_rate for setting in settings]),
            torch.tensor([setting.patience for setting in settings], device=self.device),
        )
        self._samplers = [
            TaskSampler(recipe.tasks, self.model.n_features, self.model.n_clusters, self.dtype)
            for recipe in recipes
        ]
        self._models_of = _group([setting.smoothing for setting in settings], self.device)
        self._order = torch.cat(list(self._models_of.values())).argsort()
        weights, validation, self.generators = zip(*map(self._generators, settings), strict=True)
        self.parameters = torch.stack(list(map(self._initial_weights, weights)))  # (S, 12, e, e)
        self._last_good = self.parameters
        self.adam = AdamState.zeros(self.parameters)
        self.active = torch.full((len(recipes),), True, device=self.device)
        self.last_step = torch.full((len(recipes),), 0, device=self.device)  # of the last good weights
        self._validation = self._draw(validation, self.training.n_validation_batches, VALIDATION_BATCH_SIZE)
        self._lloyd_inertia = [inertia(x, lloyd_step(x, c)) for x, c in zip(*self._validation, strict=True)]

    @property
    def finished(self) -> bool:
        """Whether all steps are done, or no model is left."""
        return self.step >= self.training.n_steps or not bool(self.active.any())

    def advance(self) -> list[Record]:
        """Train until the next validation, validate, and adapt the learning rates.

        Returns
        -------
        list of Record
            One per model.
        """
        total = self._per_model([0.0] * len(self.recipes))
        for samples, centers in self._training_batches():
            total += self._train_step(samples, centers)
            self.step += 1
        metric, rate = self.validate(), self.schedule.learning_rate
        self.schedule.observe(metric)
        self._stop_models(metric.isfinite())
        columns = (self.last_step, total / self.training.validate_every, metric, rate, ~self.active)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [Record(i, self.recipes[i].training.seed, *row) for i, row in enumerate(rows)]

    def validate(self) -> Tensor:
        """Eq. 20 of every model on its own fixed validation tasks: (S,)."""
        with torch.no_grad():
            ratios = [
                relative_inertia(samples, self._centers(self.parameters, samples, centers), baseline)
                for samples, centers, baseline in zip(*self._validation, self._lloyd_inertia, strict=True)
            ]
        return torch.stack(ratios).mean(dim=0)

    def network(self, index: int) -> LloydTransformer:
        """Model number `index` as it is now, on the CPU."""
        weights = self.parameters[index].cpu()
        return LloydTransformer(self.model, dict(zip(PROJECTION_NAMES, weights, strict=True)))

    def kept(self, record: Record) -> tuple[int, float]:
        """Step and Eq. 20 of the network that goes with a record: the one it saw."""
        return record.step, record.relative_inertia

    def _train_step(self, samples: Tensor, centers: Tensor) -> Tensor:
        """Lines 3 to 7 of Alg. 1 for every model; returns the losses (S,)."""
        parameters = self.parameters.detach().requires_grad_()
        losses = self._losses(samples, self._centers(parameters, samples, centers))
        (gradients,) = torch.autograd.grad(losses.sum(), parameters)
        gradients, norms = clip_per_model(gradients, self._clip_norm)
        self._stop_models(losses.isfinite() & norms.isfinite())
        self.parameters = adam_step(
            self.parameters, gradients, self.adam, self.schedule.learning_rate, self.active
        )
        return losses.detach()

    def _centers(self, parameters: Tensor, samples: Tensor, centers: Tensor) -> Tensor:
        """F(X, C) of the S models, each for its own tasks: (S, B, k, d)."""
        projections = dict(zip(PROJECTION_NAMES, parameters.unbind(1), strict=True))  # each (S, e, e)
        x, c = embed_samples(samples, self.model), embed_centers(centers, self.model)
        return lloyd_layer(x, c, projections, self.model)[1][..., : self.model.n_features]

    def _losses(self, samples: Tensor, centers: Tensor) -> Tensor:
        """Smoothed inertia of each model, averaged over its tasks: (S,)."""
        by_smoothing = [
            smoothed_inertia(samples[models], centers[models], smoothing, self._tau[models]).mean(dim=-1)
            for smoothing, models in self._models_of.items()
        ]
        return torch.cat(by_smoothing)[self._order]

    def _training_batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Fresh tasks (S, B, n, d) and (S, B, k, d) for every step up to the next validation."""
        size, left = self.training.batch_size, self.training.validate_every
        per_step = size * self.recipes[0].tasks.n_samples * self.model.n_features
        while left:
            n_steps = min(left, max(1, DRAW_AHEAD // per_step))
            yield from zip(*self._draw(self.generators, n_steps, size), strict=True)
            left -= n_steps

    def _draw(
        self, generators: Sequence[torch.Generator], n_batches: int, size: int
    ) -> tuple[Tensor, Tensor]:
        """Batches of every model's own tasks: (n_batches, S, B, n, d) and (n_batches, S, B, k, d)."""
        drawn = [
            sampler.draw(n_batches * size, generator)
            for sampler, generator in zip(self._samplers, generators, strict=True)
        ]
        samples, centers = (
            torch.stack(parts).unflatten(1, (n_batches, size)) for parts in zip(*drawn, strict=True)
        )
        return samples.transpose(0, 1), centers.transpose(0, 1)

    def _stop_models(self, is_finite: Tensor) -> None:
        """Take the models that are no longer finite back to their last good weights, for good."""
        self.active = self.active & is_finite
        self.last_step = torch.where(self.active, self.step, self.last_step)
        self.parameters = torch.where(_spread(self.active), self.parameters, self._last_good)
        self._last_good = self.parameters

    def state(self) -> dict[str, Tensor]:
        """Everything that `load_state` needs to continue as if nothing had happened, after a validation."""
        schedule = self.schedule
        return {
            "parameters": self.parameters,
            "adam.first": self.adam.first,
            "adam.second": self.adam.second,
            "schedule.learning_rate": schedule.learning_rate,
            "schedule.best": schedule.best,
            "schedule.waited": schedule.waited,
            "active": self.active,
            "last_step": self.last_step,
            "step": torch.tensor(self.step),
            "generators": torch.stack([generator.get_state() for generator in self.generators]),
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from where `state` was taken, by a trainer of the same recipes."""
        moved = {name: tensor.to(self.device) for name, tensor in state.items() if name != "generators"}
        self.parameters = self._last_good = moved["parameters"]
        self.step = int(moved["step"])
        self.adam = AdamState(moved["adam.first"], moved["adam.second"], self.step)
        self.schedule.learning_rate = moved["schedule.learning_rate"]
        self.schedule.best, self.schedule.waited = moved["schedule.best"], moved["schedule.waited"]
        self.active, self.last_step = moved["active"], moved["last_step"]
        for generator, generator_state in zip(self.generators, state["generators"], strict=True):
            generator.set_state(generator_state.clone())  # a row of a larger tensor is no valid state

    def _per_model(self, values: Sequence[float]) -> Tensor:
        return torch.tensor(values, dtype=self.dtype, device=self.device)

    def _generators(self, setting: TrainingConfig) -> list[torch.Generator]:
        """Independent streams for the initial weights, the validation tasks and the training tasks."""
        seeds = np.random.SeedSequence(setting.seed).generate_state(3, np.uint64)
        return [torch.Generator(self.device).manual_seed(int(seed)) for seed in seeds]

    def _initial_weights(self, generator: torch.Generator) -> Tensor:
        projections = random_projections(self.model, generator, self.dtype)
        return torch.stack([projections[name] for name in PROJECTION_NAMES])  # (12, e, e)


def _spread(per_model: Tensor) -> Tensor:
    """Shape (S,) as (S, 1, 1, 1), to broadcast over weights (S, 12, e, e) or distances (S, B, n, k)."""
    return per_model[:, None, None, None]


def _group(names: Sequence[str], device: torch.device) -> dict[str, Tensor]:
    """Positions of each distinct name."""
    return {
        name: torch.tensor([i for i, other in enumerate(names) if other == name], device=device)
        for name in dict.fromkeys(names)
    }


def _check_same_shape(recipes: Sequence[Recipe]) -> None:
    """Refuse recipes that cannot be computed in one pass, naming the field that differs."""
    first = recipes[0]
    for recipe in recipes[1:]:
        if recipe.model != first.model:
            raise ValueError("Models trained together should have the same [model] section.")
        if recipe.tasks.n_samples != first.tasks.n_samples:
            raise ValueError("Models trained together should have the same `n_samples`.")
        for name in SHARED_SETTINGS:
            values = getattr(first.training, name), getattr(recipe.training, name)
            if values[0] != values[1]:
                raise ValueError(f"Models trained together should have the same `{name}`, got {values}.")
