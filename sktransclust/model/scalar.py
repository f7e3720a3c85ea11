"""A layer whose projections are two scalars each, and so fits any number of features and clusters.

Clustering does not change when the axes are rotated or the clusters renamed. A projection that respects
both is s P_D + t P_E: the scalar s on the coordinates, t on the code (P_D and P_E as in Thm. 2.1). With
one-hot codes the four attentions of Eq. 4 become the formulas below: the code part of a sample is its row
of assignment weights, and no token is ever built. Samples attend to no samples (A2 = 0), so that a layer
costs O(n k d); update's softmax runs over the samples in tiles, so that memory is O(tile + k (k + d)).

Coordinates are centered on the samples' mean and divided by the root of the mean squared distance of the
samples to their nearest center. That takes the part of gamma / sqrt(d_emb) in Eq. 3, and makes the layer
indifferent to the unit of the data, too.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from .config import PROJECTIONS, LloydConfig

_TILE_ELEMENTS = 1 << 20  # assignment weights held at once
FEATURE_OFFSET = 0.05  # keeps the logarithm of a feature finite where the feature is 0
LARGEST_LOG_GAIN = 3.0

#: The values from which training starts, (s, t): a softened Lloyd iteration that hardly mixes centers.
START = {
    "assign.query": (1.5, 0.0),
    "assign.key": (1.5, 0.0),
    "assign.value": (0.0, 1.0),
    "update.query": (0.05, 2.0),
    "update.key": (0.05, 2.0),
    "update.value": (1.0, 0.0),
    "erase_centers.query": (0.05, 2.0),
    "erase_centers.key": (0.05, 2.0),
    "erase_centers.value": (-1.0, 0.0),
}


def scalar_start(config: LloydConfig, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """Return the weights of a softened Lloyd iteration, to start training from.

    Returns
    -------
    dict of Tensors
        By the names of ``config.parameter_shapes()``.
    """
    return {
        name: torch.tensor(START.get(name, (0.0,) * shape[0]), dtype=dtype)
        for name, shape in config.parameter_shapes().items()
    }


class Description(NamedTuple):
    """What the layer sees of the current centers."""

    scale: Tensor  # (...): root of the mean squared distance of samples to their nearest center
    features: Tensor  # (..., k, F), by the names of the config


def scalar_layer(
    samples: Tensor,
    centers: Tensor,
    scalars: Mapping[str, Tensor],
    config: LloydConfig,
    sample_weight: Tensor | None = None,
    tile_elements: int = _TILE_ELEMENTS,
) -> Tensor:
    """Move the centers by one layer on freshly embedded tokens.

    Parameters
    ----------
    samples : Tensor of shape (..., n, d)
        In any unit.
    centers : Tensor of shape (..., k, d)
        With the same leading dimensions.
    scalars : mapping of str to Tensor
        By the names of ``config.parameter_shapes()``.
    config : LloydConfig
        With ``projection="scalar"``.
    sample_weight : Tensor of shape (..., n), optional
        How often each sample counts.
    tile_elements : int
        How many assignment weights are held at once.

    Returns
    -------
    Tensor of shape (..., k, d)
        The coordinates of C+.
    """
    middle = weighted_mean(samples, sample_weight)  # (..., 1, d)
    samples, centers = samples - middle, centers - middle
    scale, features = describe(samples, centers, config.features, sample_weight, tile_elements)
    unit = scale[..., None, None]
    c = centers / unit
    update = _RunningAverage()
    for rows in tiles(samples.shape, centers.shape[-2], tile_elements):
        x, y = _assign(samples[..., rows, :] / unit, c, scalars, features)
        scores = _update_scores(x, y, c, scalars, features)
        if sample_weight is not None:
            scores = scores + _log(sample_weight[..., rows]).unsqueeze(-1)
        update.add(scores, x)
    erased = c + scalars["erase_centers.value"][0] * _centers_attention(c, scalars, features)
    c = erased + scalars["update.value"][0] * update.mean()  # Eq. 4: C+ = C + A(C, X+; ...) + A(C, C; ...)
    return c * unit + middle


def _assign(x: Tensor, c: Tensor, scalars: Mapping[str, Tensor], features: Tensor) -> tuple[Tensor, Tensor]:
    """Eq. 4: X+ = X + A(X, C; Q1, K1, V1), as coordinates (..., tile, d) and code (..., tile, k).

    The samples' own code is 0, so that the code part of the distance is the same for all centers.
    """
    (query, _), (key, _), (value, code) = _projections(scalars, "assign")
    bias = features @ scalars["assign.bias"] - key**2 * c.square().sum(-1)
    attention = torch.softmax(x @ (2 * query * key * c).mT + bias.unsqueeze(-2), dim=-1)
    return x + value * (attention @ c), code * attention


def _update_scores(
    x: Tensor, y: Tensor, c: Tensor, scalars: Mapping[str, Tensor], features: Tensor
) -> Tensor:
    """Scores (..., tile, k) of A(C, X+; Q3, K3, V3), a column for each query; coordinates and codes count."""
    (query, query_code), (key, key_code), _ = _projections(scalars, "update")
    lengths = key**2 * x.square().sum(-1, keepdim=True) + key_code**2 * y.square().sum(-1, keepdim=True)
    gain = _gain(features, scalars["update.gain"])  # (..., k, 1)
    scores = torch.addcmul(x @ (2 * query * key * gain * c).mT, y, 2 * query_code * key_code * gain.mT)
    return scores - lengths * gain.mT


def _centers_attention(c: Tensor, scalars: Mapping[str, Tensor], features: Tensor) -> Tensor:
    """Mean of the centers that each attends to in A(C, C; Q4, K4, V4); any two codes are equally far."""
    (query, query_code), (key, key_code), _ = _projections(scalars, "erase_centers")
    bias = features @ scalars["erase_centers.bias"] - key**2 * c.square().sum(-1)
    same = torch.eye(c.shape[-2], dtype=c.dtype, device=c.device)
    scores = c @ (2 * query * key * c).mT + bias.unsqueeze(-2) + 2 * query_code * key_code * same
    return torch.softmax(_gain(features, scalars["erase_centers.gain"]) * scores, dim=-1) @ c


def _projections(scalars: Mapping[str, Tensor], name: str) -> tuple[Tensor, ...]:
    """Query, key and value projection of an attention, each (s, t)."""
    return tuple(scalars[f"{name}.{part}"] for part in PROJECTIONS)


def _gain(features: Tensor, weights: Tensor) -> Tensor:
    """Learned inverse temperature of each center: (..., k, 1)."""
    return (features @ weights).clamp(-LARGEST_LOG_GAIN, LARGEST_LOG_GAIN).exp().unsqueeze(-1)


class _RunningAverage:
    """Softmax over keys that come tile by tile, by a running maximum, sum and weighted sum of the values."""

    def __init__(self) -> None:
        self.largest: Tensor | None = None

    def add(self, scores: Tensor, values: Tensor) -> None:
        """Take in scores (..., tile, k) of the keys with values (..., tile, d)."""
        largest = scores.detach().amax(-2, keepdim=True)  # softmax does not depend on it, nor its gradient
        if self.largest is None:
            weights = (scores - largest).exp()
            self.total, self.values = weights.sum(-2).unsqueeze(-1), weights.mT @ values
        else:
            largest = torch.maximum(largest, self.largest)
            weights, shrink = (scores - largest).exp(), (self.largest - largest).exp().mT
            self.total = self.total * shrink + weights.sum(-2).unsqueeze(-1)
            self.values = self.values * shrink + weights.mT @ values
        self.largest = largest

    def mean(self) -> Tensor:
        """Return the average of all values: (..., k, d)."""
        return self.values / self.total


def describe(
    samples: Tensor,
    centers: Tensor,
    names: tuple[str, ...],
    sample_weight: Tensor | None = None,
    tile_elements: int = _TILE_ELEMENTS,
) -> Description:
    """Describe centers by numbers that neither a rotation nor a change of unit alters; without a gradient.

    Parameters
    ----------
    samples : Tensor of shape (..., n, d)
        Centered, for accuracy.
    centers : Tensor of shape (..., k, d)
        In the same coordinates.
    names : tuple of str
        Which features: "mass", the weight of a cluster relative to the mean one; "error", the mean squared
        distance within the cluster and "gap", the squared distance to the nearest other center, both
        relative to the mean squared distance of all samples. Each is taken as log(0.05 + value).
    sample_weight : Tensor of shape (..., n), optional
    tile_elements : int

    Returns
    -------
    Description
    """
    with torch.no_grad():
        n_clusters = centers.shape[-2]
        mass, error = centers.new_zeros(2, *centers.shape[:-1])
        for rows in tiles(samples.shape, n_clusters, tile_elements):
            near, label = squared_distances(samples[..., rows, :], centers).min(-1)
            weight = torch.ones_like(near) if sample_weight is None else sample_weight[..., rows].to(near)
            mass.scatter_add_(-1, label, weight)
            error.scatter_add_(-1, label, weight * near)
        total = mass.sum(-1, keepdim=True)
        mean = error.sum(-1, keepdim=True) / total
        mean = torch.where(mean > 0, mean, 1.0)
        values = {
            "mass": mass * n_clusters / total,
            "error": torch.where(mass > 0, error / torch.where(mass > 0, mass, 1.0) / mean, 1.0),
            "gap": _gap(centers) / mean,
        }
        features = [(values[name] + FEATURE_OFFSET).log() for name in names]
        stacked = torch.stack(features, -1) if features else centers.new_zeros(*centers.shape[:-1], 0)
    return Description(mean.squeeze(-1).sqrt(), stacked)


def squared_distances(samples: Tensor, centers: Tensor) -> Tensor:
    """Squared distances (..., n, k) of coordinates near the origin."""
    lengths = samples.square().sum(-1).unsqueeze(-1) + centers.square().sum(-1).unsqueeze(-2)
    return torch.sub(lengths, samples @ centers.mT, alpha=2).clamp_(min=0)


def weighted_mean(samples: Tensor, sample_weight: Tensor | None) -> Tensor:
    """Mean of samples (..., n, d): (..., 1, d)."""
    if sample_weight is None:
        return samples.mean(-2, keepdim=True)
    weight = sample_weight.to(samples).unsqueeze(-1)
    return (weight * samples).sum(-2, keepdim=True) / weight.sum(-2, keepdim=True)


def tiles(shape: torch.Size, n_clusters: int, tile_elements: int) -> Iterator[slice]:
    """Divide the n samples of a tensor of shape (..., n, d)."""
    tasks, n_samples = shape[:-2].numel(), shape[-2]
    rows = max(1, tile_elements // (tasks * n_clusters))
    return (slice(start, start + rows) for start in range(0, n_samples, rows))


def _gap(centers: Tensor) -> Tensor:
    """Squared distance of each center to the nearest other one; 0 for a single center."""
    if centers.shape[-2] == 1:
        return centers.new_zeros(centers.shape[:-1])
    squared = squared_distances(centers, centers)
    squared.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)
    return squared.amin(-1)


def _log(weight: Tensor) -> Tensor:
    """Logarithm whose value at 0 is finite, and whose exponential is still 0 beside any other weight."""
    return weight.log().clamp(min=torch.finfo(weight.dtype).min / 4)
