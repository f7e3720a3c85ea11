"""Learned steps: a trained network moves the initial centers before exact iterations finish."""

from __future__ import annotations

import copy
import functools
import math
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from .checkpoint import CheckpointError, list_checkpoints, load_checkpoint
from .core.streamed import StreamedCore
from .core.threads import ordered_map
from .model import LloydTransformer, exact_config

_SPARSE = "X should be dense for a learned network, got a sparse one; use weights='exact'."


def resolve_network(weights: Any, embedding: str, X: Any, n_clusters: int) -> LloydTransformer | None:
    """Return the learned network that `weights` names, or None where it is the exact one.

    Parameters
    ----------
    weights : "exact", str, path-like or LloydTransformer
        A string is a bundled name, a family or a path; see `load_checkpoint`.
    embedding : {"binary", "onehot"}
        The estimator's; a network that codes clusters the other way is refused.
    X : array, CSR array or Tensor of shape (n_samples, n_features)
    n_clusters : int

    Raises
    ------
    ValueError
        If there is no such checkpoint (CheckpointError), it is for another problem, or X is sparse.
    """
    if isinstance(weights, str) and weights == "exact":
        return None
    n_features = X.shape[1]
    network = weights
    if isinstance(weights, (str, os.PathLike)):
        network = _load(weights, n_features, n_clusters)
    if not isinstance(network, LloydTransformer):
        raise ValueError(f"`weights` should be a LloydTransformer, or name one, got {weights!r}.")
    config = network.config
    if config.projection == "scalar":
        if sp.issparse(X):
            raise ValueError(_SPARSE)
        return network
    if (config.n_features, config.n_clusters) != (n_features, n_clusters):
        raise ValueError(
            f"`weights` is a network for n_features={config.n_features} and n_clusters={config.n_clusters}, "
            f"but X has {n_features} features and n_clusters={n_clusters}. Bundled checkpoints: "
            f"{', '.join(info.name for info in list_checkpoints())}; "
            "'universal' is for any problem, and `sktransclust train` makes one for a given problem."
        )
    if config.embedding not in (embedding, "none"):
        raise ValueError(
            f"`weights` is a network with embedding={config.embedding!r}, but embedding={embedding!r}. "
            f"Use set_params(embedding={config.embedding!r})."
        )
    if config.embedding != "none" and config == exact_config(
        n_features, n_clusters, config.embedding, config.n_layers
    ):
        return None
    if sp.issparse(X):
        raise ValueError(_SPARSE)
    return network


def _load(source: str | os.PathLike[str], n_features: int, n_clusters: int) -> LloydTransformer:
    names, families = _bundled()
    try:
        if isinstance(source, str) and source in names | families:
            return _load_bundled(source, None if source in names else (n_features, n_clusters))
        return load_checkpoint(source)
    except CheckpointError as error:
        raise CheckpointError(f"`weights`: {error}") from error


@functools.cache
def _bundled() -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the bundled checkpoints and of their families."""
    infos = list_checkpoints()
    families = (
        info.name.removesuffix(f"-d{info.model.n_features}-k{info.model.n_clusters}") for info in infos
    )
    return frozenset(info.name for info in infos), frozenset(families)


# Files of the package do not change while it is in use, and no one is given the network to change it.
_load_bundled = functools.cache(load_checkpoint)


def starts(
    network: LloydTransformer | None,
    core: StreamedCore,
    draw: Callable[[], np.ndarray],
    n_starts: int,
    n_steps: int,
) -> Iterator[tuple[np.ndarray, list[float]]]:
    """Yield the centers from which exact iterations begin, one start after the other.

    With a learned network for this problem, all starts are drawn first and moved at once. One with scalar
    projections moves the solutions of exact iterations instead; see `_universal`.

    Parameters
    ----------
    network : LloydTransformer or None
    core : StreamedCore
        Of dense samples if there is a network.
    draw : callable
        Returns initial centers of shape (n_clusters, n_features), float64, in the core's
        reference frame.
    n_starts, n_steps : int

    Yields
    ------
    centers : ndarray of shape (n_clusters, n_features), float64
        The initial ones; with a network, the best of these and of those after each of its steps.
    history : list of float
        Entry t is the inertia of the centers before step t.
    """
    if network is None or network.config.projection == "scalar":
        yield from ((draw(), []) for _ in range(n_starts))
        return
    drawn = np.stack([draw() for _ in range(n_starts)])
    # In a worker, and so on one thread: the bits do not depend on the number of threads.
    (paths,) = ordered_map(lambda centers: _paths(network, core, centers, n_steps), [drawn])
    for path in paths.transpose(1, 0, 2, 3):
        inertias = [_inertia(core, centers) for centers in path]
        yield path[int(np.argmin(inertias))], inertias[:-1]


def _inertia(core: StreamedCore, centers: np.ndarray) -> float:
    return core.inertia(centers, core.assign(centers)) if np.isfinite(centers).all() else math.inf


def _paths(network: LloydTransformer, core: StreamedCore, drawn: np.ndarray, n_steps: int) -> np.ndarray:
    """Return the centers before, between and after re-embedded steps of several starts.

    Data and centers are brought into the unit cube by a shift and one factor, as in training.

    Parameters
    ----------
    drawn : ndarray of shape (n_starts, n_clusters, n_features), float64

    Returns
    -------
    paths : ndarray of shape (n_steps + 1, n_starts, n_clusters, n_features), float64
    """
    samples = core.samples
    points = samples.rows(np.arange(samples.n_samples))  # (n, d)
    weight = core.sample_weight
    counted = points if weight is None else points[weight > 0]
    low, extent = counted.amin(0), float((counted.amax(0) - counted.amin(0)).max())
    scale = extent if extent > 0 else 1.0
    network = copy.deepcopy(network).to(samples.device)
    dtype = next(network.parameters()).dtype
    in_cube = ((points - low) / scale).to(dtype).expand(len(drawn), -1, -1)  # (B, n, d)
    if weight is not None:  # a common factor changes nothing, but lets the network's dtype hold them
        factor = 2.0 ** -math.frexp(float(weight.max()))[1]
        weight = (weight * factor).to(dtype).expand(len(drawn), -1)
    path = [torch.as_tensor(drawn).to(samples.device)]
    with torch.no_grad():
        for _ in range(n_steps):
            inside = ((path[-1] - low) / scale).to(dtype)  # (B, k, d)
            path.append(network.step(in_cube, inside, weight).double() * scale + low)
    return torch.stack(path).cpu().numpy()
