"""The stability bounds of App. I, compared with what trained networks do (Tab. 2, 3)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from ...checkpoint import load_checkpoint
from ...model import LloydTransformer, embed_centers, embed_samples, lloyd_layer
from ...model.attention import attention
from ...model.config import ATTENTIONS, PROJECTIONS
from ...tasks import TaskDistribution
from ...training import Recipe
from .bounds import LOG_CONSTANTS, Terms, attention_terms, center_norm
from .context import PERTURBATIONS, Context
from .profiles import Profile
from .tables import tidy

#: Sizes of the perturbations, relative to the spectral norm of what they change.
SIZES = (0.01, 0.1, 1.0)


@dataclass(frozen=True)
class Stability:
    """Table of bounds, each beside the largest value that was measured.

    Parameters
    ----------
    checkpoints : sequence of str
        Names of networks that come with the package.
    terms : bool, default=False
        Whether the rows are the norms of Tab. 3, or the constants of Tab. 2.
    """

    checkpoints: Sequence[str]
    terms: bool = False

    def recipes(self, profile: Profile) -> list[Recipe]:
        """No model is trained for it."""
        return []

    def measure(self, context: Context) -> pd.DataFrame:
        """Measure every network on the paper's normal tasks."""
        rows: list[dict[str, Any]] = []
        distribution = TaskDistribution(n_samples=context.profile.n_samples)
        for name in self.checkpoints:
            network = load_checkpoint(name).to(context.device)
            shape = (network.config.n_features, network.config.n_clusters)
            tasks = context.tasks(distribution, shape, context.profile.n_surface_tasks, 0, PERTURBATIONS)
            attentions = Attentions(network, *tasks)
            generator = context.generator(PERTURBATIONS, 1)
            found = attentions.norms() if self.terms else attentions.constants(generator)
            for measurement in found:
                rows += _rows({"d": shape[0], "k": shape[1], "model": name}, *measurement)
        return tidy(rows)


def _rows(
    where: dict[str, Any], attention_name: str, quantity: str, measured: float, bound: float
) -> Iterator[dict[str, Any]]:
    for metric, value in (("measured", measured), ("bound", bound)):
        yield where | {"attention": attention_name, "quantity": quantity, "metric": metric, "value": value}


