"""Ways to choose the initial centers of a batch of tasks among their samples."""

from collections.abc import Callable

import torch
from torch import Tensor


def random_centers(samples: Tensor, n_clusters: int, generator: torch.Generator) -> Tensor:
    """Choose distinct samples of each task as initial centers.

    Parameters
    ----------
    samples : Tensor of shape (B, n, d)
        The tasks' samples.
    n_clusters : int
        k, at most n.
    generator : torch.Generator
        The source of randomness, on the device of the samples.

    Returns
    -------
    Tensor of shape (B, k, d)
        Every set of k rows is equally likely.
    """
    keys = uniform(samples.shape[:2], samples.dtype, generator)  # (B, n)
    return take_rows(samples, keys.topk(n_clusters, dim=1).indices)


def kmeans_plus_plus_centers(samples: Tensor, n_clusters: int, generator: torch.Generator) -> Tensor:
    """Choose initial centers one after the other with probability proportional to the squared distance.

    Parameters
    ----------
    samples : Tensor of shape (B, n, d)
        The tasks' samples.
    n_clusters : int
        k, at most n.
    generator : torch.Generator
        The source of randomness, on the device of the samples.

    Returns
    -------
    Tensor of shape (B, k, d)
        Samples; a repeated one only where fewer than k differ.
    """
    potential = torch.full_like(samples[:, :, 0], torch.inf)  # (B, n)
    weights = torch.ones_like(potential)
    centers = []
    for _ in range(n_clusters):
        center = take_rows(samples, torch.multinomial(weights, 1, generator=generator))  # (B, 1, d)
        centers.append(center)
        potential = torch.minimum(potential, (samples - center).square().sum(dim=2))
        # A task whose samples are all taken has no distance left to weigh by: any of them will do.
        weights = torch.where((potential > 0).any(dim=1, keepdim=True), potential, 1.0)
    return torch.cat(centers, dim=1)


#: By the name a `TaskDistribution` gives them.
STARTS: dict[str, Callable[[Tensor, int, torch.Generator], Tensor]] = {
    "random": random_centers,
    "k-means++": kmeans_plus_plus_centers,
}


def take_rows(samples: Tensor, index: Tensor) -> Tensor:
    """Rows `index` (B, m) of samples (B, n, d): (B, m, d)."""
    first = torch.arange(len(samples), device=samples.device)[:, None] * samples.shape[1]
    return samples.flatten(0, 1)[first + index]


def uniform(shape: tuple[int, ...] | torch.Size, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Draw from U(0, 1) on the generator's device."""
    return torch.rand(shape, dtype=dtype, device=generator.device, generator=generator)
