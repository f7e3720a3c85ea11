"""Attention by squared distances (Def. 2.2, Eq. 3): pure functions over tokens that are rows.

Shapes: tokens are (..., n, e) with any leading dimensions. Projections are (e, e), or (S, e, e) for S
networks at once; tokens are then (S, ..., n, e).
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from .attention_weights import argmax_weights, hardmax_weights, softmax_weights

# With at least this many queries *and* keys, torch's fused kernel is the faster one, forward and backward
# (measured on one CPU core, token widths 7 and 36). With fewer of either the matrix is small, and plain wins.
FUSED_MIN_TOKENS = 64


def attention(
    query_tokens: Tensor,
    key_tokens: Tensor,
    projections: tuple[Tensor, Tensor, Tensor],
    attention_map: str,
    *,
    inverse_temperature: float = 1.0,
    key_weight: Tensor | None = None,
    key_bias: Tensor | None = None,
    return_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Weighted mean of the projected key tokens, weighted by closeness to each query token.

    Parameters
    ----------
    query_tokens : Tensor of shape (..., m, e)
        The tokens that ask.
    key_tokens : Tensor of shape (..., n, e)
        The tokens that are asked; with the map "identity", the query tokens themselves.
    projections : tuple of three Tensors of shape (e, e) or (S, e, e)
        Query, key and value projection (Q, K, V).
    attention_map : {"softmax", "hardmax", "argmax", "identity"}
        "softmax" is Eq. 3 with the scores -gamma / sqrt(e) * sqdist. "hardmax" and "argmax" are its limits:
        the mean over all nearest keys, and the first nearest key. "identity": every token attends to itself
        alone.
    inverse_temperature : float
        gamma, for softmax.
    key_weight : Tensor of shape (..., n), optional
        Counts each key that many times, 0 included.
    key_bias : Tensor of shape (n,), optional
        Added to the scores.
    return_weights : bool
        Whether to return the attention matrix too.

    Returns
    -------
    output : Tensor of shape (..., m, e)
        A(query_tokens, key_tokens; Q, K, V).
    weights : Tensor of shape (..., m, n) or None
        The attention matrix, rows summing to one, if asked for.
    """
    query, key, value = projections
    values = project(key_tokens, value)
    if attention_map == "identity":
        return values, _identity_matrix(values) if return_weights else None
    queries, keys = project(query_tokens, query), project(key_tokens, key)
    if attention_map == "softmax":
        scale = inverse_temperature / math.sqrt(query_tokens.shape[-1])
        bias = _score_bias(key_weight, key_bias)
        return softmax_attention(queries, keys, values, scale, bias, return_weights=return_weights)
    return hard_attention(
        queries, keys, values, attention_map, key_weight, key_bias, return_weights=return_weights
    )


def project(tokens: Tensor, matrix: Tensor) -> Tensor:
    """Multiply every token by `matrix`; S matrices (S, e, e) take the S slices of tokens (S, ..., n, e)."""
    if matrix.dim() == 2:
        return tokens @ matrix
    # One product per network, over all of its tokens, instead of one per task.
    return (tokens.flatten(1, -2) @ matrix).unflatten(1, tokens.shape[1:-1])


def squared_distances(queries: Tensor, keys: Tensor) -> Tensor:
    """Squared distances (..., m, n) by direct differences, feature by feature.

    Never |q|^2 - 2 q.k + |k|^2, which cancels; never (..., m, n, e), which does not fit.
    """
    total = queries.new_zeros(*queries.shape[:-1], keys.shape[-2])
    for query, key in zip(queries.unbind(-1), keys.unbind(-1), strict=True):
        total += (query.unsqueeze(-1) - key.unsqueeze(-2)).square()
    return total