class Attentions:
    """The four attentions of a trained network, each with the tokens it meets, in float64.

    Parameters
    ----------
    network : LloydTransformer
        With its weights.
    samples : Tensor of shape (B, n, d)
        Tasks.
    centers : Tensor of shape (B, k, d)
        Their initial centers.
    """

    def __init__(self, network: LloydTransformer, samples: Tensor, centers: Tensor) -> None:
        config = self.config = network.config
        self.projections = {name: p.detach().double() for name, p in network.named_parameters()}
        x, c = embed_samples(samples.double(), config), embed_centers(centers.double(), config)
        updated, self.output = lloyd_layer(x, c, self.projections, config)
        self.tokens = dict(zip(ATTENTIONS, ((x, c), (x, x), (c, updated), (c, c)), strict=True))

    def constants(self, generator: torch.Generator) -> Iterator[tuple[str, str, float, float]]:
        """Yield attention, what is perturbed, and the log10 of the ratio of changes and of its bound."""
        for name in ATTENTIONS:
            for what, log_constant in LOG_CONSTANTS.items():
                measured, bound = -math.inf, math.inf
                for size in SIZES:
                    ratio, gammas = self._perturb(name, what, size, generator)
                    limit = log_constant(self.terms(gammas)[name]) / math.log(10)
                    # What counts is the perturbation that comes closest to its own bound.
                    if math.log10(ratio) - limit > measured - bound:
                        measured, bound = math.log10(ratio), limit
                yield name, what, measured, bound

    def norms(self) -> Iterator[tuple[str, str, float, float]]:
        """Yield the largest norms of tokens and the dispersions of scores with their bounds (Tab. 3)."""
        terms = self.terms(self.gammas())
        for name, (queries, keys) in self.tokens.items():
            yield name, "rho", _largest_norm(queries), terms[name].query_norm
            yield name, "rho'", _largest_norm(keys), terms[name].key_norm
            yield name, "delta", self._dispersion(name), terms[name].dispersion
        gamma_2 = self.gammas()[1]
        bound = (1 + 2 * gamma_2 + 2 * gamma_2**2) * terms["erase_centers"].key_norm
        yield "output", "center norm", _largest_norm(self.output), bound

    def gammas(self) -> tuple[float, float]:
        """Largest spectral norms of query and key projections, and of value projections."""
        norms = {name: _spectral(weights) for name, weights in self.projections.items()}
        return (
            max(norm for name, norm in norms.items() if not name.endswith("value")),
            max(norm for name, norm in norms.items() if name.endswith("value")),
        )

    def terms(self, gammas: tuple[float, float]) -> dict[str, Terms]:
        """Terms of the bounds of each attention."""
        config = self.config
        n, k = self.tokens["assign"][0].shape[1], config.n_clusters
        code = "OH" if config.embedding == "onehot" else "BN"
        norm = center_norm(code, config.n_features, config.code_width)
        return attention_terms(
            n, k, config.n_features, norm, gammas, config.inverse_temperature, config.token_width
        )

    def _perturb(
        self, name: str, what: str, size: float, generator: torch.Generator
    ) -> tuple[float, tuple[float, float]]:
        """Change a projection or the key tokens; return the ratio of changes, and Gamma_1 and Gamma_2."""
        queries, keys = self.tokens[name]
        matrices = {part: self.projections[f"{name}.{part}"] for part in PROJECTIONS}
        changed, changed_keys = dict(matrices), keys
        if what == "key tokens":
            # Towards their mean, so that no token leaves the ball that the bound assumes.
            changed_keys = keys + 0.5 * size * (keys.mean(dim=1, keepdim=True) - keys)
            change = (changed_keys - keys).norm(dim=-1).sum(dim=-1)  # (B,)
        else:
            noise = torch.empty_like(matrices[what]).normal_(generator=generator)
            noise *= size * _spectral(matrices[what]) / _spectral(noise)
            changed[what] = matrices[what] + noise
            change = torch.full((len(keys),), _spectral(noise), dtype=keys.dtype, device=keys.device)
        difference = self._attend(queries, changed_keys, changed) - self._attend(queries, keys, matrices)
        ratio = (difference.norm(dim=-1).sum(dim=-1) / change).max().item()
        first, second = self.gammas()
        if what in ("query", "key"):
            first = max(first, _spectral(changed[what]))
        if what == "value":
            second = max(second, _spectral(changed[what]))
        return ratio, (first, second)

    def _attend(self, queries: Tensor, keys: Tensor, matrices: dict[str, Tensor]) -> Tensor:
        projections = (matrices["query"], matrices["key"], matrices["value"])
        gamma = self.config.inverse_temperature
        return attention(queries, keys, projections, "softmax", inverse_temperature=gamma)[0]

    def _dispersion(self, name: str) -> float:
        """Largest difference of two scores of one query."""
        queries, keys = self.tokens[name]
        projected = (
            queries @ self.projections[f"{name}.query"],
            keys @ self.projections[f"{name}.key"],
        )
        scores = torch.cdist(*projected, compute_mode="donot_use_mm_for_euclid_dist").square()
        scale = self.config.inverse_temperature / math.sqrt(self.config.token_width)
        return scale * (scores.amax(dim=-1) - scores.amin(dim=-1)).max().item()


def _spectral(matrix: Tensor) -> float:
    return float(torch.linalg.matrix_norm(matrix, 2))


def _largest_norm(tokens: Tensor) -> float:
    return tokens.norm(dim=-1).max().item()
