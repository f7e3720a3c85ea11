"""Lloyd's algorithm in float64 NumPy, by direct differences: the truth for all other tests."""

import numpy as np


def squared_distances(samples, centers):
    """Squared distances (n, k) by direct differences, free of cancellation."""
    return np.square(samples[:, None, :] - centers[None, :, :]).sum(axis=-1)


def assign(samples, centers):
    """Label (n,) of the nearest center; among equally near ones the lowest index."""
    return squared_distances(samples, centers).argmin(axis=1)


def update(samples, labels, centers, sample_weight=None):
    """Weighted mean (k, d) of each cluster; a cluster without weight keeps its center."""
    weight = np.ones(len(samples)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    new_centers = centers.copy()
    for j in range(len(centers)):
        members = labels == j
        if weight[members].sum() > 0:
            new_centers[j] = (weight[members, None] * samples[members]).sum(axis=0) / weight[members].sum()
    return new_centers


def lloyd(samples, centers, n_iterations, sample_weight=None):
    """Run a fixed number of iterations from given centers.

    Returns one pair for each iteration: the labels under the centers before it, and the centers after it.
    """
    samples = np.asarray(samples, dtype=np.float64)
    centers = np.asarray(centers, dtype=np.float64)
    history = []
    for _ in range(n_iterations):
        labels = assign(samples, centers)
        centers = update(samples, labels, centers, sample_weight)
        history.append((labels, centers))
    return history


def inertia(samples, centers, sample_weight=None):
    """Weighted sum of the squared distances to the nearest center."""
    nearest = squared_distances(samples, centers).min(axis=1)
    return float(nearest.sum() if sample_weight is None else (nearest * sample_weight).sum())
