"""Tasks of all sizes and shapes, for a network that serves any of them."""

import math
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from .distributions import FAMILIES
from .starts import kmeans_plus_plus_centers, random_centers, take_rows, uniform

_LLOYD_ITERATIONS = 10  # before a start counts as a local optimum
STARTS = ("random", "k-means++", "optimum", "grown")


@dataclass(frozen=True)
class MixedDistribution:
    """Where the tasks of a network for any problem come from.

    Every batch draws its sizes log-uniformly from the ranges, and one entry of each other field; repeating an
    entry makes it likelier. The mixture need not have as many components as there are centers.
    """

    n_features: tuple[int, ...] = (2, 32)  # d, smallest and largest
    n_clusters: tuple[int, ...] = (2, 32)  # k, likewise
    n_samples: tuple[int, ...] = (100, 800)  # n, likewise; at least 4 k
    families: tuple[str, ...] = ("normal", "normal", "laplace", "gumbel", "lognormal", "cauchy")
    component_ratios: tuple[float, ...] = (0.5, 1.0, 1.0, 2.0, 4.0)  # components to clusters
    scales: tuple[float, ...] = (0.03, 0.1, 0.2)  # of components whose locations lie in the unit cube
    scale_spreads: tuple[float, ...] = (0.0, 0.5, 1.0)  # deviation of the logarithm, over components
    axis_spreads: tuple[float, ...] = (0.0, 0.5)  # likewise, over components and features
    mass_spreads: tuple[float, ...] = (0.0, 0.7, 1.3)  # deviation of the components' log-weight
    decays: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0, 2.0, 4.0)  # feature i is shrunk by exp(-decay i / d)
    starts: tuple[str, ...] = STARTS  # grown: a local optimum of fewer clusters, and k-means++ samples

    def __post_init__(self) -> None:
        """Refuse an empty list, a range that is none and an unknown name."""
        for field in fields(self):
            if not getattr(self, field.name):
                raise ValueError(f"`{field.name}` should list at least one choice, got an empty list.")
        for name in ("n_features", "n_clusters", "n_samples"):
            limits = getattr(self, name)
            if len(limits) != 2 or not 1 <= limits[0] <= limits[1]:
                raise ValueError(f"`{name}` should be the smallest and the largest number, got {limits}.")
        for name, allowed in (("families", tuple(FAMILIES)), ("starts", STARTS)):
            for entry in getattr(self, name):
                if entry not in allowed:
                    raise ValueError(f"`{name}` should contain only {', '.join(allowed)}, got {entry!r}.")


class MixedSampler:
    """Draws batches of tasks, each batch of one size.

    Parameters
    ----------
    distribution : MixedDistribution
        Where the tasks come from.
    dtype : torch.dtype, default=torch.float32
        Of the samples and centers.
    most : int
        Coordinates of a batch; batches of more samples are shortened, but to no less than 4 k samples.
    """

    def __init__(
        self, distribution: MixedDistribution, dtype: torch.dtype = torch.float32, most: int = 1 << 18
    ) -> None:
        self.distribution = distribution
        self.dtype = dtype
        self.most = most

    def draw(self, n_tasks: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw tasks on the generator's device.

        Parameters
        ----------
        n_tasks : int
            B, the number of tasks.
        generator : torch.Generator
            The only source of randomness.

        Returns
        -------
        samples : Tensor of shape (n_tasks, n, d)
            Centered, with a mean squared length of 1.
        centers : Tensor of shape (n_tasks, k, d)
            Initial centers.
        """
        d, k, n = (self._size(name, generator) for name in ("n_features", "n_clusters", "n_samples"))
        n = max(min(n, self.most // (n_tasks * d)), 4 * k)
        samples = self._mixture(n_tasks, n, d, k, generator)
        samples = samples - samples.mean(1, keepdim=True)
        length = samples.square().sum(2).mean(1).sqrt()[:, None, None]
        samples = samples / torch.where(length > 0, length, 1.0)
        return samples, start_centers(samples, k, self._choose("starts", generator), generator)

    def _mixture(self, n_tasks: int, n: int, d: int, k: int, generator: torch.Generator) -> Tensor:
        def log_normal(name: str, *shape: int) -> Tensor:
            noise = torch.randn(*shape, dtype=self.dtype, generator=generator, device=generator.device)
            return (self._choose(name, generator) * noise).exp()

        m = max(1, round(k * self._choose("component_ratios", generator)))
        location = uniform((n_tasks, m, d), self.dtype, generator)
        scale = self._choose("scales", generator) * log_normal("scale_spreads", n_tasks, m, 1)
        scale = scale * log_normal("axis_spreads", n_tasks, m, d)
        mass = log_normal("mass_spreads", n_tasks, m)
        component = torch.multinomial(mass, n, replacement=True, generator=generator)
        family = FAMILIES[self._choose("families", generator)]
        samples = family(take_rows(location, component), take_rows(scale, component), generator)
        feature = torch.arange(d, dtype=self.dtype, device=generator.device)
        return samples * (-self._choose("decays", generator) * feature / d).exp()

    def _size(self, name: str, generator: torch.Generator) -> int:
        low, high = getattr(self.distribution, name)
        share = torch.rand((), generator=generator, device=generator.device).item()
        return round(low * (high / low) ** share)

    def _choose(self, name: str, generator: torch.Generator) -> Any:
        listed = getattr(self.distribution, name)
        return listed[int(torch.randint(len(listed), (), generator=generator, device=generator.device))]


def start_centers(samples: Tensor, n_clusters: int, start: str, generator: torch.Generator) -> Tensor:
    """Choose initial centers (B, k, d) of samples (B, n, d) by one of `STARTS`."""
    if start == "random":
        return random_centers(samples, n_clusters, generator)
    drawn = kmeans_plus_plus_centers(samples, n_clusters, generator)
    if start == "k-means++":
        return drawn
    if start == "optimum":
        return lloyd_iterations(samples, drawn, _LLOYD_ITERATIONS)
    share = torch.rand((), generator=generator, device=generator.device).item()
    n_grown = max(1, math.ceil(0.3 * share * n_clusters))
    if n_grown == n_clusters:
        return drawn
    optimum = lloyd_iterations(samples, drawn[:, n_grown:], _LLOYD_ITERATIONS)
    squared = torch.cdist(samples, optimum).square().amin(2)
    weights = torch.where((squared > 0).any(1, keepdim=True), squared, 1.0)
    new = torch.multinomial(weights, n_grown, replacement=True, generator=generator)
    return torch.cat([optimum, take_rows(samples, new)], dim=1)


def lloyd_iterations(samples: Tensor, centers: Tensor, n_iterations: int) -> Tensor:
    """Iterate Lloyd's algorithm on samples (B, n, d); the center of an empty cluster stays."""
    for _ in range(n_iterations):
        label = torch.cdist(samples, centers).argmin(2)
        member = torch.zeros(*label.shape, centers.shape[1], dtype=samples.dtype, device=samples.device)
        member.scatter_(2, label[:, :, None], 1.0)
        count = member.sum(1)[:, :, None]  # (B, k, 1)
        centers = torch.where(count > 0, member.mT @ samples / count.clamp(min=1), centers)
    return centers
