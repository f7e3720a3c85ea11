"""The scalar layer on one set of samples again and again, without gradients: the fast twin of `scalar_layer`.

Samples are kept as columns, so that softmax over the centers and sums over the samples both run along
contiguous memory, and everything of the size of a tile is written in place: to be given fresh memory for it
takes longer than the arithmetic. What is of the size of the centers is left to NumPy, which is quicker to
call, in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from .config import FEATURE_WEIGHTS, LloydConfig
from .scalar import FEATURE_OFFSET, LARGEST_LOG_GAIN, tiles

_TILE_ELEMENTS = 1 << 18  # attention weights held at once
_LEAST_EXPONENT = -40.0  # exp of it is lost beside 1, and its square is still a normal float32 number


class ScalarStep:
    """Moves centers by a scalar network, and tells how samples lie to centers.

    Centers are arrays of shape (k, d), float64, in the samples' coordinates.

    Parameters
    ----------
    samples : Tensor of shape (n, d)
        Centered on their (weighted) mean.
    scalars : mapping of str to Tensor
        By the names of ``config.parameter_shapes()``.
    config : LloydConfig
        With ``projection="scalar"``.
    sample_weight : Tensor of shape (n,), optional
        How often each sample counts.
    tile_elements : int
        How many attention weights are held at once.
    """

    def __init__(
        self,
        samples: Tensor,
        scalars: Mapping[str, Tensor],
        config: LloydConfig,
        sample_weight: Tensor | None = None,
        tile_elements: int = _TILE_ELEMENTS,
    ) -> None:
        self.samples = samples
        self.weight = torch.ones_like(samples[:, 0]) if sample_weight is None else sample_weight.to(samples)
        self._log_weight = None if sample_weight is None else self.weight.log()
        self._scalars = {name: scalar.detach().double().cpu().numpy() for name, scalar in scalars.items()}
        self._feature_weights = np.stack([self._scalars[name] for name in FEATURE_WEIGHTS], axis=1)  # (F, 4)
        self._names, self._tile_elements = config.features, tile_elements
        self._columns = samples.T.contiguous()  # (d, n)
        self._lengths = self._columns.square().sum(0)  # (n,)
        self._memory: dict[str, Tensor] = {}

    @torch.inference_mode()
    def step(self, centers: np.ndarray) -> np.ndarray:
        """Move centers by one layer on freshly embedded tokens; see `scalar_layer`."""
        products = _product(centers, centers.T)
        scale, features = self._describe(centers, products)
        assign_bias, update_gain, erase_bias, erase_gain = (features @ self._feature_weights).T[..., None]
        layer = _Layer(centers, scale, assign_bias, _gains(update_gain), self._scalars, self.samples)
        update = _RunningMean(layer.keys)
        for columns in self._tiles(centers):
            moved, attention = self._assign(layer, columns)
            update.add(self._update_scores(layer, moved, attention, columns), moved)
        mixture = self._centers_attention(products / scale**2, erase_bias, _gains(erase_gain))
        erased = self._scalars["erase_centers.value"][0] * _product(mixture, centers)
        return centers + erased + self._scalars["update.value"][0] * update.mean()

    @torch.inference_mode()
    def describe(self, centers: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the scale and the features (k, F) of centers; see `model.scalar.describe`.

        A sample as near to several centers as to any counts for each in part.
        """
        return self._describe(centers, _product(centers, centers.T))

    def _describe(self, centers: np.ndarray, products: np.ndarray) -> tuple[float, np.ndarray]:
        sums = self.samples.new_zeros(len(centers), 2)
        keys = self._keys(centers)
        for columns in self._tiles(centers):
            _, owners, near = self._nearest(*keys, columns)
            share = self.weight[columns] / owners.sum(0)
            sums += owners @ torch.stack([share, share * near], 1)
        mass, error = sums.T.double().cpu().numpy()
        total = mass.sum()
        mean = error.sum() / total or 1.0
        values = {
            "mass": mass * (len(centers) / total),
            "error": np.divide(error, mass * mean, out=np.ones(len(centers)), where=mass > 0),
            "gap": _gaps(products) / mean,
        }
        features = np.log(FEATURE_OFFSET + np.array([values[name] for name in self._names]))
        return float(np.sqrt(mean)), features.reshape(-1, len(centers)).T

    def _centers_attention(self, products: np.ndarray, bias: np.ndarray, gain: np.ndarray) -> np.ndarray:
        """Attention weights (k, k) of A(C, C; Q4, K4, V4), of products in the layer's unit."""
        query, query_code = self._scalars["erase_centers.query"]
        key, key_code = self._scalars["erase_centers.key"]
        scores = 2 * query * key * products + (bias.T - key**2 * products.diagonal())
        scores.flat[:: len(scores) + 1] += 2 * query_code * key_code
        scores *= gain
        weights = np.exp(scores - scores.max(1, keepdims=True))
        return weights / weights.sum(1, keepdims=True)

    @torch.inference_mode()
    def near(self, centers: np.ndarray) -> Tensor:
        """Return the squared distance of each sample to the nearest center: (n,)."""
        keys = self._keys(centers)
        return torch.cat([self._nearest(*keys, columns)[2] for columns in self._tiles(centers)])

    @torch.inference_mode()
    def spread(self, near: Tensor, uniform: np.ndarray) -> np.ndarray:
        """Choose samples that are far from all centers and from each other, as greedy k-means++ does.

        Parameters
        ----------
        near : Tensor of shape (n,)
            The squared distance of each sample to the nearest center.
        uniform : ndarray of shape (m, n_trials)
            Random numbers, uniform on [0, 1).

        Returns
        -------
        ndarray of shape (m, d), float64
        """
        chosen = []
        for draws in torch.from_numpy(uniform).to(near.device):
            total = torch.cumsum(near * self.weight, 0, dtype=torch.float64)
            index = torch.searchsorted(total, draws * total[-1]).clamp_(max=len(total) - 1)
            x = self._columns[:, index]  # (d, n_trials)
            squared = self._buffer("scores", len(draws), len(near))
            torch.addmm(self._lengths, x.T, self._columns, alpha=-2, out=squared)
            squared.add_(self._lengths[index].unsqueeze(1)).clamp_(min=0)
            torch.minimum(squared, near, out=squared)
            best = int((squared @ self.weight).argmin())
            near = squared[best].clone()
            chosen.append(x[:, best])
        return torch.stack(chosen).double().cpu().numpy()

    @torch.inference_mode()
    def use(self, centers: np.ndarray) -> np.ndarray:
        """Return what the weighted squared distances would grow by without each of k > 1 centers: (k,)."""
        use = self.samples.new_zeros(len(centers))
        keys = self._keys(centers)
        for columns in self._tiles(centers):
            scores, owners, _ = self._nearest(*keys, columns)
            first = scores.amin(0)
            scores.add_(owners, alpha=torch.finfo(scores.dtype).max / 4)
            growth = (scores.amin(0) - first) * self.weight[columns] * (owners.sum(0) == 1)
            use += owners @ growth
        return use.cpu().numpy()

    def _keys(self, centers: np.ndarray) -> tuple[Tensor, Tensor]:
        keys = torch.from_numpy(centers).to(self.samples)
        return keys, torch.from_numpy((centers**2).sum(1, keepdims=True)).to(self.samples)

    def _nearest(self, keys: Tensor, lengths: Tensor, columns: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Return squared distances less the samples' lengths, 1 where least (k, tile); least ones (tile)."""
        x = self._columns[:, columns]
        scores, owners = (self._buffer(name, len(keys), x.shape[1]) for name in ("scores", "attention"))
        torch.addmm(lengths, keys, x, alpha=-2, out=scores)
        least = scores.amin(0)
        torch.eq(scores, least, out=owners)
        return scores, owners, least.add_(self._lengths[columns]).clamp_(min=0)

    def _assign(self, layer: _Layer, columns: slice) -> tuple[Tensor, Tensor]:
        """Coordinates of X+ as columns (d, tile), and attention weights (k, tile)."""
        x = self._columns[:, columns]
        attention = self._buffer("attention", len(layer.keys), x.shape[1])
        torch.addmm(layer.biases, layer.keys, x, out=attention)
        _exponentials(attention, attention.amax(0)).div_(attention.sum(0))
        return torch.addmm(x, layer.values, attention, out=self._buffer("moved", *x.shape)), attention

    def _update_scores(self, layer: _Layer, moved: Tensor, attention: Tensor, columns: slice) -> Tensor:
        """Scores (k, tile) of A(C, X+; Q3, K3, V3), a row for each query."""
        lengths = self._squared_lengths(moved).mul_(layer.length)
        lengths.add_(self._squared_lengths(attention), alpha=layer.code_length)
        scores = self._buffer("scores", *attention.shape)
        torch.mm(layer.queries, moved, out=scores).addcmul_(attention, layer.codes)
        scores.addcmul_(layer.gains, lengths, value=-1)
        return scores if self._log_weight is None else scores.add_(self._log_weight[columns])

    def _squared_lengths(self, columns: Tensor) -> Tensor:
        """Return the squared length of each column of a matrix (m, tile)."""
        return torch.mul(columns, columns, out=self._buffer("squares", *columns.shape)).sum(0)

    def _tiles(self, centers: np.ndarray) -> Iterator[slice]:
        return tiles(self.samples.shape, max(centers.shape), self._tile_elements)

    def _buffer(self, name: str, n_rows: int, n_columns: int) -> Tensor:
        """Return memory of a shape; what is in it is of no use."""
        size = n_rows * n_columns
        if name not in self._memory or len(self._memory[name]) < size:
            self._memory[name] = self.samples.new_empty(size)
        return self._memory[name].as_strided((n_rows, n_columns), (n_columns, 1))


class _Layer:
    """What the formulas need to know of the centers, as tensors like the samples."""

    def __init__(
        self,
        centers: np.ndarray,
        scale: float,
        bias: np.ndarray,
        gain: np.ndarray,
        scalars: Mapping[str, np.ndarray],
        samples: Tensor,
    ) -> None:
        def put(array: np.ndarray) -> Tensor:
            return torch.from_numpy(array).to(samples)

        query, key = scalars["assign.query"][0], scalars["assign.key"][0]
        value, code = scalars["assign.value"]
        self.biases = put(bias - (key / scale) ** 2 * (centers**2).sum(1, keepdims=True))  # (k, 1)
        self.keys = put(2 * query * key / scale**2 * centers)  # (k, d)
        self.values = put(value * centers.T)  # (d, k)
        (query, query_code), (key, key_code) = scalars["update.query"], scalars["update.key"]
        self.gains = put(gain)  # (k, 1)
        self.queries = put(2 * query * key / scale**2 * gain * centers)  # (k, d)
        self.codes = put(2 * query_code * key_code * code * gain)  # (k, 1)
        self.length, self.code_length = float((key / scale) ** 2), float((key_code * code) ** 2)


class _RunningMean:
    """Softmax over keys that come tile by tile; overwrites the scores."""

    def __init__(self, centers: Tensor) -> None:
        self._largest = torch.full_like(centers[:, :1], -torch.inf)
        self._total, self._values = torch.zeros_like(self._largest), torch.zeros_like(centers)

    def add(self, scores: Tensor, moved: Tensor) -> None:
        """Take in scores (k, tile) of the keys with values (d, tile)."""
        largest = torch.maximum(scores.amax(1, keepdim=True), self._largest)
        weights, shrink = _exponentials(scores, largest), (self._largest - largest).exp_()
        self._total.mul_(shrink).add_(weights.sum(1, keepdim=True))
        self._values.mul_(shrink).add_(weights @ moved.T)
        self._largest = largest

    def mean(self) -> np.ndarray:
        """Return the average of all values: (k, d)."""
        return (self._values / self._total).double().cpu().numpy()


def _exponentials(scores: Tensor, largest: Tensor) -> Tensor:
    """Replace scores by exp(scores - largest), and by next to nothing where that is not a normal number.

    Processors are slower by an order of magnitude where it is not.
    """
    return scores.sub_(largest).clamp_(min=_LEAST_EXPONENT).exp_()


def _gains(logarithms: np.ndarray) -> np.ndarray:
    """Learned inverse temperature of each center: (k, 1)."""
    return np.exp(np.clip(logarithms, -LARGEST_LOG_GAIN, LARGEST_LOG_GAIN))


def _gaps(products: np.ndarray) -> np.ndarray:
    """Squared distance of each center to the nearest other one; 0 for a single center."""
    if len(products) == 1:
        return np.zeros(1)
    lengths = products.diagonal()
    squared = lengths[:, None] - 2 * products + lengths
    squared.flat[:: len(squared) + 1] = np.inf
    return np.maximum(squared.min(1), 0)


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Multiply matrices on as many threads as PyTorch has here, which is one in a worker."""
    return (torch.from_numpy(left) @ torch.from_numpy(right)).numpy()
