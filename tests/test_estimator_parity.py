"""Seed for seed the same results as scikit-learn's KMeans, in float64.

Where labels differ, scikit-learn's path must be shown to pass through an exact tie (rounding decides those by
the formula used); then every label of ours must be a nearest center, and such cases must stay rare.
"""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning

from sktransclust import TransformerKMeans

from .cases import CONTINUOUS, EPS, TIED, cluster_means, smallest_gap, squared_distances, squared_scale

# Squared distances closer than this many eps times the squared scale are equal for our purposes.
TIE = 64 * EPS
INITS = ("k-means++", "random", "array", "callable")
SETTINGS = list(itertools.product(("dense", "csr"), ("none", "random", "with zeros"), ((2, 1), (7, 3))))
SEEDS = {name: seed for seed, name in enumerate([*CONTINUOUS, *TIED])}


def pick_rows(X, n_clusters, random_state):
    """Initial centers by a callable: some rows, as a new dense array."""
    rows = X[random_state.permutation(X.shape[0])[:n_clusters]]
    return rows.toarray() if sp.issparse(rows) else rows.copy()


def make_weights(kind, n_samples, seed):
    r = np.random.RandomState(seed)
    if kind == "none":
        return None
    return r.rand(n_samples) + 0.1 if kind == "random" else r.randint(0, 4, n_samples).astype(float)


def make_arguments(X, init, storage, weighting, n_clusters, n_init, seed):
    """Data, weights and parameters of one comparison."""
    dense = X
    X = sp.csr_array(X) if storage == "csr" else X
    weights = make_weights(weighting, len(dense), seed)
    rows = np.random.RandomState(seed).choice(len(dense), n_clusters, replace=False)
    value = {"array": dense[rows] + 0.1, "callable": pick_rows}.get(init, init)
    n_init = 1 if init == "array" else n_init
    return X, weights, {"n_clusters": n_clusters, "init": value, "n_init": n_init, "random_state": seed}


def fit_and_listen(estimator, X, weights):
    """Fit; return the estimator and its warnings as (category, text) with the class's name blotted out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, sample_weight=weights)
    name = type(estimator).__name__
    return estimator, [(w.category, str(w.message).replace(name, "<Class>")) for w in caught]


def start_of(X, weights, parameters):
    """The initial centers of scikit-learn's first start."""
    n_clusters, init = parameters["n_clusters"], parameters["init"]
    random_state = np.random.RandomState(parameters["random_state"])
    if isinstance(init, np.ndarray):
        return init
    if callable(init):
        return pick_rows(X, n_clusters, random_state)
    weights = np.ones(X.shape[0]) if weights is None else weights
    if init == "random":
        rows = random_state.choice(X.shape[0], n_clusters, replace=False, p=weights / weights.sum())
        return X[rows].toarray() if sp.issparse(X) else X[rows]
    shift = 0.0 if sp.issparse(X) else X.mean(axis=0)
    centers = kmeans_plusplus(X - shift, n_clusters, sample_weight=weights, random_state=random_state)[0]
    return centers + shift


def assert_every_label_is_nearest(ours, X):
    distances = squared_distances(X, ours.cluster_centers_)
    chosen = distances[np.arange(len(distances)), ours.labels_]
    assert (chosen - distances.min(axis=1)).max() <= TIE * squared_scale(X)
    assert_allclose(ours.inertia_, ours.inertia_history_[-1], rtol=1e-12)


def meets_a_tie(X, weights, parameters, n_iter):
    gap = smallest_gap(X, start_of(X, weights, parameters), weights, n_iter)
    return gap <= TIE * squared_scale(X)


def compare(X, init, storage, weighting, n_clusters, n_init, seed):
    """Fit both; return whether the results are the same, having asserted that or the excuse of a tie."""
    X, weights, parameters = make_arguments(X, init, storage, weighting, n_clusters, n_init, seed)
    reference, said = fit_and_listen(KMeans(**parameters), X, weights)
    ours, said_by_ours = fit_and_listen(TransformerKMeans(**parameters), X, weights)
    same = np.array_equal(ours.labels_, reference.labels_) and ours.n_iter_ == reference.n_iter_
    if not same:
        text = f"{parameters}, {storage}, weights {weighting}"
        assert meets_a_tie(X, weights, parameters, reference.n_iter_), f"differs without a tie: {text}"
        assert_every_label_is_nearest(ours, X)
        return False
    assert said_by_ours == said
    scale = np.sqrt(squared_scale(X))
    assert_allclose(ours.cluster_centers_, reference.cluster_centers_, rtol=1e-9, atol=1e-9 * scale)
    assert_allclose(ours.inertia_, reference.inertia_, rtol=1e-9, atol=1e-12 * scale**2)
    return True


def test_sklearns_class_is_compared_with_ours():
    assert KMeans.__module__ == "sklearn.cluster._kmeans"
    assert TransformerKMeans.__module__.split(".")[0] == "sktransclust"


