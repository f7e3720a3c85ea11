"""Tokens: coordinates followed by a code (Def. 2.1). Tokens are rows; the paper's are columns."""

import torch
from torch import Tensor

from .config import LloydConfig


def center_codes(config: LloydConfig, like: Tensor) -> Tensor:
    """Codes of all clusters, one a row.

    Parameters
    ----------
    config : LloydConfig
        Gives the number of clusters and the kind of code.
    like : Tensor
        Gives the dtype and the device.

    Returns
    -------
    codes : Tensor of shape (n_clusters, code_width)
        "binary": the bits of the cluster's 0-based number, least significant first. "onehot": the identity.
    """
    if config.embedding == "onehot":
        return torch.eye(config.n_clusters, dtype=like.dtype, device=like.device)
    numbers = torch.arange(config.n_clusters, device=like.device).unsqueeze(1)  # (k, 1)
    bits = torch.arange(config.code_width, device=like.device)  # (code_width,), empty without a code
    return ((numbers >> bits) & 1).to(like.dtype)  # (k, code_width)


def embed_samples(samples: Tensor, config: LloydConfig) -> Tensor:
    """Sample tokens: the coordinates and a code of zeros, (..., n, d) to (..., n, e)."""
    return torch.nn.functional.pad(samples, (0, config.code_width))


def embed_centers(centers: Tensor, config: LloydConfig) -> Tensor:
    """Center tokens: the coordinates and the cluster's code, (..., k, d) to (..., k, e)."""
    codes = center_codes(config, like=centers)
    return torch.cat([centers, codes.expand(*centers.shape[:-1], -1)], dim=-1)


def decode_labels(sample_tokens: Tensor, config: LloydConfig) -> Tensor:
    """Read each sample's cluster from the code that its token carries.

    Parameters
    ----------
    sample_tokens : Tensor of shape (..., n, token_width)
        As a layer leaves them.
    config : LloydConfig
        The network's.

    Returns
    -------
    labels : Tensor of shape (..., n), int64
        The cluster whose code is nearest. After an exact layer the code is equal to that cluster's.

    Raises
    ------
    ValueError
        If the network's tokens carry no code.
    """
    if config.embedding == "none":
        raise ValueError("`embedding` should be 'binary' or 'onehot' to decode labels, got 'none'")
    codes = center_codes(config, like=sample_tokens)
    carried = sample_tokens[..., config.n_features :]
    # |y - e_j|^2 without |y|^2, which is the same for every j; exact for codes of zeros and ones
    scores = 2 * carried @ codes.mT - codes.sum(dim=1)  # (..., n, k)
    return scores.argmax(dim=-1)
