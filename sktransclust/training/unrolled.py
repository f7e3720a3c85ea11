"""Training a network for any problem through several steps at once, on tasks of all sizes."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..model import LloydTransformer
from ..model.scalar import scalar_layer, scalar_start
from ..tasks.mixed import MixedSampler, lloyd_iterations
from .config import DTYPES, UnrolledRecipe
from .loss import inertia, smoothed_inertia, squared_distances
from .optimizer import AdamState, adam_step, clip_per_model
from .trainer import Record

_WARM_UP = 50  # steps over which the learning rate rises
_LEAST_RATE = 0.01  # of the learning rate, at the end


class UnrolledTrainer:
    """Trains one network with scalar projections.

    The loss of a task is the logarithm of its smoothed inertia after `n_unrolled` steps: a gain counts by its
    ratio, whatever the task's size or unit.

    Parameters
    ----------
    recipes : sequence of one UnrolledRecipe
        What `Trainer` takes, but for a single network.
    device : torch.device or str, default="cpu"
        Where to train.
    """

    def __init__(self, recipes: Sequence[UnrolledRecipe], device: torch.device | str = "cpu") -> None:
        if len(recipes) != 1:
            raise ValueError(f"A network with scalar projections trains alone, got {len(recipes)} recipes.")
        self.recipes = tuple(recipes)
        self.device = torch.device(device)
        self.model, self.training = recipes[0].model, recipes[0].training
        self.dtype = DTYPES[self.training.dtype]
        self.step = 0
        self.active = torch.full((1,), True, device=self.device)
        start = scalar_start(self.model, self.dtype)
        self._shapes = {name: value.shape for name, value in start.items()}
        self.parameters = torch.cat(list(start.values())).to(self.device)[None]  # (1, all weights)
        self.adam = AdamState.zeros(self.parameters)
        self.best, self.best_step, self.best_metric = self.parameters, 0, math.inf
        self._sampler = MixedSampler(recipes[0].tasks, self.dtype)
        seeds = np.random.SeedSequence(self.training.seed).generate_state(2, np.uint64)
        validation, self.generator = (torch.Generator(self.device).manual_seed(int(s)) for s in seeds)
        drawn = (self._draw(validation) for _ in range(self.training.n_validation_batches))
        self._validation = [(x, c, inertia(x, self._lloyd(x, c))) for x, c in drawn]

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.step >= self.training.n_steps

    def advance(self) -> list[Record]:
        """Train until the next validation, and validate."""
        losses = []
        for _ in range(self.training.validate_every):
            losses.append(self._train_step(*self._draw(self.generator)))
            self.step += 1
        loss, metric = float(np.mean(losses)), self.validate()
        if metric < self.best_metric:
            self.best, self.best_step, self.best_metric = self.parameters, self.step, metric
        return [Record(0, self.training.seed, self.step, loss, metric, self._learning_rate(), False)]

    def validate(self) -> float:
        """Geometric mean of the inertia relative to that of as many Lloyd iterations from the same start."""
        with torch.no_grad():
            ratios = [
                (inertia(x, self._unroll(self.parameters, x, c)) / of_lloyd).log()
                for x, c, of_lloyd in self._validation
            ]
        return math.exp(float(torch.cat(ratios).mean()))

    def network(self, index: int = 0) -> LloydTransformer:
        """Return the network that was the best in a validation, on the CPU."""
        return LloydTransformer(self.model, self._named(self.best[index].cpu()))

    def state(self) -> dict[str, Tensor]:
        """Everything that `load_state` needs to continue as if nothing had happened."""
        return {
            "parameters": self.parameters,
            "best": self.best.clone(),  # a file holds no tensor twice
            "best_step": torch.tensor(self.best_step),
            "best_metric": torch.tensor(self.best_metric, dtype=torch.float64),
            "adam.first": self.adam.first,
            "adam.second": self.adam.second,
            "step": torch.tensor(self.step),
            "generator": self.generator.get_state(),
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from where `state` was taken, by a trainer of the same recipe."""
        self.step = int(state["step"])
        self.parameters, self.best = state["parameters"].to(self.device), state["best"].to(self.device)
        self.best_step, self.best_metric = int(state["best_step"]), float(state["best_metric"])
        first, second = (state[f"adam.{name}"].to(self.device) for name in ("first", "second"))
        self.adam = AdamState(first, second, self.step)
        self.generator.set_state(state["generator"])

    def kept(self, record: Record) -> tuple[int, float]:
        """Step and validation of the network that goes with a record: the best so far."""
        return self.best_step, self.best_metric

    def _train_step(self, samples: Tensor, centers: Tensor) -> float:
        parameters = self.parameters.detach().requires_grad_()
        centers = self._unroll(parameters, samples, centers)
        squared = squared_distances(samples, centers).detach().amin(2).mean(1)
        tau = self.training.tau * squared.clamp(min=torch.finfo(self.dtype).tiny)[:, None, None]
        loss = smoothed_inertia(samples, centers, self.training.smoothing, tau).log().mean()
        (gradient,) = torch.autograd.grad(loss, parameters)
        gradient, norm = clip_per_model(gradient, parameters.new_tensor([self.training.clip_norm]))
        rate = parameters.new_tensor([self._learning_rate()])
        # A batch without a finite gradient teaches nothing, and is passed over.
        self.parameters = adam_step(self.parameters, gradient, self.adam, rate, norm.isfinite())
        return float(loss.detach())

    def _learning_rate(self) -> float:
        rising = min(1.0, (self.step + 1) / _WARM_UP)
        falling = 0.5 * (1 + math.cos(math.pi * self.step / self.training.n_steps))
        return self.training.learning_rate * rising * (falling * (1 - _LEAST_RATE) + _LEAST_RATE)

    def _draw(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return self._sampler.draw(self.training.batch_size, generator)

    def _unroll(self, parameters: Tensor, samples: Tensor, centers: Tensor) -> Tensor:
        scalars = self._named(parameters[0])
        for _ in range(self.training.n_unrolled):
            centers = scalar_layer(samples, centers, scalars, self.model)
        return centers

    def _lloyd(self, samples: Tensor, centers: Tensor) -> Tensor:
        return lloyd_iterations(samples, centers, self.training.n_unrolled)

    def _named(self, flat: Tensor) -> dict[str, Tensor]:
        parts = flat.split([shape.numel() for shape in self._shapes.values()])
        return dict(zip(self._shapes, parts, strict=True))