def test_more_than_two_hundred_combinations_are_compared():
    assert (len(CONTINUOUS) + len(TIED)) * len(INITS) * len(SETTINGS) >= 200


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_same_as_kmeans_on_continuous_data(name, init):
    X = CONTINUOUS[name]()
    for number, (storage, weighting, (n_clusters, n_init)) in enumerate(SETTINGS):
        assert compare(X, init, storage, weighting, n_clusters, n_init, seed=SEEDS[name] + 100 * number)


@pytest.mark.parametrize("name", TIED)
def test_same_as_kmeans_or_a_proven_tie_on_data_with_ties(name):
    X = TIED[name]()
    same = [
        compare(X, init, storage, weighting, n_clusters, 1, seed=SEEDS[name] + 100 * number)
        for init in INITS
        for number, (storage, weighting, (n_clusters, _)) in enumerate(SETTINGS)
    ]
    share_of_ties = {"iris": 0.1, "digits": 0.05, "lattice": 0.5}[name]
    assert same.count(False) <= share_of_ties * len(same)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("seed", range(10))
def test_same_as_kmeans_when_clusters_empty_and_are_relocated(storage, seed):
    r = np.random.RandomState(seed)
    X = r.rand(60, 2)
    init = np.vstack([X[:3], 5.0 + r.rand(7, 2)])
    weights = r.rand(60) + 0.1
    data = sp.csr_array(X) if storage == "csr" else X
    reference = KMeans(10, init=init, n_init=1).fit(data, sample_weight=weights)
    ours = TransformerKMeans(10, init=init, n_init=1).fit(data, sample_weight=weights)
    assert_array_equal(ours.labels_, reference.labels_)
    assert ours.n_iter_ == reference.n_iter_
    assert_allclose(ours.cluster_centers_, reference.cluster_centers_, rtol=1e-9)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("max_iter", [2, 300])
def test_a_cluster_that_gives_away_its_last_sample_gets_another_one(storage, max_iter):
    data = storage(np.array([[0.0], [1.0], [2.0], [4.0], [100.0]]))
    init = np.array([[1.5], [140.0], [1000.0]])
    reference = KMeans(3, init=init, max_iter=max_iter).fit(data)
    ours = TransformerKMeans(3, init=init, max_iter=max_iter).fit(data)
    assert_allclose(ours.cluster_centers_, reference.cluster_centers_, rtol=1e-12, atol=1e-12)
    assert_array_equal(ours.labels_, reference.labels_)
    assert ours.n_iter_ == reference.n_iter_


def test_a_cluster_that_gives_away_its_last_sample_never_gets_a_sum_for_a_center():
    # KMeans puts it at the heaviest cluster's sum, here -57.2, if that cluster has a higher index.
    data = np.array([[0.0], [1.0], [2.0], [4.0], [100.0]])
    with pytest.warns(ConvergenceWarning, match="Number of distinct clusters"):
        m = TransformerKMeans(3, init=np.array([[140.0], [1.5], [1000.0]]), max_iter=1).fit(data)
    assert_allclose(m.cluster_centers_[1:], [[1.75], [100.0]])
    assert m.cluster_centers_[0, 0] >= 0.0


@pytest.mark.parametrize("algorithm", ["lloyd", "elkan"])
@pytest.mark.parametrize("tol", [0, 1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("max_iter", [1, 2, 300])
def test_same_as_kmeans_for_every_way_of_stopping(algorithm, tol, max_iter):
    X = CONTINUOUS["overlapping"]()
    parameters = {
        "n_clusters": 6,
        "random_state": 3,
        "algorithm": algorithm,
        "tol": tol,
        "max_iter": max_iter,
    }
    reference = KMeans(**parameters).fit(X)
    ours = TransformerKMeans(**parameters).fit(X)
    assert ours.n_iter_ == reference.n_iter_
    assert_array_equal(ours.labels_, reference.labels_)
    assert_allclose(ours.cluster_centers_, reference.cluster_centers_, rtol=1e-9)
    assert_allclose(ours.inertia_, reference.inertia_, rtol=1e-9)


@pytest.mark.parametrize("n_init", [1, 4])
def test_predict_transform_and_score_as_kmeans_on_new_rows(n_init):
    X, new = CONTINUOUS["blobs"](), np.random.RandomState(9).randn(77, 2) * 8
    weights = np.random.RandomState(8).rand(77)
    reference = KMeans(5, n_init=n_init, random_state=0).fit(X)
    ours = TransformerKMeans(5, n_init=n_init, random_state=0).fit(X)
    assert_array_equal(ours.predict(new), reference.predict(new))
    assert_allclose(ours.transform(new), reference.transform(new), rtol=1e-7)
    assert_allclose(ours.score(new), reference.score(new), rtol=1e-9)
    assert_allclose(
        ours.score(new, sample_weight=weights), reference.score(new, sample_weight=weights), rtol=1e-9
    )


def test_centers_are_the_means_of_their_members_after_strict_convergence():
    X = CONTINUOUS["overlapping"]()
    weights = make_weights("random", len(X), 0)
    ours = TransformerKMeans(6, tol=0, random_state=0).fit(X, sample_weight=weights)
    assert_allclose(ours.cluster_centers_, cluster_means(X, ours.labels_, 6, weights), rtol=1e-12)
