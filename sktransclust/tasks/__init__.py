"""Where training tasks come from: mixtures of five families in the unit cube, with initial centers."""

from .distributions import FAMILIES
from .mixed import MixedDistribution, MixedSampler
from .sampler import TaskDistribution, TaskSampler

__all__ = ["FAMILIES", "MixedDistribution", "MixedSampler", "TaskDistribution", "TaskSampler"]
