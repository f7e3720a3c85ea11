"""The paper's claims as predicates over our tables."""

from . import costs, steps, theory, training
from .base import CLAIMS, Claim, Verdict, verdicts

__all__ = ["CLAIMS", "Claim", "Verdict", "costs", "steps", "theory", "training", "verdicts"]
