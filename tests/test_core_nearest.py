"""Certain labels: those of direct float64 differences, however the scores are rounded."""

import numpy as np
import pytest
import torch

from sktransclust.core import nearest as module
from sktransclust.core.dense_samples import DenseSamples
from sktransclust.core.frame import Frame, frame_of
from sktransclust.core.nearest import Keys, nearest

CPU = torch.device("cpu")


def labels_of(X, centers, *, shifted=True):
    """Labels of all samples as one tile, in a frame at the mean of X."""
    frame = Frame()
    if shifted:
        frame = frame_of(X.mean(0, dtype="f8"), X.min(0).astype("f8"), X.max(0).astype("f8"), X.dtype)
    samples = DenseSamples(X, frame, frame, CPU)
    return nearest(samples.tile(0, len(X)), Keys.of(frame.to_local(centers), samples)).numpy()


def direct_labels(X, centers):
    """The rule: direct differences in extended precision, ties to the lowest index."""
    difference = X[:, None].astype(np.longdouble) - centers.astype(np.longdouble)
    return (difference**2).sum(-1).argmin(1)


@pytest.mark.parametrize("n_clusters", [1, 2, 5, 16, 17, 40])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_labels_are_those_of_direct_differences(n_clusters, dtype, offset):
    rng = np.random.default_rng(n_clusters)
    X = (rng.standard_normal((2000, 3)) + offset).astype(dtype)
    centers = X[rng.choice(2000, n_clusters, replace=False)].astype("f8")
    np.testing.assert_array_equal(labels_of(X, centers), direct_labels(X, centers))


@pytest.mark.parametrize("n_clusters", [7, 30])
def test_ties_on_a_lattice_go_to_the_lowest_index(n_clusters):
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (3000, 2)).astype("f4")
    centers = rng.integers(-3, 4, (n_clusters, 2)).astype("f8") / 2
    exact = ((2 * X[:, None] - 2 * centers) ** 2).sum(-1).astype(int)  # integers: no rounding at all
    assert (np.sort(exact, axis=1)[:, 0] == np.sort(exact, axis=1)[:, 1]).any()
    np.testing.assert_array_equal(labels_of(X, centers), exact.argmin(1))


def test_float32_scores_alone_would_be_wrong_and_the_exact_rule_mends_them():
    # Two centers whose bisector the samples straddle by less than float32 scores can see.
    X = np.float32(1000.1) + np.arange(-50, 50, dtype="f4")[:, None] * np.float32(2**-13)
    centers = np.array([[0.3], [2 * np.float64(X[50, 0]) - 0.3]])
    scores = (centers.astype("f4") ** 2).T - 2 * X @ centers.astype("f4").T
    truth = direct_labels(X, centers)
    assert (scores.argmin(1) != truth).any()
    np.testing.assert_array_equal(labels_of(X, centers, shifted=False), truth)


def test_the_error_bound_covers_the_scores_errors():
    rng = np.random.default_rng(1)
    for d in (1, 3, 40, 500):
        X = (rng.standard_normal((300, d)) * rng.lognormal(size=d)).astype("f4")
        centers = rng.standard_normal((20, d)) * 3
        samples = DenseSamples(X, Frame(), Frame(), CPU)
        tile, keys = samples.tile(0, 300), Keys.of(centers, samples)
        scores = tile.scores(keys.keys, keys.norms).double().numpy()
        X, centers = X.astype(np.longdouble), centers.astype(np.longdouble)
        errors = scores - ((centers**2).sum(1) - 2 * X @ centers.T)
        # Twice the error of a score is what the bound allows for a gap between two.
        assert (2 * np.abs(errors).max(1) <= module._error_bound(tile, keys).double().numpy()).all()


def test_an_infinite_or_missing_score_leaves_the_decision_to_the_exact_rule():
    X = np.array([[1e30, 0.0], [1.0, 0.0], [-1e30, 1e30]], dtype="f4")
    centers = np.array([[0.0, 0.0], [1.0, 0.0], [-1e30, 0.0]])
    np.testing.assert_array_equal(labels_of(X, centers, shifted=False), direct_labels(X, centers))


def test_repeated_centers_never_win():
    X = np.random.default_rng(2).standard_normal((500, 2))
    centers = np.repeat(X[:3], [4, 1, 5], axis=0)
    assert set(labels_of(X, centers)) == {0, 4, 5}


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_squares_beyond_floats_do_not_decide(scale):
    X = np.random.default_rng(3).standard_normal((200, 2))
    samples = DenseSamples(X * scale, Frame(), Frame(), CPU)  # no power of two in the frame: all doubtful
    labels = nearest(samples.tile(0, 200), Keys.of(X[:5] * scale, samples))
    np.testing.assert_array_equal(labels, direct_labels(X, X[:5]))
