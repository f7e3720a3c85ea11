"""How large a reproduction is: the paper's own settings, what a laptop can do, and a smoke test."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """Everything in which two reproductions of the same figure may differ.

    Where the paper has another number of samples than 512, tasks have `n_samples` scaled alike.
    """

    name: str
    n_samples: int  # of a task, where the paper has 512
    batch_size: int  # B, tasks a step
    n_steps: int  # M; half of it for the learning rates (Fig. 11), as in the paper
    validate_every: int  # steps between two points of a training curve
    n_validation_batches: int  # of 32 tasks each
    n_seeds: int  # models a curve
    n_test_tasks: int  # of each seed, for curves over many steps
    n_iterations: int  # T, steps of such a curve
    surface_points: int  # of a loss surface, along each axis
    n_surface_tasks: int  # over which its loss is averaged
    cost_samples: int  # n of the tasks on which time and memory are measured
    cost_tasks: int  # how many at once
    repetitions: int  # of every time, after the rounds of warm-up
    warmups: int
    max_cost_clusters: int  # larger k of Fig. 1 and Tab. 1 are left out
    models_at_once: int  # trained in one batched pass

    def scaled(self, n_samples: int) -> int:
        """Return the number of samples where the paper has `n_samples`."""
        return n_samples * self.n_samples // 512


SMOKE = Profile(
    "smoke",
    n_samples=64,
    batch_size=2,
    n_steps=4,
    validate_every=2,
    n_validation_batches=1,
    n_seeds=1,
    n_test_tasks=2,
    n_iterations=3,
    surface_points=3,
    n_surface_tasks=2,
    cost_samples=64,
    cost_tasks=2,
    repetitions=2,
    warmups=1,
    max_cost_clusters=100,
    models_at_once=64,
)
LAPTOP = Profile(
    "laptop",
    n_samples=128,
    batch_size=8,
    n_steps=8000,
    validate_every=100,
    n_validation_batches=2,
    n_seeds=1,
    n_test_tasks=64,
    n_iterations=20,
    surface_points=25,
    n_surface_tasks=16,
    cost_samples=1024,
    cost_tasks=1,
    repetitions=5,
    warmups=1,
    max_cost_clusters=1000,
    models_at_once=12,
)
PAPER = Profile(
    "paper",
    n_samples=512,
    batch_size=32,
    n_steps=10_000,
    validate_every=50,
    n_validation_batches=10,
    n_seeds=10,
    n_test_tasks=320,
    n_iterations=20,
    surface_points=51,
    n_surface_tasks=32,
    cost_samples=1024,
    cost_tasks=32,
    repetitions=30,
    warmups=10,
    max_cost_clusters=1000,
    models_at_once=60,
)
PROFILES = {profile.name: profile for profile in (SMOKE, LAPTOP, PAPER)}