def hard_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    attention_map: str,
    key_weight: Tensor | None = None,
    key_bias: Tensor | None = None,
    *,
    return_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Limit of Eq. 3 at infinite inverse temperature for projected tokens, by "argmax" or "hardmax"."""
    # The maps are piecewise constant, so the scores need no gradient.
    scores = squared_distances(queries.detach(), keys.detach()).neg_()  # (..., m, n)
    if key_bias is not None:
        scores += key_bias
    weights = argmax_weights(scores) if attention_map == "argmax" else hardmax_weights(scores, key_weight)
    output = weighted_mean(weights, values)
    return output, weights / weights.sum(dim=-1, keepdim=True) if return_weights else None


def weighted_mean(weights: Tensor, values: Tensor) -> Tensor:
    """Mean of the values (..., n, e) under unnormalised weights (..., m, n), as sum / count."""
    return (weights @ values) / weights.sum(dim=-1, keepdim=True)


def softmax_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    scale: float,
    bias: Tensor | None = None,
    *,
    return_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Eq. 3 for projected tokens; the plain formula or the fused kernel, whichever is faster.

    `scale` is gamma / sqrt(e); `bias`, broadcastable to (..., n), is added to the scores of the keys.
    """
    queries, keys = dot_product_form(queries, keys, scale, bias)
    if return_weights or min(queries.shape[-2], keys.shape[-2]) < FUSED_MIN_TOKENS:
        output, weights = plain_attention(queries, keys, values)
        return output, weights if return_weights else None
    return fused_attention(queries, keys, values), None


def dot_product_form(
    queries: Tensor, keys: Tensor, scale: float, bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Augment queries and keys so that q.k = -scale * sqdist + bias, but for a constant of each query.

    |q - k|^2 = |q|^2 - 2 q.k + |k|^2 and softmax ignores |q|^2: [2 scale q, 1] and [k, bias - scale |k|^2].
    Zeros fill the width up to a multiple of 4, without which CUDA's fused kernel for float32 does not run.
    """
    # A common shift leaves all distances (hence detach), but not the rounding of |k|^2, as they are.
    shift = keys.detach().mean(dim=-2, keepdim=True)
    queries, keys = queries - shift, keys - shift
    key_scores = -scale * keys.square().sum(dim=-1, keepdim=True)  # (..., n, 1)
    if bias is not None:
        key_scores = key_scores + bias.unsqueeze(-1)
    fill = keys.new_zeros(3 - keys.shape[-1] % 4)
    one = fill.new_ones(1)
    return _append(2 * scale * queries, one, fill), _append(keys, key_scores, fill)


def _append(features: Tensor, *columns: Tensor) -> Tensor:
    lead = features.shape[:-1]
    return torch.cat([features, *(column.expand(*lead, -1) for column in columns)], dim=-1)


def plain_attention(queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Dot-product attention with its matrix held in memory; returns output and matrix."""
    weights = softmax_weights(queries @ keys.mT)
    return weights @ values, weights


def fused_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Dot-product attention by torch's fused kernel, which never holds the matrix.

    The kernel runs only for 4-D inputs of one common width, without a mask; otherwise torch silently falls
    back to a formula that needs the whole matrix.
    """
    width = values.shape[-1]
    values = pad(values, (0, queries.shape[-1] - width))
    query, key, value = (z.reshape(-1, 1, *z.shape[-2:]) for z in (queries, keys, values))  # (tasks, 1, ...)
    output = scaled_dot_product_attention(query, key, value, scale=1.0)  # (tasks, 1, m, augmented width)
    return output.reshape(queries.shape)[..., :width]


def _score_bias(key_weight: Tensor | None, key_bias: Tensor | None) -> Tensor | None:
    """Sum of the bias and the log-weights: repeating a key w times adds log w to its score."""
    if key_weight is None:
        return key_bias
    # Weight 0 becomes a finite score whose exponential is 0: -inf would meet a factor 0 in the backward pass.
    log_weight = key_weight.log().clamp(min=torch.finfo(key_weight.dtype).min / 4)
    return log_weight if key_bias is None else log_weight + key_bias


def _identity_matrix(values: Tensor) -> Tensor:
    n = values.shape[-2]
    return torch.eye(n, dtype=values.dtype, device=values.device).expand(*values.shape[:-2], n, n)
