"""The network as a module: parameters, tokens in, layers, tokens out."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from .block import LayerAttention, lloyd_layer
from .config import PROJECTION_NAMES, LloydConfig
from .embedding import decode_labels, embed_centers, embed_samples
from .lloyd_weights import exact_config, lloyd_projections
from .scalar import scalar_layer, scalar_start


class LloydOutput(NamedTuple):
    """Tokens after the last layer, and every layer's attention matrices if they were asked for."""

    sample_tokens: Tensor  # (B, n, token_width)
    center_tokens: Tensor  # (B, k, token_width)
    attention: list[LayerAttention] | None  # one dict a layer, by the names of ATTENTIONS


def random_projections(
    config: LloydConfig, generator: torch.Generator | None = None, dtype: torch.dtype = torch.float32
) -> dict[str, Tensor]:
    """Draw the twelve projections from U(-1/sqrt(e), 1/sqrt(e)), as ``nn.Linear(e, e, bias=False)`` does.

    The paper does not state its initialisation. Drawn on the generator's device, or on the CPU. The weights
    of a scalar network are not drawn: they are those of a softened Lloyd iteration.
    """
    if config.projection == "scalar":
        return scalar_start(config, dtype)
    e = config.token_width
    device = "cpu" if generator is None else generator.device
    return {
        name: torch.empty(e, e, dtype=dtype, device=device).uniform_(-(e**-0.5), e**-0.5, generator=generator)
        for name in PROJECTION_NAMES
    }


