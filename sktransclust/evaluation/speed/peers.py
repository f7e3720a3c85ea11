"""The k-means programs that the benchmark compares, behind one interface."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from ... import TransformerKMeans


@dataclass(frozen=True)
class Problem:
    """One fit, as it is asked of everyone."""

    X: np.ndarray | sp.csr_array  # (n_samples, n_features)
    n_clusters: int
    init: np.ndarray | None  # initial centers (n_clusters, n_features); None for k-means++
    n_init: int
    max_iter: int
    tol: float
    seed: int


class Peer(Protocol):
    """A k-means program."""

    name: str

    def can(self, problem: Problem) -> bool:
        """Whether it takes such data and has such a start."""

    def fit(self, problem: Problem, n_iter: int) -> Any:
        """Fit; `n_iter` is for those that know no tolerance, what the reference took."""

    def predict(self, fitted: Any, X: Any) -> np.ndarray:
        """Return labels of shape (n_samples,)."""


class Estimator:
    """A class with scikit-learn's interface."""

    def __init__(self, name: str, cls: Callable[..., Any], **settings: Any) -> None:
        self.name, self._cls, self._settings = name, cls, settings

    def can(self, problem: Problem) -> bool:
        """Whether it takes such data and has such a start."""
        return True

    def fit(self, problem: Problem, n_iter: int) -> Any:
        """Fit by the problem's own stopping rule."""
        return self._cls(
            problem.n_clusters,
            init="k-means++" if problem.init is None else problem.init,
            n_init=problem.n_init,
            max_iter=problem.max_iter,
            tol=problem.tol,
            random_state=problem.seed,
            **self._settings,
        ).fit(problem.X)

    def predict(self, fitted: Any, X: Any) -> np.ndarray:
        """Return labels of shape (n_samples,)."""
        return fitted.predict(X)


class Faiss:
    """faiss.Kmeans: float32, a fixed number of iterations, all samples used."""

    name = "faiss"

    def __init__(self, module: Any) -> None:
        self._faiss = module

    def can(self, problem: Problem) -> bool:
        """Whether it takes such data and has such a start."""
        has_plusplus = hasattr(self._faiss, "ClusteringInitMethod_KMEANS_PLUS_PLUS")
        return _is_dense_single(problem.X) and (problem.init is not None or has_plusplus)

    def fit(self, problem: Problem, n_iter: int) -> Any:
        """Fit with as many iterations as the reference."""
        settings: dict[str, Any] = {}
        if problem.init is None:
            settings["init_method"] = self._faiss.ClusteringInitMethod_KMEANS_PLUS_PLUS
        model = self._faiss.Kmeans(
            problem.X.shape[1],
            problem.n_clusters,
            niter=n_iter,
            nredo=problem.n_init,
            seed=problem.seed,
            min_points_per_centroid=1,
            max_points_per_centroid=problem.X.shape[0],
            **settings,
        )
        model.train(problem.X, init_centroids=problem.init)
        return model

    def predict(self, fitted: Any, X: Any) -> np.ndarray:
        """Return labels of shape (n_samples,)."""
        return fitted.assign(X)[1]


class FastKMeans:
    """fastkmeans: float32, a fixed number of iterations, from random samples alone."""

    name = "fastkmeans"

    def __init__(self, module: Any) -> None:
        self._module = module

    def can(self, problem: Problem) -> bool:
        """Whether it takes such data; other random samples stand for given centers."""
        return _is_dense_single(problem.X) and problem.init is not None and problem.n_init == 1

    def fit(self, problem: Problem, n_iter: int) -> Any:
        """Fit with as many iterations as the reference."""
        model = self._module.FastKMeans(
            problem.X.shape[1], problem.n_clusters, niter=n_iter, tol=-1.0, gpu=False, seed=problem.seed
        )
        model.train(problem.X)
        return model

    def predict(self, fitted: Any, X: Any) -> np.ndarray:
        """Return labels of shape (n_samples,)."""
        return fitted.predict(X)


def _is_dense_single(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.dtype == np.float32


OURS = Estimator("sktransclust", TransformerKMeans, device="cpu")
REFERENCE = Estimator("lloyd", KMeans, algorithm="lloyd")  # whose labels the others' are compared with

# What has to be installed for each further peer, and how it is made of that module.
_OPTIONAL: dict[str, tuple[str, Callable[[Any], Peer]]] = {
    "scikit-learn-intelex": (
        "sklearnex.cluster",
        lambda module: Estimator("scikit-learn-intelex", module.KMeans, algorithm="lloyd"),
    ),
    "faiss": ("faiss", Faiss),
    "fastkmeans": ("fastkmeans", FastKMeans),
}
NAMES = ("lloyd", "elkan", *_OPTIONAL)


def find_peers(names: tuple[str, ...] = NAMES) -> tuple[list[Peer], dict[str, str]]:
    """Return the peers of these names that are installed, and why each of the others is not.

    The reference is always there.
    """
    peers: list[Peer] = [OURS, REFERENCE]
    if "elkan" in names:
        peers.append(Estimator("elkan", KMeans, algorithm="elkan"))
    absent = {}
    for name, (module, make) in _OPTIONAL.items():
        if name not in names:
            continue
        try:
            peers.append(make(importlib.import_module(module)))
        except ImportError as error:
            absent[name] = str(error)
    return peers, absent


@contextlib.contextmanager
def limited_threads(n_threads: int) -> Iterator[None]:
    """Let everyone use `n_threads`, those also that threadpoolctl does not know."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    if "faiss" in sys.modules:
        sys.modules["faiss"].omp_set_num_threads(n_threads)
    if "daal4py" in sys.modules:
        sys.modules["daal4py"].daalinit(n_threads)
    with threadpool_limits(n_threads):
        yield
    torch.set_num_threads(before)
