"""The paper's stability constants (App. I, Tab. 2 and 3), as logarithms: the constants overflow floats."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Terms:
    """What the constants of one attention depend on (Tab. 2)."""

    queries: int  # m
    keys: int  # m'
    query_norm: float  # rho, bound of the norms of the query tokens
    key_norm: float  # rho', of the key tokens
    gamma_1: float  # spectral norm of query and key projections
    gamma_2: float  # of the value projection
    inverse_temperature: float  # gamma
    token_width: int  # d_emb

    @property
    def scale(self) -> float:
        """Factor gamma / sqrt(d_emb) of the scores."""
        return self.inverse_temperature / math.sqrt(self.token_width)

    @property
    def dispersion(self) -> float:
        """Delta, bound of the difference of two scores of a query (Lemma I.4)."""
        return self.scale * self.gamma_1**2 * (self.query_norm + self.key_norm) ** 2


def log_value(terms: Terms) -> float:
    """Log of kappa_2, the stability in the value projection (Lemma I.5)."""
    return math.log(terms.queries * terms.key_norm)


def log_query(terms: Terms) -> float:
    """Log of kappa_3, the stability in the query projection (Lemma I.6)."""
    return _log_scores(terms) + math.log(terms.query_norm * terms.key_norm)


def log_key(terms: Terms) -> float:
    """Log of kappa_4, the stability in the key projection (Lemma I.7)."""
    return _log_scores(terms) + math.log(terms.key_norm**2)


def log_keys(terms: Terms) -> float:
    """Log of kappa_5, the stability in the key tokens (Lemma I.8)."""
    reach = terms.key_norm * (terms.query_norm + terms.key_norm)
    factor = 1 + 2 * terms.scale * terms.gamma_1**2 * reach
    return math.log(factor * terms.queries * terms.gamma_2 / terms.keys) + terms.dispersion


def _log_scores(terms: Terms) -> float:
    factor = 2 * terms.queries * terms.scale * terms.gamma_1 * terms.gamma_2
    return math.log(factor * (terms.query_norm + terms.key_norm)) + terms.dispersion


LOG_CONSTANTS = {"value": log_value, "query": log_query, "key": log_key, "key tokens": log_keys}


def center_norm(code: str, d: int, code_width: int) -> float:
    """Sqrt of d_E, the bound of the norms of center tokens."""
    return math.sqrt(d + 1 if code == "OH" else d + code_width)


def attention_terms(
    n: int, k: int, d: int, norm: float, gammas: tuple[float, float], gamma: float, width: int
) -> dict[str, Terms]:
    """Terms of the four attentions (Tab. 3).

    Parameters
    ----------
    n, k, d : int
        Samples, clusters, features.
    norm : float
        Sqrt of d_E.
    gammas : tuple of float
        Gamma_1 and Gamma_2.
    gamma : float
        The inverse temperature.
    width : int
        d_emb.
    """
    updated = (1 + gammas[1]) * math.sqrt(d) + gammas[1] * norm
    sizes = {
        "assign": (n, k, math.sqrt(d), norm),
        "erase_samples": (n, n, math.sqrt(d), math.sqrt(d)),
        "update": (k, n, norm, updated),
        "erase_centers": (k, k, norm, norm),
    }
    return {name: Terms(*size, *gammas, gamma, width) for name, size in sizes.items()}