class LloydTransformer(nn.Module):
    """Transformer whose layer moves cluster centers: exactly as Lloyd's iteration, or as training taught it.

    One head, no bias, no mask, no layer norm, no feed-forward (Def. 2.2, 2.3). All layers share them. With
    scalar projections one network serves any number of features and clusters; see ``scalar.py``.

    Parameters
    ----------
    config : LloydConfig
        Shape and attention maps.
    projections : mapping of str to Tensor of shape (token_width, token_width), optional
        Initial parameters by the names of ``PROJECTION_NAMES``; copied. By default, random ones.
    generator : torch.Generator, optional
        Source of the random ones.
    dtype : torch.dtype
        Of the random ones.

    Attributes
    ----------
    config : LloydConfig
        As given.
    assign, erase_samples, update, erase_centers : nn.ParameterDict
        The "query", "key" and "value" projections of the four attentions, of shape (token_width,
        token_width). Scalar ones have shape (2,): on the coordinates, on the code. Those of erase_samples
        are then left out, and weights of the centers' features join: see ``LloydConfig.parameter_shapes``.

    Examples
    --------
    >>> import torch
    >>> network = LloydTransformer.exact(n_features=1, n_clusters=2)
    >>> samples = torch.tensor([[[0.0], [1.0], [5.0], [7.0]]], dtype=torch.float64)
    >>> network.step(samples, samples[:, :2]).detach().squeeze()
    tensor([0.0000, 4.3333], dtype=torch.float64)
    """

    def __init__(
        self,
        config: LloydConfig,
        projections: Mapping[str, Tensor] | None = None,
        *,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.config = config
        if projections is None:
            projections = random_projections(config, generator, dtype)
        groups: dict[str, dict[str, Tensor]] = {}
        for name in config.parameter_shapes():
            attention, part = name.split(".")
            groups.setdefault(attention, {})[part] = projections[name].detach().clone()
        for attention, weights in groups.items():
            self.add_module(attention, nn.ParameterDict(weights))

    @classmethod
    def exact(
        cls,
        n_features: int,
        n_clusters: int,
        embedding: str = "binary",
        n_layers: int = 1,
    ) -> Self:
        """Network in float64 whose centers after layer t are those of Lloyd's algorithm after t iterations.

        Equally near centers: the first one wins. Empty clusters keep their center.

        Raises
        ------
        ValueError
            For ``embedding="none"``, which cannot be exact.
        """
        config = exact_config(n_features, n_clusters, embedding, n_layers)
        return cls(config, lloyd_projections(config))

    def forward(
        self,
        samples: Tensor,
        centers: Tensor,
        sample_weight: Tensor | None = None,
        *,
        return_attention: bool = False,
    ) -> LloydOutput:
        """Embed samples and centers once, then apply the layers one after the other (Eq. 4 iterated).

        Parameters
        ----------
        samples : Tensor of shape (B, n, d)
            Any other leading dimensions do as well.
        centers : Tensor of shape (B, k, d)
            With the same leading dimensions.
        sample_weight : Tensor of shape (B, n), optional
            How often each sample counts.
        return_attention : bool
            Whether to return all attention matrices.

        Returns
        -------
        output : LloydOutput
            Tokens and, if asked for, attention matrices. ``output.center_tokens[..., :d]`` are the centers.

        Raises
        ------
        ValueError
            If the shapes do not belong to this network or to each other.
        """
        if self.config.projection == "scalar":
            raise ValueError("A network with projection='scalar' builds no tokens to return: use `step`.")
        self._check_shapes(samples, centers, sample_weight)
        x, c = embed_samples(samples, self.config), embed_centers(centers, self.config)
        projections = dict(self.named_parameters())
        attention: list[LayerAttention] | None = [] if return_attention else None
        for _ in range(self.config.n_layers):
            if attention is None:
                x, c = lloyd_layer(x, c, projections, self.config, sample_weight)
            else:
                x, c, matrices = lloyd_layer(
                    x, c, projections, self.config, sample_weight, return_attention=True
                )
                attention.append(matrices)
        return LloydOutput(x, c, attention)

    def step(self, samples: Tensor, centers: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Move the centers by one layer on freshly embedded tokens: F(X, C) of the paper.

        Iterating this re-embeds at every step, which is how learned networks are meant to be iterated.

        Returns
        -------
        centers : Tensor of shape (B, k, d)
            The coordinates of C+.
        """
        self._check_shapes(samples, centers, sample_weight)
        if self.config.projection == "scalar":
            return scalar_layer(samples, centers, dict(self.named_parameters()), self.config, sample_weight)
        x, c = embed_samples(samples, self.config), embed_centers(centers, self.config)
        _, c = lloyd_layer(x, c, dict(self.named_parameters()), self.config, sample_weight)
        return c[..., : self.config.n_features]

    def decode_labels(self, sample_tokens: Tensor) -> Tensor:
        """Labels (..., n) that the sample tokens of an output carry in their codes."""
        return decode_labels(sample_tokens, self.config)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle arrays: they load where there is no GPU, and equal networks have equal hashes in joblib."""
        arrays = {name: weight.detach().cpu().numpy() for name, weight in self.named_parameters()}
        frozen = [name for name, weight in self.named_parameters() if not weight.requires_grad]
        return _unpickle, (type(self), self.config, arrays, frozen, self.training)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy on the same device."""
        memo[id(self)] = other = type(self).__new__(type(self))
        other.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return other

    def _check_shapes(self, samples: Tensor, centers: Tensor, sample_weight: Tensor | None) -> None:
        n_features, n_clusters = self.config.n_features, self.config.n_clusters
        if self.config.projection == "scalar" and min(samples.dim(), centers.dim()) >= 2:
            n_features, n_clusters = samples.shape[-1], centers.shape[-2]
        if samples.dim() < 2 or samples.shape[-1] != n_features:
            raise ValueError(f"`samples` should be of shape (..., n, {n_features}), got {_shape(samples)}")
        expected = (*samples.shape[:-2], n_clusters, n_features)
        if centers.shape != expected:
            raise ValueError(f"`centers` should be of shape {expected}, got {_shape(centers)}")
        if sample_weight is not None and sample_weight.shape != samples.shape[:-1]:
            raise ValueError(
                f"`sample_weight` should be of shape {_shape(samples)[:-1]}, got {_shape(sample_weight)}"
            )


def _unpickle(
    cls: type[LloydTransformer],
    config: LloydConfig,
    arrays: Mapping[str, np.ndarray],
    frozen: Sequence[str],
    training: bool,
) -> LloydTransformer:
    network = cls(config, {name: torch.tensor(array) for name, array in arrays.items()}).train(training)
    for name in frozen:
        network.get_parameter(name).requires_grad_(False)
    return network


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)
