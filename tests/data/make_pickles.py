"""Write the pickles of this version, once per release: ``python tests/data/make_pickles.py``."""

import pickle
from pathlib import Path

import numpy as np
import torch

from sktransclust import LloydTransformer, TransformerKMeans, __version__
from sktransclust.model import LloydConfig

FOLDER = Path(__file__).parent


def estimators():
    """Return fitted estimators, small ones, by the name of their file."""
    X = np.random.RandomState(0).randn(60, 2)
    network = LloydTransformer(LloydConfig(2, 3), generator=torch.Generator().manual_seed(0))
    common = {"n_clusters": 3, "random_state": 0, "device": "cpu"}
    return {
        "exact": TransformerKMeans(**common).fit(X),
        "exact-float32": TransformerKMeans(**common).fit(X.astype(np.float32)),
        "learned": TransformerKMeans(**common, weights=network, n_steps=2).fit(X),
    }


if __name__ == "__main__":
    for name, estimator in estimators().items():
        path = FOLDER / f"{name}-{__version__}.pickle"
        path.write_bytes(pickle.dumps(estimator, protocol=4))
