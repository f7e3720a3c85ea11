"""Ways of using the estimator on which k-means implementations go wrong; in brackets, scikit-learn 1.9.1."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from sktransclust import TransformerKMeans

from .cases import gaussians, nearest, squared_distances, true_inertia

X = np.random.RandomState(0).randn(200, 4)


def first_rows(data, n_clusters, random_state):
    return data[:n_clusters]


# A callable that returns a view of the data [300 iterations; with copy_x=False X is changed].


@pytest.mark.parametrize("copy_x", [True, False])
def test_initial_centers_that_are_a_view_do_not_corrupt_the_data(backend, copy_x):
    data = X.copy()
    m = TransformerKMeans(3, init=first_rows, random_state=0, copy_x=copy_x, backend=backend).fit(data)
    copied = KMeans(3, init=X[:3], n_init=1).fit(X)
    assert m.n_iter_ == copied.n_iter_ < 20
    assert_array_equal(m.labels_, copied.labels_)
    assert_allclose(m.inertia_, -m.score(data), rtol=1e-12)
    assert_array_equal(data, X)


def test_a_callable_that_writes_into_its_data_does_not_change_x():
    def init(data, n_clusters, random_state):
        data[:] = 0.0
        return np.arange(n_clusters * 4.0).reshape(n_clusters, 4)

    data = X.copy()
    m = TransformerKMeans(3, init=init, n_init=1, copy_x=False).fit(data)
    assert_array_equal(data, X)
    assert_array_equal(m.labels_, nearest(X, m.cluster_centers_)[0])


def test_a_given_array_of_centers_is_neither_changed_nor_kept():
    init = X[:3].copy()
    m = TransformerKMeans(3, init=init, n_init=1).fit(X)
    assert_array_equal(init, X[:3])
    m.cluster_centers_[:] = 0.0
    assert_array_equal(init, X[:3])


# Centers set by hand [AttributeError].


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_centers_set_by_hand_serve_to_predict_transform_and_score(backend, dtype, storage):
    m = TransformerKMeans(3, backend=backend)
    m.cluster_centers_ = X[:3].astype(dtype)
    data = storage(X.astype(dtype))
    centers = m.cluster_centers_.astype(float)
    assert_array_equal(m.predict(data), nearest(X.astype(dtype), centers)[0])
    expected = np.sqrt(squared_distances(X.astype(dtype), centers))
    assert_allclose(m.transform(data), expected, rtol=1e-6, atol=1e-12)
    assert_allclose(m.score(data), -true_inertia(X.astype(dtype), centers), rtol=1e-6)


def test_centers_set_after_a_fit_replace_the_fitted_ones(backend):
    m = TransformerKMeans(3, random_state=0, backend=backend).fit(X)
    m.cluster_centers_ = X[10:15]
    assert_array_equal(m.predict(X), nearest(X, X[10:15])[0])
    assert m.transform(X).shape == (200, 5)


# Stopping.


def test_without_a_tolerance_a_fit_stops_when_no_label_changes(backend):
    data = gaussians(seed=1, n_samples=600, std=4.0)
    m = TransformerKMeans(5, tol=0, random_state=0, backend=backend).fit(data)
    assert m.n_iter_ < 300
    before_last = TransformerKMeans(5, tol=0, random_state=0, max_iter=m.n_iter_ - 1, backend=backend).fit(
        data
    )
    assert_array_equal(before_last.labels_, m.labels_)
    assert_array_equal(m.labels_, m.predict(data))


@pytest.mark.parametrize("max_iter", [1, 2])
def test_running_out_of_iterations_warns_of_nothing(backend, max_iter):
    data = gaussians(seed=1, n_samples=600, std=4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = TransformerKMeans(9, max_iter=max_iter, random_state=0, backend=backend).fit(data)
    assert m.n_iter_ == max_iter
    assert_array_equal(m.labels_, m.predict(data))
    assert_array_equal(m.labels_, nearest(data, m.cluster_centers_)[0])


# Cloning and setting.


def test_an_estimator_with_an_array_of_centers_can_be_cloned_and_fitted():
    m = clone(TransformerKMeans(3, init=X[:3], n_init=1))
    assert_array_equal(m.fit(X).labels_, KMeans(3, init=X[:3], n_init=1).fit(X).labels_)


def test_a_refit_on_data_of_another_width_and_type_forgets_the_first():
    m = TransformerKMeans(3, random_state=0).fit(X.astype(np.float32))
    other = gaussians(n_features=7)
    again = m.fit(other)
    alone = TransformerKMeans(3, random_state=0).fit(other)
    assert again.n_features_in_ == 7
    assert again.cluster_centers_.dtype == np.float64
    assert_array_equal(again.cluster_centers_, alone.cluster_centers_)


def interrupt(data, n_clusters, random_state):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("data", "parameters", "error"),
    [
        (np.ones((2, 7)), {}, ValueError),
        (np.full((9, 7), np.nan), {}, ValueError),
        (np.ones((9, 7)), {"init": interrupt}, KeyboardInterrupt),
        (np.ones((9, 7)), {}, ConvergenceWarning),
        (np.ones((9, 7)), {"weights": "no such network"}, ValueError),
    ],
    ids=["too few rows", "NaN", "interrupted", "a warning made an error", "bad weights"],
)
def test_a_refit_that_fails_leaves_what_the_first_fit_found(data, parameters, error):
    frame = pd.DataFrame(X, columns=list("abcd"))
    m = TransformerKMeans(3, random_state=0).fit(frame)
    before = {name: value for name, value in vars(m).items() if name.endswith("_")}
    answers = m.predict(frame), m.transform(frame), m.score(frame)
    with pytest.raises(error):
        m.set_params(**parameters).fit(data)
    assert {name: value for name, value in vars(m).items() if name.endswith("_")} == before
    for answer, expected in zip((m.predict(frame), m.transform(frame), m.score(frame)), answers, strict=True):
        assert_array_equal(answer, expected)


def test_a_first_fit_that_fails_leaves_nothing():
    m = TransformerKMeans(3, init=interrupt)
    with pytest.raises(KeyboardInterrupt):
        m.fit(X)
    assert not [name for name in vars(m) if name.endswith("_")]


def test_predict_transform_and_score_change_nothing_of_the_estimator():
    m = TransformerKMeans(3, random_state=0).fit(X)
    before = {name: np.copy(value) for name, value in vars(m).items()}
    m.predict(X + 1)
    m.transform(X + 1)
    m.score(X + 1)
    assert set(vars(m)) == set(before)
    for name, value in before.items():
        assert_array_equal(np.asarray(getattr(m, name)), value, err_msg=name)


@pytest.mark.parametrize("seed", range(3))
def test_one_seed_gives_one_result(backend, seed):
    first, second = (
        TransformerKMeans(6, init="random", random_state=seed, backend=backend).fit(X) for _ in range(2)
    )
    assert_array_equal(first.cluster_centers_, second.cluster_centers_)
    assert_array_equal(first.labels_, second.labels_)
    assert first.inertia_ == second.inertia_


def test_another_seed_gives_other_starts():
    fits = [TransformerKMeans(6, init="random", n_init=1, max_iter=1, random_state=s).fit(X) for s in (0, 1)]
    assert not np.allclose(fits[0].cluster_centers_, fits[1].cluster_centers_)
