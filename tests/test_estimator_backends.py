"""Backends agree with each other and with Lloyd in float64; results agree among themselves and row by row."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from sktransclust import TransformerKMeans

from . import oracle
from .cases import EPS, gaussians, lattice, nearest, sparse_counts, squared_scale, true_inertia

BACKENDS = ("dense", "streamed", "auto")


def problem(number):
    """One of many small problems: odd sizes, weights with zeros, duplicates, ties, empty clusters."""
    r = np.random.RandomState(number)
    n_samples, n_features, n_clusters = r.randint(1, 90), r.randint(1, 6), r.randint(1, 18)
    n_samples = max(n_samples, n_clusters)
    kind = number % 4
    X = r.randn(n_samples, n_features) * 10.0 ** r.randint(-3, 4) + 10.0 * r.randn(n_features)
    if kind == 1:
        X = r.randint(0, 4, (n_samples, n_features)).astype(float)
    if kind == 2:
        X = X[r.randint(0, n_samples, n_samples)]
    init = X[r.permutation(n_samples)[:n_clusters]] + (
        0.0 if kind == 1 else 1e-3 * r.randn(n_clusters, n_features)
    )
    if kind == 3:
        init[n_clusters // 2 :] += 1e3
    weights = [None, r.rand(n_samples) + 0.01, r.randint(0, 3, n_samples) + (np.arange(n_samples) == 0)]
    return X, init, weights[number % 3]


def fit(X, init, weights=None, **parameters):
    estimator = TransformerKMeans(len(init), init=init, n_init=1, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # Some problems have few distinct samples.
        return estimator.fit(X, sample_weight=weights)


def assert_equal_fits(one, other, X):
    """Labels and iterations the same, numbers to 1e-10 of the data's scale."""
    scale = np.sqrt(squared_scale(X))
    assert_array_equal(one.labels_, other.labels_)
    assert one.n_iter_ == other.n_iter_
    assert_allclose(one.cluster_centers_, other.cluster_centers_, rtol=1e-10, atol=1e-10 * scale)
    assert_allclose(one.inertia_, other.inertia_, rtol=1e-10, atol=1e-12 * scale**2)


def assert_labels_are_nearest(estimator, X):
    chosen = ((X - estimator.cluster_centers_[estimator.labels_]) ** 2).sum(axis=1)
    excess = chosen - nearest(X, estimator.cluster_centers_)[1]
    assert excess.max() <= 64 * EPS * squared_scale(X)


@pytest.mark.parametrize("block", range(8))
def test_every_backend_gives_the_same_fit(block):
    n_ties = 0
    for number in range(40 * block, 40 * block + 40):
        X, init, weights = problem(number)
        parameters = {"tol": (0, 1e-4)[number % 2], "max_iter": (300, 1, 5)[number % 3]}
        fits = [fit(X, init, weights, backend=backend, **parameters) for backend in BACKENDS]
        assert [f.backend_ for f in fits[:2]] == ["dense", "streamed"]
        assert fits[2].backend_ != "auto"
        for other in fits[1:]:
            if number % 4 == 1 and not np.array_equal(fits[0].labels_, other.labels_):
                n_ties += 1  # On integers, the means' last bits may decide between equal centers.
                assert_labels_are_nearest(fits[0], X)
                assert_labels_are_nearest(other, X)
            else:
                assert_equal_fits(fits[0], other, X)
    assert n_ties <= 2


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("embedding", ["binary", "onehot"])
def test_the_network_and_the_streamed_core_agree_for_each_code_and_storage(storage, embedding):
    X = sparse_counts()
    init = X[[0, 50, 90, 130, 170, 230, 239]]
    data = sp.csr_array(X) if storage == "csr" else X
    dense = fit(data, init, backend="dense", embedding=embedding)
    assert_equal_fits(dense, fit(data, init, backend="streamed", embedding=embedding), X)
    assert_equal_fits(dense, fit(X, init, backend="streamed"), X)


@pytest.mark.parametrize("max_iter", [1, 2, 3, 7])
def test_centers_are_those_of_lloyd_in_float64(backend, max_iter):
    X = gaussians(seed=1, n_samples=500, n_features=3, std=4.0)
    weights = np.random.RandomState(0).rand(len(X))
    ours = fit(X, X[:9], weights, tol=0, max_iter=max_iter, backend=backend)
    centers = oracle.lloyd(X, X[:9], max_iter, weights)[-1][1]
    assert_allclose(ours.cluster_centers_, centers, rtol=1e-11)
    assert_array_equal(ours.labels_, oracle.assign(X, centers))
    assert_allclose(ours.inertia_, oracle.inertia(X, centers, weights), rtol=1e-12)


def test_labels_of_a_lattice_full_of_ties_are_nearest_centers(backend):
    X = lattice(side=6, repeats=3)
    ours = fit(X, X[[0, 10, 25, 40, 60, 70, 90]], backend=backend)
    assert_labels_are_nearest(ours, X)


