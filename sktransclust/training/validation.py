"""Validation against one Lloyd iteration (Eq. 20)."""

import torch
from torch import Tensor

from ..model import LloydTransformer
from .loss import inertia


def lloyd_step(samples: Tensor, centers: Tensor) -> Tensor:
    """One Lloyd iteration by the exact network (Thm. 2.1); empty clusters keep their center.

    Parameters
    ----------
    samples : Tensor of shape (..., n, d)
        The samples of each task.
    centers : Tensor of shape (..., k, d)
        The centers to start from.

    Returns
    -------
    Tensor of shape (..., k, d)
        The means of the clusters.
    """
    exact = LloydTransformer.exact(samples.shape[-1], centers.shape[-2]).to(samples)
    with torch.no_grad():
        return exact.step(samples, centers)


def relative_inertia(samples: Tensor, centers: Tensor, lloyd_inertia: Tensor) -> Tensor:
    """Mean over tasks of the objective relative to that of one Lloyd iteration (Eq. 20).

    Parameters
    ----------
    samples : Tensor of shape (..., B, n, d)
        The samples of B tasks.
    centers : Tensor of shape (..., B, k, d)
        The network's centers after one step.
    lloyd_inertia : Tensor of shape (..., B)
        The objective after one Lloyd iteration from the same initial centers.

    Returns
    -------
    Tensor of shape (...)
        Below 1: better than one Lloyd iteration. A task without any spread counts as 1.
    """
    learned = inertia(samples, centers)
    ratio = torch.where((learned == 0) & (lloyd_inertia == 0), 1.0, learned / lloyd_inertia)
    return ratio.mean(dim=-1)
