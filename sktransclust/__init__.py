"""k-means clustering executed by a transformer, behind scikit-learn's interface."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimator import TransformerKMeans
    from .model import LloydConfig, LloydTransformer

__version__ = "0.1.0"

__all__ = ["LloydConfig", "LloydTransformer", "TransformerKMeans", "__version__"]

# Loaded at first use, so that importing the package is fast and loads no PyTorch.
_HOMES = {"TransformerKMeans": ".estimator", "LloydConfig": ".model", "LloydTransformer": ".model"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