def test_an_exact_tie_goes_to_the_lowest_index(backend):
    X = np.array([[-1.0], [0.0], [1.0]])
    estimator = fit(X, X[[0, 2]], backend=backend, max_iter=1)
    assert_array_equal(estimator.labels_, [0, 0, 1])
    assert_allclose(estimator.cluster_centers_, [[-0.5], [1.0]])
    estimator.cluster_centers_ = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    assert_array_equal(estimator.predict(X), [1, 0, 0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("max_iter", [1, 300])
def test_labels_and_inertia_are_those_of_predict_and_score(backend, dtype, storage, max_iter):
    X = sparse_counts(n_samples=333).astype(dtype)
    data = sp.csr_array(X) if storage == "csr" else X
    weights = np.random.RandomState(1).rand(333)
    ours = TransformerKMeans(6, random_state=0, backend=backend, max_iter=max_iter).fit(
        data, sample_weight=weights
    )
    assert_array_equal(ours.predict(data), ours.labels_)
    assert -ours.score(data, sample_weight=weights) == ours.inertia_
    assert_allclose(ours.inertia_, true_inertia(X, ours.cluster_centers_, weights), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("n_features", [1, 3, 17, 64])
def test_a_row_alone_and_in_a_subset_gets_the_same_bits(backend, dtype, offset, n_features):
    X = (np.random.RandomState(0).randn(700, n_features) + offset).astype(dtype)
    ours = TransformerKMeans(13, random_state=0, backend=backend).fit(X)
    labels, distances = ours.predict(X), ours.transform(X)
    for rows in (
        slice(0, 1),
        slice(5, 6),
        slice(699, 700),
        slice(3, 20),
        slice(1, None),
        slice(None, None, 7),
    ):
        assert_array_equal(ours.predict(X[rows]), labels[rows])
        assert_array_equal(ours.transform(X[rows]), distances[rows])


def test_a_sparse_row_alone_and_in_a_subset_gets_the_same_bits(backend):
    data = sp.csr_array(sparse_counts())
    ours = TransformerKMeans(7, random_state=0, backend=backend).fit(data)
    labels, distances = ours.predict(data), ours.transform(data)
    for rows in (slice(0, 1), slice(200, 201), slice(3, 20), slice(1, None)):
        assert_array_equal(ours.predict(data[rows]), labels[rows])
        assert_array_equal(ours.transform(data[rows]), distances[rows])


def test_the_nearest_of_transform_is_the_label(backend):
    X = gaussians(n_samples=1000, std=4.0)
    ours = TransformerKMeans(20, random_state=0, backend=backend).fit(X)
    assert_array_equal(ours.transform(X).argmin(axis=1), ours.labels_)
    assert_allclose((ours.transform(X).min(axis=1) ** 2).sum(), ours.inertia_, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_inertia_history_is_that_of_lloyd_and_ends_in_inertia(backend, dtype):
    X = gaussians(seed=2, n_samples=400, std=5.0).astype(dtype)
    ours = fit(X, X[:8], tol=0, backend=backend)
    assert ours.inertia_history_.dtype == np.float64
    assert len(ours.inertia_history_) == ours.n_iter_ + 1
    assert ours.inertia_history_[-1] == ours.inertia_
    path = [X[:8], *(centers for _, centers in oracle.lloyd(X, X[:8], ours.n_iter_))]
    tolerance = 1e-10 if dtype is np.float64 else 1e-5
    expected = [oracle.inertia(X.astype(float), centers.astype(float)) for centers in path]
    assert_allclose(ours.inertia_history_, expected, rtol=tolerance)


@pytest.mark.parametrize("number", range(0, 60, 3))
def test_inertia_history_never_rises(backend, number):
    X, init, weights = problem(number)
    history = fit(X, init, weights, tol=0, backend=backend).inertia_history_
    assert (np.diff(history) <= 1e-12 * history[0] + 1e-14 * squared_scale(X)).all()


def test_the_best_of_several_starts_owns_every_attribute(backend):
    X = gaussians(seed=3, n_samples=200, std=6.0)
    starts = [X[i : i + 7].copy() for i in (0, 40, 80, 120)]
    alone = [fit(X, start, backend=backend) for start in starts]
    remaining = iter(starts)
    together = TransformerKMeans(
        7, init=lambda *_, **__: next(remaining) - X.mean(axis=0), n_init=4, backend=backend
    )
    together.fit(X)
    best = min(alone, key=lambda estimator: estimator.inertia_)
    assert_equal_fits(together, best, X)
    assert_allclose(together.inertia_history_, best.inertia_history_, rtol=1e-9)


def test_elkan_is_lloyds_result_in_the_same_iterations():
    for seed in range(5):
        X = gaussians(seed=seed, n_samples=400, std=4.0)
        one, other = (
            TransformerKMeans(9, random_state=seed, algorithm=algorithm).fit(X)
            for algorithm in ("lloyd", "elkan")
        )
        assert_equal_fits(one, other, X)
