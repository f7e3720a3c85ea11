"""The inputs on which k-means implementations go wrong, with learned steps before exact iterations.

Untrained networks, whose steps lead anywhere, and a bundled one.
"""

import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from sktransclust import TransformerKMeans

from .cases import nearest, true_inertia
from .test_estimator_learned import untrained

NORMAL = np.random.RandomState(0).randn(300, 4)
NETWORKS = {"untrained": lambda: untrained(4, 6), "bundled": lambda: "binary-l2"}


@pytest.fixture(params=NETWORKS)
def weights(request):
    """A network for 4 features and 6 clusters."""
    return NETWORKS[request.param]()


def fit(X, weights, backend="auto", n_clusters=6, sample_weight=None, **parameters):
    m = TransformerKMeans(
        n_clusters,
        weights=weights,
        backend=backend,
        **({"n_init": 1, "n_steps": 4, "random_state": 0} | parameters),
    )
    return m.fit(X, sample_weight=sample_weight)


def assert_consistent(m, X, sample_weight=None):
    assert np.isfinite(m.cluster_centers_).all()
    assert_array_equal(m.predict(X), m.labels_)
    assert -m.score(X, sample_weight=sample_weight) == m.inertia_
    assert_allclose(m.inertia_, true_inertia(X, m.cluster_centers_, sample_weight), rtol=1e-9)


@pytest.mark.parametrize(("dtype", "offset"), [("f8", 1e9), ("f4", 1e5)])
def test_far_from_the_origin_predict_and_score_repeat_the_fit(backend, weights, dtype, offset):
    X = (NORMAL + offset).astype(dtype)
    assert_consistent(fit(X, weights, backend), X)


def test_two_groups_one_unit_apart_at_ten_thousand_are_told_apart_in_float32(backend):
    X = np.float32([[1e4, 1e4]] * 50 + [[1e4 + 1, 1e4 + 1]] * 50)
    m = fit(X, untrained(2, 2), backend, n_clusters=2)
    assert_array_equal(m.labels_ == m.labels_[0], np.arange(100) < 50)
    assert_consistent(m, X)


@pytest.mark.parametrize(
    ("factor", "dtype"), [(2.0**664, "f8"), (2.0**-664, "f8"), (2.0**66, "f4"), (2.0**-83, "f4")]
)
def test_a_huge_or_tiny_factor_changes_no_label(backend, weights, factor, dtype):
    X = NORMAL.astype(dtype)
    plain, scaled = fit(X, weights, backend), fit((X * X.dtype.type(factor)), weights, backend)
    assert_array_equal(scaled.labels_, plain.labels_)
    assert_array_equal(scaled.cluster_centers_ / X.dtype.type(factor), plain.cluster_centers_)


def test_the_inertia_of_two_tight_pairs_has_float32_digits(backend):
    X = np.float32([[-1.0001], [-0.9999], [0.9999], [1.0001]])
    assert_allclose(fit(X, untrained(1, 2), backend, n_clusters=2).inertia_, 4.0013e-08, rtol=1e-4)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_refused_by_name(weights, value):
    X = NORMAL.copy()
    X[17, 1] = value
    with pytest.raises(ValueError, match="Input X contains"):
        fit(X, weights)


def test_fewer_distinct_rows_than_clusters_warn_and_leave_finite_centers(backend, weights):
    X = np.repeat(NORMAL[:5], 4, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"Number of distinct clusters \(5\)"):
        m = fit(X, weights, backend)
    assert len(set(m.labels_)) == 5
    assert np.isfinite(m.cluster_centers_).all()
    assert_allclose(m.inertia_, 0, atol=1e-28)


def test_as_many_clusters_as_rows_give_each_row_its_own(backend, weights):
    m = fit(NORMAL[:6], weights, backend)
    assert_array_equal(np.sort(m.labels_), np.arange(6))
    assert_allclose(m.inertia_, 0, atol=1e-28)
    with pytest.raises(ValueError, match="n_samples=5 should be >= n_clusters=6"):
        fit(NORMAL[:5], weights, backend)


def test_one_cluster_is_the_mean(backend):
    m = fit(NORMAL, untrained(4, 1), backend, n_clusters=1)
    assert_allclose(m.cluster_centers_[0], NORMAL.mean(axis=0), atol=1e-14)


def test_constant_data_have_one_cluster_and_no_inertia(backend, weights):
    with pytest.warns(ConvergenceWarning, match=r"Number of distinct clusters \(1\)"):
        m = fit(np.full((50, 4), 0.1), weights, backend)
    assert_array_equal(m.labels_, np.zeros(50))
    assert m.inertia_ == 0.0


def test_random_problems_end_without_nan_and_without_empty_clusters(weights):
    for seed in range(30):
        X = np.random.RandomState(seed).randn(60, 4) + 7.0
        m = fit(X, weights, init="random", random_state=seed)
        assert len(set(m.labels_)) == 6
        assert_array_equal(m.labels_, nearest(X, m.cluster_centers_)[0])


@pytest.mark.parametrize("gap", [1e-9, 1e-6])
def test_one_row_a_billionth_away_from_a_hundred_others_is_found(backend, gap):
    X = np.array([[1.0]] * 100 + [[1.0 + gap]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        m = fit(X, untrained(1, 2), backend, n_clusters=2)
    assert_array_equal(np.sort(np.bincount(m.labels_)), [1, 100])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (-1.0, "sample_weight.*negative"),
        (0.0, "at least one non-zero number"),
        (np.nan, "Input sample_weight contains NaN"),
    ],
)
def test_wrong_weights_of_samples_are_refused_by_name(weights, wrong, words):
    with pytest.raises(ValueError, match=words):
        fit(NORMAL, weights, sample_weight=np.full(300, wrong))


def test_weighted_samples_give_a_consistent_result(backend, weights):
    sample_weight = np.random.RandomState(0).rand(300)
    m = fit(NORMAL, weights, backend, sample_weight=sample_weight)
    assert_consistent(m, NORMAL, sample_weight)


@pytest.mark.parametrize(("first", "second"), [("f8", "f4"), ("f4", "f8")])
def test_either_precision_may_follow_the_other(backend, weights, first, second):
    m, X = fit(NORMAL.astype(first), weights, backend), NORMAL.astype(second)
    assert_array_equal(m.predict(X), nearest(X, m.cluster_centers_)[0])


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "big-endian": lambda X: X.astype(">f8"),
    "lists": np.ndarray.tolist,
    "tensor that requires grad": lambda X: torch.tensor(X, requires_grad=True),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_bits_of_the_plain_array(weights, layout):
    plain, other = fit(NORMAL, weights, n_init=2), fit(LAYOUTS[layout](NORMAL.copy()), weights, n_init=2)
    assert_array_equal(other.labels_, plain.labels_)
    assert_allclose(other.cluster_centers_, plain.cluster_centers_, rtol=1e-12)


def test_initial_centers_that_are_a_view_do_not_corrupt_the_data(backend, weights):
    X = NORMAL.copy()
    m = fit(X, weights, backend, init=lambda X, n_clusters, random_state: X[:n_clusters])
    assert_array_equal(X, NORMAL)
    assert_consistent(m, X)


def test_without_a_tolerance_a_fit_stops_when_no_label_changes(backend, weights):
    m = fit(NORMAL, weights, backend, tol=0)
    assert m.n_iter_ < 300
    one = fit(NORMAL, weights, backend, tol=0, max_iter=1)
    assert one.n_iter_ == 1
    assert_consistent(one, NORMAL)
