"""Inputs on which k-means implementations are known to go wrong: numbers and degenerate problems.

In brackets, what scikit-learn 1.9.1 does. Weights, kinds of array and kinds of use have files of their own.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from sktransclust import TransformerKMeans

from .cases import nearest, squared_distances, true_inertia

NORMAL = np.random.RandomState(0).randn(500, 3)
STORAGE = {"dense": np.asarray, "csr": sp.csr_array}


def from_start(init, backend="auto", **parameters):
    return TransformerKMeans(len(init), init=init, n_init=1, backend=backend, **parameters)


# Far from the origin [374 of 500 labels differ; score 658 against inertia 2011].


@pytest.mark.parametrize(("dtype", "offset"), [(np.float64, 1e9), (np.float32, 1e5), (np.float64, -1e12)])
def test_far_from_the_origin_predict_and_score_repeat_the_fit(backend, dtype, offset):
    X = (NORMAL + offset).astype(dtype)
    m = TransformerKMeans(5, n_init=1, random_state=0, backend=backend).fit(X)
    assert_array_equal(m.predict(X), m.labels_)
    assert_allclose(-m.score(X), m.inertia_, rtol=1e-9)
    assert_allclose(m.inertia_, true_inertia(X, m.cluster_centers_), rtol=1e-9)
    assert_allclose(m.transform(X) ** 2, squared_distances(X, m.cluster_centers_), rtol=1e-5, atol=1e-12)


def test_a_translation_moves_the_centers_and_changes_no_label(backend):
    X = np.round(NORMAL * 2**20) / 2**20  # Exact after the addition.
    near, far = (from_start(X[:5] + by, backend).fit(X + by) for by in (0.0, 2.0**30))
    assert_array_equal(far.labels_, near.labels_)
    assert far.n_iter_ == near.n_iter_
    assert_allclose(far.cluster_centers_ - 2.0**30, near.cluster_centers_, atol=2.0**-21)


@pytest.mark.parametrize("offset", [1e8, 1e9])
def test_far_from_the_origin_sparse_data_stop_where_dense_data_do(backend, offset):
    X = NORMAL + offset
    dense, sparse = (from_start(X[:5], backend).fit(data) for data in (X, sp.csr_array(X)))
    assert_allclose(sparse._tol, 1e-4 * X.var(0).mean(), rtol=1e-6)
    assert sparse.n_iter_ == dense.n_iter_
    assert_array_equal(sparse.labels_, dense.labels_)
    assert_allclose(sparse.inertia_, dense.inertia_, rtol=1e-9)


# Two close groups in float32 [predict is wrong on 50; CSR gives one cluster].


@pytest.mark.parametrize("storage", STORAGE)
def test_two_groups_one_unit_apart_at_ten_thousand_are_told_apart_in_float32(backend, storage):
    X = np.float32([[1e4, 1e4]] * 50 + [[1e4 + 1, 1e4 + 1]] * 50)
    data = STORAGE[storage](X)
    m = TransformerKMeans(2, random_state=0, backend=backend).fit(data)
    for labels in (m.labels_, m.predict(data)):
        assert_array_equal(np.bincount(labels), [50, 50])
        assert len(set(labels[:50])) == len(set(labels[50:])) == 1
    assert m.inertia_ == 0.0


# Huge and tiny numbers [one cluster].


@pytest.mark.parametrize("exponent", [664, -664, 500, -500, 1000, -1000])
def test_a_power_of_two_as_factor_changes_no_label(backend, exponent):
    X = np.ldexp(NORMAL, exponent)
    plain = TransformerKMeans(5, random_state=0, backend=backend).fit(NORMAL)
    scaled = TransformerKMeans(5, random_state=0, backend=backend).fit(X)
    assert_array_equal(scaled.labels_, plain.labels_)
    assert scaled.n_iter_ == plain.n_iter_
    assert_array_equal(scaled.predict(X), plain.labels_)
    assert_allclose(np.ldexp(scaled.cluster_centers_, -exponent), plain.cluster_centers_, rtol=1e-12)
    assert_allclose(np.ldexp(scaled.transform(X), -exponent), plain.transform(NORMAL), rtol=1e-9)


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize(
    ("factor", "dtype"), [(1e200, "f8"), (1e-200, "f8"), (1e154, "f8"), (1e20, "f4"), (1e-25, "f4")]
)
def test_a_huge_or_tiny_factor_changes_no_label(backend, storage, factor, dtype):
    plain = from_start(NORMAL[:5], backend).fit(STORAGE[storage](NORMAL))
    X = (NORMAL * factor).astype(dtype)
    data = STORAGE[storage](X)
    scaled = from_start(X[:5], backend).fit(data)
    assert_array_equal(scaled.labels_, plain.labels_)
    assert_array_equal(scaled.predict(data), plain.labels_)
    assert np.isfinite(scaled.cluster_centers_).all()
    assert_allclose(scaled.cluster_centers_ / factor, plain.cluster_centers_, rtol=2e-4, atol=1e-6)
    assert np.isfinite(scaled.transform(data)).all()


@pytest.mark.parametrize("factor", [1e20, 1e-25])
def test_the_inertia_of_float32_data_overflows_only_where_the_true_value_does(factor):
    X = (NORMAL * factor).astype(np.float32)
    m = from_start(X[:5]).fit(X)
    assert 0 < m.inertia_ < np.inf
    assert_allclose(m.inertia_, true_inertia(X, m.cluster_centers_), rtol=1e-9)
    assert_allclose(-m.score(X), m.inertia_, rtol=1e-12)


# Long sums in float32 [inertia off by 6e-4].


def test_the_inertia_of_three_million_float32_numbers_is_that_of_float64():
    X = np.random.RandomState(0).rand(3_000_000, 1).astype(np.float32)
    m = from_start(X[:2], max_iter=2).fit(X)
    assert_allclose(m.inertia_, true_inertia(X, m.cluster_centers_), rtol=1e-6)
    assert_allclose(-m.score(X), m.inertia_, rtol=1e-12)


# Distances of close points that are far from the origin.


def test_the_distance_of_two_close_float32_points_is_exact(backend):
    X = np.float32([[512695.0], [512804.0]])
    m = from_start(X, backend).fit(X)
    assert_array_equal(m.transform(m.cluster_centers_), [[0.0, 109.0], [109.0, 0.0]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("storage", STORAGE)
def test_every_center_is_at_distance_zero_of_itself(backend, dtype, storage):
    X = (NORMAL * [1e-3, 1.0, 1e3] + 1e4).astype(dtype)
    m = TransformerKMeans(9, random_state=0, backend=backend).fit(STORAGE[storage](X))
    between = m.transform(STORAGE[storage](m.cluster_centers_))
    assert_array_equal(np.diag(between), np.zeros(9))
    assert (between + np.eye(9) > 0).all()


def test_the_inertia_of_two_tight_pairs_has_float32_digits(backend):
    X = np.float32([[-1.0001], [-0.9999], [0.9999], [1.0001]])
    m = TransformerKMeans(2, random_state=0, backend=backend).fit(X)
    assert_allclose(m.inertia_, 4.0013e-08, rtol=1e-4)


# Values that are no numbers.

METHODS = ["fit", "predict", "transform", "score"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("value", "words"), [(np.nan, "Input X contains NaN"), (np.inf, "Input X contains infinity")]
)
def test_nan_and_infinity_are_refused_by_name(method, storage, dtype, value, words):
    m = TransformerKMeans(3, random_state=0).fit(NORMAL.astype(dtype))
    X = NORMAL.astype(dtype)
    X[17, 1] = value
    with pytest.raises(ValueError, match=words):
        getattr(m, method)(STORAGE[storage](X))


# Fewer distinct rows than clusters, empty clusters, as many clusters as rows.


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_fewer_distinct_rows_than_clusters_warn_and_leave_finite_centers(backend, storage, init):
    grid = np.stack(np.meshgrid([0.0, 1.0, 2.0], [0.0, 1.0, 2.0]), axis=-1).reshape(9, 2)
    X = np.vstack([grid, grid[:8]])
    m = TransformerKMeans(10, init=init, random_state=0, backend=backend)
    words = r"Number of distinct clusters \(9\) found smaller than n_clusters \(10\)"
    with pytest.warns(ConvergenceWarning, match=words):
        m.fit(STORAGE[storage](X))
    assert len(set(m.labels_)) == 9
    assert np.isfinite(m.cluster_centers_).all()
    assert m.inertia_ == 0.0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_duplicated_rows_stop_early(backend, weighted, init):
    for seed in range(30):
        r = np.random.RandomState(seed)
        n_distinct, n_features = r.randint(2, 12), r.randint(1, 7)
        n_samples = r.randint(n_distinct, 40)
        distinct = r.randn(n_distinct, n_features) * 10.0 ** r.randint(-3, 4)
        X = distinct[r.randint(0, n_distinct, n_samples)]
        n_clusters = r.randint(n_distinct, n_samples + 1)
        m = TransformerKMeans(
            n_clusters, init=init, n_init=1, tol=0, max_iter=50, random_state=seed, backend=backend
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            m.fit(X, sample_weight=r.rand(n_samples) + 0.01 if weighted else None)
        assert m.n_iter_ < 50
        assert m.inertia_ <= 1e-24 * (X**2).sum()
        assert len(set(m.labels_)) == len(np.unique(X, axis=0))


@pytest.mark.parametrize("storage", STORAGE)
def test_relocation_leaves_labels_that_match_the_centers(backend, storage):
    X = STORAGE[storage](np.array([[1.0], [2.0], [3.0]]))
    m = from_start(np.array([[4.0], [0.0], [1.0]]), backend, tol=0).fit(X)
    assert_array_equal(m.labels_, m.predict(X))
    assert m.inertia_ == 0.0
    assert_array_equal(np.sort(m.cluster_centers_.ravel()), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_as_many_clusters_as_rows_give_each_row_its_own(backend, storage, init):
    m = TransformerKMeans(20, init=init, random_state=0, backend=backend).fit(STORAGE[storage](NORMAL[:20]))
    assert_array_equal(np.sort(m.labels_), np.arange(20))
    assert m.inertia_ == 0.0


def test_more_clusters_than_rows_are_refused():
    with pytest.raises(ValueError, match="n_samples=2 should be >= n_clusters=8"):
        TransformerKMeans(8).fit(NORMAL[:2])


@pytest.mark.parametrize("storage", STORAGE)
def test_one_cluster_is_the_mean_and_the_variance(backend, storage):
    m = TransformerKMeans(1, backend=backend).fit(STORAGE[storage](NORMAL))
    assert_allclose(m.cluster_centers_[0], NORMAL.mean(axis=0), atol=1e-14)
    assert_allclose(m.inertia_, 500 * NORMAL.var(axis=0).sum(), rtol=1e-12)
    assert_array_equal(m.labels_, np.zeros(500))


@pytest.mark.parametrize("storage", STORAGE)
def test_one_row_is_its_own_center(backend, storage):
    m = TransformerKMeans(1, backend=backend).fit(STORAGE[storage](NORMAL[:1]))
    assert_array_equal(m.cluster_centers_, NORMAL[:1])
    assert m.inertia_ == 0.0


@pytest.mark.parametrize("value", [0.0, 1.0, -1e9, 0.1])
def test_constant_data_have_one_cluster_and_no_inertia(backend, value):
    X = np.full((50, 3), value)
    with pytest.warns(ConvergenceWarning, match=r"Number of distinct clusters \(1\)"):
        m = TransformerKMeans(4, random_state=0, backend=backend).fit(X)
    assert_array_equal(m.labels_, np.zeros(50))
    assert m.inertia_ == 0.0
    assert_array_equal(m.cluster_centers_[0], [value] * 3)


@pytest.mark.parametrize(
    ("backend", "seeds"),
    [*(("auto", range(start, start + 100)) for start in range(0, 1000, 100)), ("streamed", range(50))],
)
def test_random_problems_end_without_nan_and_without_empty_clusters(backend, seeds):
    for seed in seeds:
        X = np.random.RandomState(seed).randn(200, 2) + 7.0
        m = TransformerKMeans(50, init="random", n_init=1, random_state=seed, backend=backend).fit(X)
        assert np.isfinite(m.cluster_centers_).all()
        assert (np.abs(m.cluster_centers_).sum(axis=1) > 1.0).all()
        assert len(set(m.labels_)) == 50
        assert_array_equal(m.labels_, nearest(X, m.cluster_centers_)[0])


@pytest.mark.parametrize("gap", [1e-9, 1e-6])
def test_one_row_a_billionth_away_from_a_hundred_others_is_found(backend, gap):
    X = np.array([[1.0]] * 100 + [[1.0 + gap]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        m = TransformerKMeans(2, random_state=0, backend=backend).fit(X)
    assert_array_equal(np.sort(np.bincount(m.labels_)), [1, 100])
    assert_array_equal(m.predict(X), m.labels_)
