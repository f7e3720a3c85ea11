"""From scores to attention weights: softmax, and its two limits at infinite inverse temperature.

Scores have the shape (..., queries, keys). The limits differ where several keys share the largest score:
hardmax takes all of them, argmax the first.
"""

import torch
from torch import Tensor


def softmax_weights(scores: Tensor) -> Tensor:
    """Weights of Eq. 3 at finite inverse temperature; rows sum to one."""
    return torch.softmax(scores, dim=-1)


def hardmax_weights(scores: Tensor, key_weight: Tensor | None = None) -> Tensor:
    """Mark every key with the largest score; the limit of softmax.

    Parameters
    ----------
    scores : Tensor of shape (..., queries, keys)
        Ties are ties of floats, exactly equal.
    key_weight : Tensor of shape (..., keys), optional
        How often each key counts. Keys of weight 0 are removed before the maximum is taken.

    Returns
    -------
    weights : Tensor of shape (..., queries, keys)
        The weight of the maximisers (1 without `key_weight`), 0 elsewhere. *Not* normalised: the mean is
        taken as sum / count, because six times 1/6 is not 1 in floating point.
    """
    if key_weight is None:
        return (scores == scores.amax(dim=-1, keepdim=True)).to(scores.dtype)
    # The weights stay out of the scores: there, the heaviest maximiser would win alone.
    key_weight = key_weight.unsqueeze(-2)  # (..., 1, keys)
    return hardmax_weights(scores.masked_fill(key_weight == 0, -torch.inf)) * key_weight


def argmax_weights(scores: Tensor) -> Tensor:
    """Mark the first key with the largest score: one 1 in each row."""
    first = scores.argmax(dim=-1, keepdim=True)
    return torch.zeros_like(scores).scatter_(-1, first, 1.0)
