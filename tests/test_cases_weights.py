"""Weights on which k-means implementations go wrong; in brackets, what scikit-learn 1.9.1 does."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from sktransclust import TransformerKMeans

from .cases import gaussians
from .test_estimator_learned import untrained

X = gaussians(seed=1, n_samples=240, n_features=3, std=3.0)
INIT = X[:6]
STORAGE = {"dense": np.asarray, "csr": sp.csr_array}


def fit(data, weights=None, init=INIT, storage="dense", **parameters):
    m = TransformerKMeans(len(init), init=init, n_init=1, **parameters)
    return m.fit(STORAGE[storage](data), sample_weight=weights)


# Wrong weights [a cryptic error; accepted].


@pytest.mark.parametrize("method", ["fit", "score"])
@pytest.mark.parametrize("init", ["k-means++", "random", "array"])
@pytest.mark.parametrize("kind", ["one", "all"])
def test_negative_weights_are_refused_by_name(method, init, kind):
    weights = np.ones(len(X))
    weights[3 if kind == "one" else slice(None)] = -1.0
    m = TransformerKMeans(6, init=INIT if init == "array" else init, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"(?i)negative.*sample_weight|sample_weight.*negative"):
        getattr(m, method)(X, sample_weight=weights)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.zeros(240), "Sample weights must contain at least one non-zero number"),
        (np.full(240, np.nan), "Input sample_weight contains NaN"),
        (np.full(240, np.inf), "Input sample_weight contains infinity"),
        (np.ones(239), r"sample_weight.shape == \(239,\), expected \(240,\)"),
        (np.ones((240, 1)), "Sample weights must be 1D array or scalar"),
    ],
)
def test_wrong_weights_get_sklearns_words(weights, words):
    with pytest.raises(ValueError, match=words):
        fit(X, weights)


def test_too_few_weights_for_random_starts_are_named():
    weights = np.zeros(len(X))
    weights[:4] = 1.0
    with pytest.raises(ValueError, match=r"sample_weight.*n_clusters=6.*non-zero"):
        TransformerKMeans(6, init="random", random_state=0).fit(X, sample_weight=weights)


# What weights mean.


@pytest.mark.parametrize("storage", STORAGE)
def test_a_weighted_problem_solved_by_hand(backend, storage):
    data = np.array([[0.0, 0], [1, 1], [2, 2], [10, 10], [11, 11], [12, 12]])
    m = fit(data, [1, 1, 1, 2, 2, 2], np.array([[1.0, 1], [11, 11]]), storage, backend=backend)
    assert_array_equal(m.labels_, [0, 0, 0, 1, 1, 1])
    assert_array_equal(m.cluster_centers_, [[1, 1], [11, 11]])
    assert m.inertia_ == 12.0
    assert m.score(STORAGE[storage](data)) == -8.0
    assert m.score(STORAGE[storage](data), sample_weight=[1, 1, 1, 2, 2, 2]) == -12.0


@pytest.mark.parametrize("storage", STORAGE)
def test_an_integer_weight_is_the_row_that_many_times(backend, storage):
    counts = np.random.RandomState(0).randint(1, 4, len(X))
    rows = np.repeat(X, counts, axis=0)
    weighted = fit(X, counts, storage=storage, backend=backend, tol=0)
    repeated = fit(rows, storage=storage, backend=backend, tol=0)
    assert_array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)
    assert weighted.n_iter_ == repeated.n_iter_
    assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-10)
    assert_allclose(weighted.inertia_, repeated.inertia_, rtol=1e-10)
    assert_allclose(weighted.score(X, sample_weight=counts), weighted.score(rows), rtol=1e-12)


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("far", [0.0, 100.0], ids=["no empty cluster", "empty clusters"])
def test_a_weight_of_zero_is_the_row_gone(backend, storage, far):
    init = INIT + far * (np.arange(6) >= 4)[:, None]
    weights = np.random.RandomState(0).rand(len(X)) + 0.1
    weights[::3] = 0.0
    data = X.copy()
    data[::3] *= 5.0  # Far away, so that relocation would choose them.
    kept = weights > 0
    with_zeros = fit(data, weights, init, storage, backend=backend, tol=0)
    without = fit(data[kept], weights[kept], init, storage, backend=backend, tol=0)
    assert_array_equal(with_zeros.labels_[kept], without.labels_)
    assert_allclose(with_zeros.cluster_centers_, without.cluster_centers_, rtol=1e-10)
    assert_allclose(with_zeros.inertia_, without.inertia_, rtol=1e-10)


@pytest.mark.parametrize("factor", [10.0, 2.0**300, 2.0**-300, 2.0**1020, 2.0**-1000])
@pytest.mark.parametrize("far", [0.0, 100.0], ids=["no empty cluster", "empty clusters"])
def test_a_common_factor_of_all_weights_multiplies_the_inertia_alone(backend, factor, far):
    init = INIT + far * (np.arange(6) >= 4)[:, None]
    weights = np.random.RandomState(0).rand(len(X)) + 0.1
    one, other = (fit(X, weights * by, init, backend=backend) for by in (1.0, factor))
    assert_array_equal(one.labels_, other.labels_)
    assert_allclose(one.cluster_centers_, other.cluster_centers_, rtol=1e-10)
    assert_allclose(one.inertia_ * factor, other.inertia_, rtol=1e-10)


@pytest.mark.parametrize("exponent", [-1000, -200, 200, 1020])
def test_a_common_factor_of_all_weights_changes_no_learned_step(backend, exponent):
    weights = np.random.RandomState(0).rand(len(X)) + 0.1
    one, other = (
        TransformerKMeans(6, init=INIT, n_init=1, backend=backend, weights=untrained(3, 6)).fit(
            X, sample_weight=np.ldexp(weights, by)
        )
        for by in (0, exponent)
    )
    assert_array_equal(one.labels_, other.labels_)
    assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    with np.errstate(over="ignore"):  # where the true inertia is beyond the largest float
        assert_array_equal(np.ldexp(one.inertia_history_, exponent), other.inertia_history_)


def test_large_weights_of_large_data_give_the_labels_of_plain_ones(backend):
    plain = fit(X, np.ones(240), backend=backend)
    large = fit(X * 2.0**330, np.full(240, 2.0**900), INIT * 2.0**330, backend=backend)
    assert_array_equal(large.labels_, plain.labels_)
    assert_array_equal(large.cluster_centers_ / 2.0**330, plain.cluster_centers_)
    assert large.inertia_ == np.inf


def test_rows_of_tiny_weight_are_not_rows_of_none(backend):
    data, weights = X.copy(), np.full(240, 1e300)
    data[:40] += 1e3
    weights[:40] = 1e-300
    m = fit(data, weights, data[[0, 50, 100]], backend=backend)
    assert_array_equal(m.labels_[:40], np.zeros(40))
    assert_allclose(m.cluster_centers_[0], data[:40].mean(axis=0), rtol=1e-12)


def test_weights_of_one_are_no_weights(backend):
    one, other = (
        TransformerKMeans(6, random_state=0, backend=backend).fit(X, sample_weight=w)
        for w in (None, np.ones(240))
    )
    assert_array_equal(one.labels_, other.labels_)
    assert_allclose(one.cluster_centers_, other.cluster_centers_, rtol=1e-12)


@pytest.mark.parametrize("weights", [3, 2.5, list(range(1, 241)), np.arange(1, 241)])
def test_weights_may_be_a_number_a_list_or_integers(weights):
    as_array = np.broadcast_to(np.asarray(weights, dtype=float), (240,))
    assert_allclose(fit(X, weights).cluster_centers_, fit(X, as_array).cluster_centers_, rtol=1e-12)


def test_weights_are_not_changed():
    weights = np.random.RandomState(0).rand(240)
    before = weights.copy()
    fit(X, weights)
    assert_array_equal(weights, before)
