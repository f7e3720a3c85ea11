"""Projections with which a layer computes one Lloyd iteration (Thm. 2.1), and the maps that go with them."""

import torch
from torch import Tensor

from .config import PROJECTION_NAMES, LloydConfig

KEEP_BIAS = 0.5  # any number strictly between 0 (a member's score) and 1 (the least distance of two codes)


def exact_config(
    n_features: int, n_clusters: int, embedding: str = "binary", n_layers: int = 1
) -> LloydConfig:
    """Describe the network at infinite inverse temperature.

    Assign takes the lowest index among equally near centers: the mean of two codes would be no cluster's
    code. Update averages all members. Erase is the identity, since samples at equal places carry equal codes.

    Raises
    ------
    ValueError
        For ``embedding="none"``: without codes the centers cannot tell their members from other samples.
    """
    if embedding not in ("binary", "onehot"):
        raise ValueError(
            f"`embedding` should be 'binary' or 'onehot' for an exact network, got {embedding!r}"
        )
    return LloydConfig(
        n_features,
        n_clusters,
        embedding,
        n_layers,
        assign_map="argmax",
        erase_map="identity",
        update_map="hardmax",
        keep_bias=KEEP_BIAS,
    )


def lloyd_projections(config: LloydConfig, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """Build the twelve projections of Thm. 2.1, each of which keeps the coordinates or the code.

    Returns
    -------
    projections : dict of Tensors of shape (token_width, token_width)
        By the names of ``PROJECTION_NAMES``.
    """
    is_code = torch.arange(config.token_width) >= config.n_features
    coordinates = torch.diag((~is_code).to(dtype))  # P_D
    code = torch.diag(is_code.to(dtype))  # P_E
    matrices = (
        *(coordinates, coordinates, code),  # assign: near in space, take the code
        *(coordinates, coordinates, -code),  # erase_samples: subtract the old code
        *(code, code, coordinates),  # update: equal in code, take the coordinates
        *(code, code, -coordinates),  # erase_centers: subtract the old coordinates
    )
    return dict(zip(PROJECTION_NAMES, matrices, strict=True))
