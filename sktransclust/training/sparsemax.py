"""Sparsemax: the projection of a vector onto the probability simplex."""

from typing import Any

import torch
from torch import Tensor


def sparsemax(scores: Tensor) -> Tensor:
    r"""Project the last dimension onto the simplex, argmin over p in the simplex of \|p - scores\|^2.

    Parameters
    ----------
    scores : Tensor of shape (..., k)
        Entries may be -inf (they get probability 0) as long as one of the k is finite.

    Returns
    -------
    Tensor of shape (..., k)
        Probabilities, many of them exactly 0. Differentiable once.

    References
    ----------
    Martins and Astudillo, "From Softmax to Sparsemax", 2016: Algorithm 1, and Eq. 10 for the derivative.
    """
    return _Sparsemax.apply(scores)


class _Sparsemax(torch.autograd.Function):
    """Forward by sorting; the derivative is the centering of the gradient on the support."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        # Shifting by the maximum changes nothing but the rounding: at 1e6 the "1 +" below would be lost.
        shifted = scores - scores.amax(dim=-1, keepdim=True)
        decreasing = shifted.sort(dim=-1, descending=True).values
        rank = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype, device=scores.device)
        partial_sums = decreasing.cumsum(dim=-1)
        size = (1 + rank * decreasing > partial_sums).sum(dim=-1, keepdim=True)  # of the support
        last = (size - 1).clamp_(min=0)  # among scores that are not numbers, nothing is in the support
        threshold = (partial_sums.gather(-1, last) - 1) / size
        probabilities = (shifted - threshold).clamp_(min=0)
        ctx.save_for_backward(probabilities)
        return probabilities

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (probabilities,) = ctx.saved_tensors
        support = probabilities > 0
        mean = (gradient * support).sum(dim=-1, keepdim=True) / support.sum(dim=-1, keepdim=True)
        return (gradient - mean) * support
