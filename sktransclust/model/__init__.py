"""The network: tokens in, centers out.

Read in this order: ``config`` (what a network is), ``embedding`` (samples and centers as tokens),
``attention_weights`` (softmax and its hard limits), ``attention`` (Eq. 3), ``lloyd_weights`` (the projections
of Thm. 2.1), ``block`` (one layer, Eq. 4), ``transformer`` (the module).
"""

from .block import lloyd_layer
from .config import PROJECTION_NAMES, LloydConfig
from .embedding import decode_labels, embed_centers, embed_samples
from .lloyd_weights import exact_config, lloyd_projections
from .transformer import LloydOutput, LloydTransformer, random_projections

__all__ = [
    "PROJECTION_NAMES",
    "LloydConfig",
    "LloydOutput",
    "LloydTransformer",
    "decode_labels",
    "embed_centers",
    "embed_samples",
    "exact_config",
    "lloyd_layer",
    "lloyd_projections",
    "random_projections",
]
