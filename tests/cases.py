"""Data with known answers, and the float64 arithmetic by direct differences that answers are judged by."""

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, load_iris, make_blobs

EPS = np.finfo(np.float64).eps


def squared_distances(X, centers):
    """Squared distances in float64 by direct differences, shape (n_samples, n_clusters)."""
    return cdist(as_float64(X), as_float64(centers), "sqeuclidean")


def nearest(X, centers):
    """Labels (lowest index among equals) and least squared distances, a few million pairs at a time."""
    X, centers = as_float64(X), as_float64(centers)
    rows = max(1, 4_000_000 // len(centers))
    labels, least = np.empty(len(X), dtype=np.int32), np.empty(len(X))
    for start in range(0, len(X), rows):
        distances = squared_distances(X[start : start + rows], centers)
        labels[start : start + rows] = distances.argmin(axis=1)
        least[start : start + rows] = distances.min(axis=1)
    return labels, least


def as_float64(X):
    """Return a dense float64 array of any array, tensor or sparse matrix."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def true_inertia(X, centers, sample_weight=None):
    """The k-means objective of these centers."""
    least = nearest(X, centers)[1]
    return float(least.sum() if sample_weight is None else sample_weight @ least)


def squared_scale(X):
    """The squared diameter bound that rounding errors of squared distances are relative to."""
    X = as_float64(X)
    return float((np.ptp(X, axis=0) ** 2).sum()) or 1.0


def cluster_means(X, labels, n_clusters, sample_weight=None):
    """Weighted mean of each cluster; the rows of clusters without weight are NaN."""
    X = as_float64(X)
    weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    member = (labels[:, None] == np.arange(n_clusters)) * weight[:, None]
    with np.errstate(invalid="ignore"):
        return (member.T @ X) / member.sum(axis=0)[:, None]


def smallest_gap(X, centers, sample_weight, n_iter):
    """Least difference between a sample's two smallest squared distances on Lloyd's path from `centers`."""
    centers, gap = as_float64(centers), np.inf
    for _ in range(n_iter + 1):
        distances = squared_distances(X, centers)
        if len(centers) > 1:
            two = np.partition(distances, 1, axis=1)[:, :2]
            gap = min(gap, float((two[:, 1] - two[:, 0]).min()))
        means = cluster_means(X, distances.argmin(axis=1), len(centers), sample_weight)
        centers = np.where(np.isnan(means), centers, means)
    return gap


def gaussians(seed=0, n_samples=300, n_features=4, n_centers=5, std=1.0):
    """Overlapping isotropic normal clusters."""
    return make_blobs(n_samples, n_features, centers=n_centers, cluster_std=std, random_state=seed)[0]


def lattice(side=5, repeats=4, seed=0):
    """Every point of a side x side grid of integers `repeats` times, shuffled: exact ties everywhere."""
    grid = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    return np.random.RandomState(seed).permutation(np.repeat(grid, repeats, axis=0)).astype(np.float64)


def sparse_counts(seed=0, n_samples=240, n_features=30):
    """Mostly zeros, with a different group of features busy in each third of the rows."""
    r = np.random.RandomState(seed)
    X = r.rand(n_samples, n_features) * (r.rand(n_samples, n_features) < 0.08)
    for group, rows in enumerate(np.array_split(np.arange(n_samples), 3)):
        X[rows, group * 10 : group * 10 + 3] += r.rand(len(rows), 3)
    return X


# Name -> data for comparisons with KMeans, all float64. Those of the second group are full of exact ties.
CONTINUOUS = {
    "blobs": lambda: gaussians(n_features=2),
    "overlapping": lambda: gaussians(seed=1, n_samples=400, n_features=8, std=5.0),
    "uniform-1d": lambda: np.random.RandomState(2).rand(500, 1),
    "away-from-origin": lambda: gaussians(seed=3, n_samples=250, n_features=3) + np.array([100.0, -2e3, 3.0]),
    "uneven-scales": lambda: np.random.RandomState(4).randn(300, 5) * [1e-3, 1.0, 10.0, 1.0, 100.0],
    "counts": sparse_counts,
    "heavy-tails": lambda: np.random.RandomState(5).standard_t(1.5, size=(300, 3)),
}
TIED = {"iris": lambda: load_iris().data, "digits": lambda: load_digits().data[:400], "lattice": lattice}
