"""Adam, clipping and the plateau schedule for S models at once, each on its own."""

from dataclasses import dataclass

import torch
from torch import Tensor

BETAS = (0.9, 0.999)
EPSILON = 1e-8
DECAY = 0.5  # of the learning rate on a plateau
THRESHOLD = 1e-4  # relative improvement of the validation metric that counts as one


@dataclass
class AdamState:
    """Moments of the gradients of S models' parameters, both of shape (S, ...)."""

    first: Tensor
    second: Tensor
    step: int = 0

    @classmethod
    def zeros(cls, parameters: Tensor) -> "AdamState":
        """Before the first step."""
        return cls(torch.zeros_like(parameters), torch.zeros_like(parameters))


def clip_per_model(gradients: Tensor, clip_norm: Tensor) -> tuple[Tensor, Tensor]:
    """Shorten each model's gradient to at most its own norm.

    Parameters
    ----------
    gradients : Tensor of shape (S, ...)
        One slice per model.
    clip_norm : Tensor of shape (S,)
        Largest norms; infinite for no clipping.

    Returns
    -------
    gradients : Tensor of shape (S, ...)
        Each slice shortened, never lengthened.
    norms : Tensor of shape (S,)
        The norms before.
    """
    norms = gradients.flatten(1).norm(dim=1)
    # The largest norm over a norm of 0 is infinite, and shortens nothing.
    factor = (clip_norm / norms).clamp(max=1)
    return gradients * _over(factor, gradients), norms


def adam_step(
    parameters: Tensor, gradients: Tensor, state: AdamState, learning_rate: Tensor, active: Tensor
) -> Tensor:
    """One step of Adam for the active models; the others keep their parameters and moments.

    Parameters
    ----------
    parameters, gradients : Tensor of shape (S, ...)
        One slice per model.
    state : AdamState
        Changed in place.
    learning_rate : Tensor of shape (S,)
        Each model's own.
    active : bool Tensor of shape (S,)
        Which models take the step.

    Returns
    -------
    Tensor of shape (S, ...)
        The new parameters.
    """
    state.step += 1
    keep = _over(active, parameters)
    first = torch.lerp(gradients, state.first, BETAS[0])
    second = torch.lerp(gradients.square(), state.second, BETAS[1])
    state.first, state.second = first.where(keep, state.first), second.where(keep, state.second)
    unbiased_first = state.first / (1 - BETAS[0] ** state.step)
    unbiased_second = state.second / (1 - BETAS[1] ** state.step)
    change = _over(learning_rate, parameters) * unbiased_first / (unbiased_second.sqrt() + EPSILON)
    return torch.where(keep, parameters - change, parameters)


@dataclass
class PlateauSchedule:
    """Halves a model's learning rate after more than `patience` validations without improvement."""

    learning_rate: Tensor  # (S,)
    best: Tensor  # (S,), least metric so far
    waited: Tensor  # (S,) int64, validations since
    patience: Tensor  # (S,) int64

    @classmethod
    def start(cls, learning_rate: Tensor, patience: Tensor) -> "PlateauSchedule":
        """Before the first validation."""
        return cls(
            learning_rate, torch.full_like(learning_rate, torch.inf), torch.zeros_like(patience), patience
        )

    def observe(self, metric: Tensor) -> None:
        """Take in a validation of every model; a metric that is not a number counts as no improvement."""
        improved = metric < self.best * (1 - THRESHOLD)
        self.best = torch.where(improved, metric, self.best)
        self.waited = torch.where(improved, 0, self.waited + 1)
        plateau = self.waited > self.patience
        self.learning_rate = torch.where(plateau, self.learning_rate * DECAY, self.learning_rate)
        self.waited = torch.where(plateau, 0, self.waited)


def _over(per_model: Tensor, like: Tensor) -> Tensor:
    """Shape (S,) as (S, 1, ..., 1), to broadcast over parameters."""
    return per_model.reshape(-1, *[1] * (like.dim() - 1))
