"""The five families of mixture components, by their own location and scale (App. D)."""

from collections.abc import Callable

import torch
from torch import Tensor

Draw = Callable[[Tensor, Tensor, torch.Generator], Tensor]


def normal(location: Tensor, scale: Tensor, generator: torch.Generator) -> Tensor:
    """Mean `location`, standard deviation `scale`."""
    return location + scale * torch.empty_like(location).normal_(generator=generator)


def cauchy(location: Tensor, scale: Tensor, generator: torch.Generator) -> Tensor:
    """Median `location`, half the interquartile range `scale`; it has no mean."""
    return location + scale * torch.empty_like(location).cauchy_(generator=generator)


def gumbel(location: Tensor, scale: Tensor, generator: torch.Generator) -> Tensor:
    """Mode `location`, distribution function exp(-exp(-(x - location) / scale))."""
    return location - scale * exponential(location, generator).log()


def laplace(location: Tensor, scale: Tensor, generator: torch.Generator) -> Tensor:
    """Density exp(-|x - location| / scale) / (2 scale): a difference of two exponentials."""
    return location + scale * (exponential(location, generator) - exponential(location, generator))


def lognormal(location: Tensor, scale: Tensor, generator: torch.Generator) -> Tensor:
    """Exp of a normal variable with this location and scale; its median is exp(`location`)."""
    return normal(location, scale, generator).exp()


def exponential(like: Tensor, generator: torch.Generator) -> Tensor:
    """Draw exponential variables of rate 1, above zero so that their logarithm is finite."""
    # By the distribution function's inverse: on a CPU much faster than Tensor.exponential_.
    uniform = torch.empty_like(like).uniform_(generator=generator)  # [0, 1)
    return uniform.neg_().log1p_().neg_().clamp_(min=torch.finfo(like.dtype).tiny)


#: The families of the paper, in the order of its figures.
FAMILIES: dict[str, Draw] = {
    "normal": normal,
    "cauchy": cauchy,
    "gumbel": gumbel,
    "laplace": laplace,
    "lognormal": lognormal,
}
