"""Learning to cluster: tasks and a network in, a checkpoint out.

Read in this order: ``sparsemax``, ``loss`` (Eq. 6), ``config`` (recipes), ``optimizer``, ``validation``
(Eq. 20), ``trainer`` (Alg. 1 for many models at once), ``unrolled`` (a network for any
problem, through several steps), ``run`` (the same on disk, resumable).
"""

from .config import Recipe, TrainingConfig, UnrolledConfig, UnrolledRecipe, format_recipe, read_recipe
from .loss import inertia, smoothed_inertia
from .run import train
from .sparsemax import sparsemax
from .trainer import Record, Trainer
from .unrolled import UnrolledTrainer
from .validation import lloyd_step, relative_inertia

__all__ = [
    "Recipe",
    "Record",
    "Trainer",
    "TrainingConfig",
    "UnrolledConfig",
    "UnrolledRecipe",
    "UnrolledTrainer",
    "format_recipe",
    "inertia",
    "lloyd_step",
    "read_recipe",
    "relative_inertia",
    "smoothed_inertia",
    "sparsemax",
    "train",
]
