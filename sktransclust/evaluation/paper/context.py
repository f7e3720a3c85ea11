"""What a measurement is given: the profile, the trained models, and the device."""

from dataclasses import dataclass

import numpy as np
import torch

from ...tasks import TaskDistribution, TaskSampler
from .profiles import Profile
from .store import ModelStore

#: Streams of random numbers that no training uses, by what they are for.
TEST_TASKS, DIRECTIONS, DISSIMILARITY, PERTURBATIONS, COSTS = range(5)


@dataclass(frozen=True)
class Context:
    """What a measurement is given."""

    profile: Profile
    store: ModelStore

    @property
    def device(self) -> torch.device:
        """Where the models are."""
        return self.store.device

    def generator(self, purpose: int, seed: int) -> torch.Generator:
        """Return the random numbers of a seed for one purpose."""
        state = np.random.SeedSequence((purpose, seed), spawn_key=(2026,)).generate_state(1, np.uint64)
        return torch.Generator(self.device).manual_seed(int(state[0]))

    def tasks(
        self,
        distribution: TaskDistribution,
        shape: tuple[int, int],
        n_tasks: int,
        seed: int,
        purpose: int = TEST_TASKS,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw tasks of `shape` (d, k) that no training has seen: (B, n, d) samples and (B, k, d) centers."""
        return TaskSampler(distribution, *shape).draw(n_tasks, self.generator(purpose, seed))
