"""Distributions of clustering tasks, and the sampler that draws batches from them (App. D)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from .distributions import FAMILIES, exponential
from .starts import STARTS, take_rows, uniform

#: What every field of a `TaskDistribution` that lists choices may contain; None stands for positive numbers.
CHOICES: dict[str, tuple[str, ...] | None] = {
    "families": tuple(FAMILIES),
    "scales": None,
    "shapes": ("isotropic", "anisotropic"),
    "mixture_weights": ("equal", "random"),
    "scalings": ("per_dimension", "scalar", "quantile", "clipped"),
    "starts": tuple(STARTS),
}


@dataclass(frozen=True)
class TaskDistribution:
    """Where clustering tasks come from.

    Each field but the last lists choices. Every task draws one entry of each list, uniformly and
    independently, so that repeating an entry makes it likelier. The defaults are the paper's: isotropic
    normal components of scale 0.1 with equal weights, every dimension scaled to [0, 1], random starts.
    """

    families: tuple[str, ...] = ("normal",)  # of the components: normal, cauchy, gumbel, laplace, lognormal
    scales: tuple[float, ...] = (0.1,)  # of the components, before the samples are scaled to the unit cube
    shapes: tuple[str, ...] = (
        "isotropic",
    )  # anisotropic: scale times U(0, 1) for each component and dimension
    mixture_weights: tuple[str, ...] = ("equal",)  # random: uniform on the simplex
    # scalar: every dimension divided by the largest range; quantile: the middle nine tenths of every
    # dimension become [0, 1], and the rest lies outside; clipped: the same, the rest moved to the border
    scalings: tuple[str, ...] = ("per_dimension",)
    starts: tuple[str, ...] = ("random",)  # initial centers: random samples, or k-means++ seeding
    n_samples: int = 512

    def __post_init__(self) -> None:
        """Refuse an empty list and an unknown choice, naming the field."""
        for name, allowed in CHOICES.items():
            chosen = getattr(self, name)
            if not chosen:
                raise ValueError(f"`{name}` should list at least one choice, got an empty list.")
            for entry in chosen:
                if allowed is not None and entry not in allowed:
                    raise ValueError(f"`{name}` should contain only {', '.join(allowed)}, got {entry!r}.")
        if not all(scale > 0 for scale in self.scales):
            raise ValueError(f"`scales` should be positive, got {self.scales}.")
        if self.n_samples < 1:
            raise ValueError(f"`n_samples` should be at least 1, got {self.n_samples}.")


class TaskSampler:
    """Draws batches of clustering tasks.

    Parameters
    ----------
    distribution : TaskDistribution
        Where the tasks come from.
    n_features, n_clusters : int
        The dimension d of the samples; the number k of components and of initial centers.
    dtype : torch.dtype, default=torch.float32
        Of the samples and centers.
    """

    def __init__(
        self,
        distribution: TaskDistribution,
        n_features: int,
        n_clusters: int,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        if n_clusters > distribution.n_samples:
            raise ValueError(
                f"`n_samples` should be at least n_clusters={n_clusters}, got {distribution.n_samples}."
            )
        self.distribution = distribution
        self.n_features = n_features
        self.n_clusters = n_clusters
        self.dtype = dtype

    def draw(self, n_tasks: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw tasks on the generator's device.

        Parameters
        ----------
        n_tasks : int
            B, the number of tasks.
        generator : torch.Generator
            The only source of randomness; its device is where the tensors are made.

        Returns
        -------
        samples : Tensor of shape (n_tasks, n_samples, n_features)
            In [0, 1], but for the scaling "quantile". A dimension in which all samples agree is 0.
        centers : Tensor of shape (n_tasks, n_clusters, n_features)
            Initial centers, each a sample of its task.
        """
        chosen = {name: self._choose(name, n_tasks, generator) for name in CHOICES}
        samples = self._scale(self._mixture(chosen, n_tasks, generator), chosen["scalings"])
        return samples, self._initial_centers(samples, chosen["starts"], generator)

    def _scale(self, samples: Tensor, scaling: Tensor) -> Tensor:
        """Scale each task in its own way, `scaling` (B,) being an index into the choices."""
        scaled = _scale_to_unit_cube(samples, scaling == 0)
        if {"quantile", "clipped"} & set(self.distribution.scalings):
            robust = _scale_by_quantiles(samples)
            robust = torch.where((scaling == 3)[:, None, None], robust.clamp(0, 1), robust)
            scaled = torch.where((scaling >= 2)[:, None, None], robust, scaled)
        return scaled

    def _choose(self, name: str, n_tasks: int, generator: torch.Generator) -> Tensor:
        """Draw which of the choices each task has, as an index into `CHOICES` (or into the scales)."""
        listed = getattr(self.distribution, name)
        allowed = CHOICES[name]
        entries = range(len(listed)) if allowed is None else [allowed.index(entry) for entry in listed]
        table = torch.tensor(list(entries), device=generator.device)
        return table[torch.randint(len(listed), (n_tasks,), generator=generator, device=generator.device)]

    def _mixture(self, chosen: dict[str, Tensor], n_tasks: int, generator: torch.Generator) -> Tensor:
        """Draw the mixtures' samples, not yet scaled: (B, n, d)."""
        location, scale = self._components(chosen, n_tasks, generator)  # (B, k, d)
        component = self._component_of_sample(chosen, n_tasks, generator)  # (B, n)
        location, scale = take_rows(location, component), take_rows(scale, component)  # (B, n, d)
        samples = torch.empty_like(location)
        for number, family in enumerate(FAMILIES):
            if family in self.distribution.families:
                tasks = chosen["families"] == number
                samples[tasks] = FAMILIES[family](location[tasks], scale[tasks], generator)
        return samples

    def _components(
        self, chosen: dict[str, Tensor], n_tasks: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Locations uniform in the cube and the scales of the components, each (B, k, d)."""
        shape = (n_tasks, self.n_clusters, self.n_features)
        location = uniform(shape, self.dtype, generator)
        scales = torch.tensor(self.distribution.scales, dtype=self.dtype, device=generator.device)
        scale = scales[chosen["scales"]][:, None, None].expand(shape)
        if "anisotropic" in self.distribution.shapes:
            anisotropic = (chosen["shapes"] == 1)[:, None, None]
            scale = torch.where(anisotropic, scale * uniform(shape, self.dtype, generator), scale)
        return location, scale

    def _component_of_sample(
        self, chosen: dict[str, Tensor], n_tasks: int, generator: torch.Generator
    ) -> Tensor:
        """Draw the component each sample comes from: (B, n) indices."""
        weights = torch.ones(n_tasks, self.n_clusters, dtype=self.dtype, device=generator.device)
        if "random" in self.distribution.mixture_weights:
            # Exponentials over their sum are uniform on the simplex; multinomial divides by the sum.
            random = exponential(weights, generator)
            weights = torch.where((chosen["mixture_weights"] == 1)[:, None], random, weights)
        return torch.multinomial(weights, self.distribution.n_samples, replacement=True, generator=generator)

    def _initial_centers(self, samples: Tensor, start: Tensor, generator: torch.Generator) -> Tensor:
        """Choose initial centers (B, k, d) in each task's own way."""
        centers = samples.new_empty(len(samples), self.n_clusters, self.n_features)
        for number, method in enumerate(STARTS):
            if method in self.distribution.starts:
                tasks = start == number
                centers[tasks] = STARTS[method](samples[tasks], self.n_clusters, generator)
        return centers


def _scale_to_unit_cube(samples: Tensor, per_dimension: Tensor) -> Tensor:
    """Shift the least of every dimension to 0; divide by its range, or by the task's largest range."""
    low = samples.amin(dim=1, keepdim=True)  # (B, 1, d)
    extent = samples.amax(dim=1, keepdim=True) - low
    widest = extent.amax(dim=2, keepdim=True).expand_as(extent)
    divisor = torch.where(per_dimension[:, None, None], extent, widest)
    return (samples - low) / torch.where(divisor > 0, divisor, 1.0)  # a constant dimension: 0 / 1, not 0 / 0


def _scale_by_quantiles(samples: Tensor) -> Tensor:
    """Shift the 5 % quantile of every dimension to 0, and divide so that the 95 % quantile becomes 1."""
    low, high = samples.quantile(torch.tensor([0.05, 0.95]).to(samples), dim=1, keepdim=True)
    return (samples - low) / torch.where(high > low, high - low, 1.0)
