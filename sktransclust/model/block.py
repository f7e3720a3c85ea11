"""One layer (Def. 2.3, Eq. 4) as a pure function of tokens and projections."""

from collections.abc import Mapping
from typing import Literal, overload

import torch
from torch import Tensor

from .attention import attention
from .config import PROJECTIONS, LloydConfig

LayerAttention = dict[str, Tensor]  # the four attention matrices of a layer, by the names of ATTENTIONS


@overload
def lloyd_layer(
    sample_tokens: Tensor,
    center_tokens: Tensor,
    projections: Mapping[str, Tensor],
    config: LloydConfig,
    sample_weight: Tensor | None = None,
    return_attention: Literal[False] = False,
) -> tuple[Tensor, Tensor]: ...
@overload
def lloyd_layer(
    sample_tokens: Tensor,
    center_tokens: Tensor,
    projections: Mapping[str, Tensor],
    config: LloydConfig,
    sample_weight: Tensor | None = None,
    *,
    return_attention: Literal[True],
) -> tuple[Tensor, Tensor, LayerAttention]: ...
def lloyd_layer(
    sample_tokens: Tensor,
    center_tokens: Tensor,
    projections: Mapping[str, Tensor],
    config: LloydConfig,
    sample_weight: Tensor | None = None,
    return_attention: bool = False,
) -> tuple[Tensor, Tensor] | tuple[Tensor, Tensor, LayerAttention]:
    """Apply one layer: samples first, then centers with the updated samples (Eq. 4).

    Parameters
    ----------
    sample_tokens : Tensor of shape (..., n, token_width)
        X. With projections for S networks at once, (S, ..., n, token_width).
    center_tokens : Tensor of shape (..., k, token_width)
        C, with the same leading dimensions.
    projections : mapping of str to Tensor of shape (e, e) or (S, e, e), e = token_width
        The twelve matrices, by the names of ``PROJECTION_NAMES``: "assign.query", "assign.key", ...
    config : LloydConfig
        The attention maps; the number of layers plays no part.
    sample_weight : Tensor of shape (..., n), optional
        Weight w counts a sample w times where samples are keys. A sample of weight 0 still gets its token.
    return_attention : bool
        Whether to return the attention matrices as a third item.

    Returns
    -------
    sample_tokens : Tensor of shape (..., n, token_width)
        X+.
    center_tokens : Tensor of shape (..., k, token_width)
        C+.
    matrices : dict of Tensors
        Only with `return_attention`: "assign" (..., n, k), "erase_samples" (..., n, n), "update" (..., k, n)
        or, with a keep bias, (..., k, n + k), and "erase_centers" (..., k, k). Rows sum to one.
    """
    matrices: LayerAttention = {}

    def attend(
        name: str,
        attention_map: str,
        queries: Tensor,
        keys: Tensor,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        query, key, value = (projections[f"{name}.{projection}"] for projection in PROJECTIONS)
        output, matrix = attention(
            queries,
            keys,
            (query, key, value),
            attention_map,
            inverse_temperature=config.inverse_temperature,
            key_weight=weight,
            key_bias=bias,
            return_weights=return_attention,
        )
        if matrix is not None:
            matrices[name] = matrix
        return output

    # Erase before adding: the old part minus itself is exactly 0, and the new part then stays as it is.
    x, c, w = sample_tokens, center_tokens, sample_weight
    erased = x + attend("erase_samples", config.erase_map, x, x, w)  # Eq. 4: X + A(X, X; Q2, K2, V2)
    x = erased + attend("assign", config.assign_map, x, c)  # Eq. 4: X+ = ... + A(X, C; Q1, K1, V1)
    erased = c + attend("erase_centers", config.erase_map, c, c)  # Eq. 4: C + A(C, C; Q4, K4, V4)
    keys = _update_keys(x, c, config, w)
    c = erased + attend("update", config.update_map, c, *keys)  # Eq. 4: C+ = ... + A(C, X+; Q3, K3, V3)
    return (x, c, matrices) if return_attention else (x, c)


def _update_keys(
    sample_tokens: Tensor, center_tokens: Tensor, config: LloydConfig, sample_weight: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Keys of update, their weights and their biases; with a keep bias, the centers join the samples.

    A center's own token scores -eta: below its members' 0, above the at most -1 of every other token. So the
    center of an empty cluster finds itself.
    """
    if config.keep_bias is None:
        return sample_tokens, sample_weight, None
    n, k = sample_tokens.shape[-2], center_tokens.shape[-2]
    bias = sample_tokens.new_zeros(n + k)
    bias[n:] = -config.keep_bias
    keys = torch.cat([sample_tokens, center_tokens], dim=-2)  # (..., n + k, e)
    if sample_weight is None:
        return keys, None, bias
    return keys, torch.nn.functional.pad(sample_weight, (0, k), value=1.0), bias
