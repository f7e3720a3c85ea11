"""Initial centers, drawn from the data with scikit-learn's sequence of random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from ._validation import check_centers, is_array
from .core.streamed import StreamedCore


def initializer(
    init: Any,
    core: StreamedCore,
    X: Any,
    n_clusters: int,
    sample_weight: np.ndarray | None,
    random_state: np.random.RandomState,
) -> Callable[[], np.ndarray]:
    """Return a function that gives the initial centers of one start after the other.

    Parameters
    ----------
    init : {"k-means++", "random"}, callable or array-like of shape (n_clusters, n_features)
        A callable is given dense data as a copy that is centered on its mean, as by scikit-learn.
    core : StreamedCore
        The data.
    X : array, CSR array or Tensor of shape (n_samples, n_features)
        The same data as they were given.
    n_clusters : int
    sample_weight : ndarray of shape (n_samples,), float64, or None
    random_state : RandomState

    Returns
    -------
    draw : callable
        Returns centers of shape (n_clusters, n_features), float64, in the core's reference frame.

    Raises
    ------
    ValueError
        If given centers do not have this shape or are not finite.
    """
    samples = core.samples
    to_local = samples.reference_frame.to_local
    shape = (n_clusters, samples.n_features)
    if is_array(init):
        given = to_local(check_centers(init, samples.numpy_dtype, *shape))
        return lambda: given
    if callable(init):
        mean, data = _centered(X)
        return lambda: to_local(
            check_centers(init(data, n_clusters, random_state=random_state), samples.numpy_dtype, *shape)
            + mean
        )
    choose = kmeans_plusplus if init == "k-means++" else random_samples
    return lambda: samples.rows(choose(core, n_clusters, sample_weight, random_state)).cpu().numpy()


def _centered(X: Any) -> tuple[np.ndarray, Any]:
    """Return the mean of dense data, and a copy minus that; sparse data as they are, with a mean of 0."""
    if sp.issparse(X):
        return np.zeros(X.shape[1]), X
    if isinstance(X, torch.Tensor):
        X = X.cpu().numpy()
    mean = X.mean(0)
    return mean.astype(np.float64), X - mean


def kmeans_plusplus(
    core: StreamedCore,
    n_clusters: int,
    sample_weight: np.ndarray | None,
    random_state: np.random.RandomState,
) -> np.ndarray:
    """Choose samples as initial centers by greedy k-means++.

    Each further center is the best of ``2 + int(log(n_clusters))`` samples, which are drawn
    with a probability proportional to their weight times their squared distance to the centers
    so far (Arthur and Vassilvitskii, 2007). The draws are those of scikit-learn.

    Parameters
    ----------
    core : StreamedCore
        The data.
    n_clusters : int
    sample_weight : ndarray of shape (n_samples,), float64, or None
    random_state : RandomState
        Used for one choice, then for ``2 + int(log(n_clusters))`` uniform numbers a center.

    Returns
    -------
    indices : ndarray of shape (n_clusters,), int64
    """
    n_trials = 2 + int(np.log(n_clusters))
    indices = np.empty(n_clusters, dtype=np.int64)
    indices[0] = _draw_one(core.samples.n_samples, sample_weight, random_state)
    if n_clusters > 1:
        shares = random_state.uniform(size=(n_clusters - 1, n_trials))
        indices[1:] = core.seeding(sample_weight, int(indices[0]), n_trials, n_clusters).extend(shares)[0]
    return indices


def _draw_one(n_samples: int, sample_weight: np.ndarray | None, random_state: np.random.RandomState) -> int:
    """Draw a sample with a probability proportional to its weight, as `RandomState.choice` does.

    That looks a uniform number up among cumulated probabilities. Without weights these are the multiples
    of ``1 / n_samples`` but for rounding, which the last two lines repeat where the number is so close to
    a multiple that it may matter.
    """
    if sample_weight is not None:
        return int(random_state.choice(n_samples, p=sample_weight / sample_weight.sum()))
    share = random_state.random_sample()
    place = share * n_samples
    if abs(place - round(place)) > (n_samples + 2) ** 2 * 2.0**-51:
        return int(place)
    cumulated = np.cumsum(np.full(n_samples, 1 / n_samples))
    return int(np.searchsorted(cumulated / cumulated[-1], share, side="right"))


def random_samples(
    core: StreamedCore,
    n_clusters: int,
    sample_weight: np.ndarray | None,
    random_state: np.random.RandomState,
) -> np.ndarray:
    """Choose different samples with a probability proportional to their weight.

    Parameters
    ----------
    core : StreamedCore
        The data.
    n_clusters : int
    sample_weight : ndarray of shape (n_samples,), float64, or None
    random_state : RandomState
        Used for one choice without replacement.

    Returns
    -------
    indices : ndarray of shape (n_clusters,), int64

    Raises
    ------
    ValueError
        If fewer than `n_clusters` samples have a weight above 0.
    """
    if sample_weight is None:
        sample_weight = np.ones(core.samples.n_samples)
    n_candidates = np.count_nonzero(sample_weight)
    if n_candidates < n_clusters:
        raise ValueError(
            f"`sample_weight` should have at least n_clusters={n_clusters} non-zero entries for "
            f"init='random', got {n_candidates}."
        )
    probability = sample_weight / sample_weight.sum()
    return random_state.choice(core.samples.n_samples, size=n_clusters, replace=False, p=probability)
