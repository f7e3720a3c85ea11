"""The k-means objective, and the smoothed one that training minimises (Eq. 6, App. H)."""

from collections.abc import Callable

import torch
from torch import Tensor

from .sparsemax import sparsemax


def squared_distances(samples: Tensor, centers: Tensor) -> Tensor:
    """Squared distances of every sample to every center.

    Parameters
    ----------
    samples : Tensor of shape (..., n, d)
        Coordinates of order 1, as tasks have: the squares are expanded, so that the error is eps times the
        squared norms.
    centers : Tensor of shape (..., k, d)
        Centers of the same tasks.

    Returns
    -------
    Tensor of shape (..., n, k)
        Differentiable everywhere.
    """
    norms = samples.square().sum(dim=-1).unsqueeze(-1) + centers.square().sum(dim=-1).unsqueeze(-2)
    return norms - 2 * samples @ centers.mT


def inertia(samples: Tensor, centers: Tensor) -> Tensor:
    """K-means objective of each task (Eq. 1): the sum over its samples of the least squared distance.

    Parameters
    ----------
    samples : Tensor of shape (..., n, d)
        The samples of each task.
    centers : Tensor of shape (..., k, d)
        The centers of each task.

    Returns
    -------
    Tensor of shape (...)
        Never negative.
    """
    return squared_distances(samples, centers).amin(dim=-1).clamp(min=0).sum(dim=-1)


def _softmax(scores: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1)


#: The weights P of the smoothed minimum, by the regularizer: negative entropy (ne) or squared norm (l2).
SMOOTHINGS: dict[str, Callable[[Tensor], Tensor]] = {"ne": _softmax, "l2": sparsemax}


def smoothed_minimum(values: Tensor, smoothing: str, tau: float | Tensor) -> Tensor:
    """Weighted mean of the values that bounds their minimum from above, <P(-values / tau), values>.

    Parameters
    ----------
    values : Tensor of shape (..., k)
        The squared distances r of a sample to the centers.
    smoothing : {"ne", "l2"}
        Whether P is softmax or sparsemax.
    tau : float or Tensor that broadcasts with `values`
        The penalty: the smaller, the closer to the minimum.

    Returns
    -------
    Tensor of shape (...)
        At least the minimum, which it reaches as tau goes to 0.
    """
    return (SMOOTHINGS[smoothing](-values / tau) * values).sum(dim=-1)


def smoothed_inertia(samples: Tensor, centers: Tensor, smoothing: str, tau: float | Tensor) -> Tensor:
    """Smoothed k-means objective of each task (Eq. 6): `smoothed_minimum` summed over the samples.

    Parameters
    ----------
    samples : Tensor of shape (..., n, d)
        The samples of each task.
    centers : Tensor of shape (..., k, d)
        The network's output for them.
    smoothing : {"ne", "l2"}
        Negative entropy or squared norm.
    tau : float or Tensor that broadcasts with (..., n, k)
        The penalty.

    Returns
    -------
    Tensor of shape (...)
        An upper bound of `inertia`.
    """
    return smoothed_minimum(squared_distances(samples, centers), smoothing, tau).sum(dim=-1)
