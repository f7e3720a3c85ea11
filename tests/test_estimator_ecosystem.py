"""The estimator inside pipelines, searches, frames, copies, pickles and metadata routing."""

import copy
import io
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sktransclust import TransformerKMeans

from .cases import gaussians

X = gaussians(seed=1, std=3.0)
WEIGHTS = np.linspace(0.1, 2.0, len(X))


def fitted(**parameters):
    return TransformerKMeans(**{"n_clusters": 4, "random_state": 0, **parameters}).fit(X)


def through_pickle(estimator):
    return pickle.loads(pickle.dumps(estimator))


def through_joblib(estimator):
    stream = io.BytesIO()
    joblib.dump(estimator, stream)
    stream.seek(0)
    return joblib.load(stream)


def test_a_pipeline_gives_what_its_steps_give():
    pipeline = make_pipeline(StandardScaler(), TransformerKMeans(4, random_state=0)).fit(X)
    scaled = StandardScaler().fit_transform(X)
    alone = TransformerKMeans(4, random_state=0).fit(scaled)
    assert_array_equal(pipeline.predict(X), alone.labels_)
    assert_array_equal(pipeline.transform(X), alone.transform(scaled))
    assert pipeline.score(X) == alone.score(scaled)


def test_a_grid_search_over_two_processes_agrees_with_kmeans():
    grid = {"n_clusters": [2, 3, 5], "init": ["k-means++", "random"]}
    searches = [
        GridSearchCV(cls(n_init=2, random_state=0), grid, n_jobs=2, cv=3).fit(X)
        for cls in (TransformerKMeans, KMeans)
    ]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    assert_allclose(scores[0], scores[1], rtol=1e-9)
    assert searches[0].best_params_ == searches[1].best_params_


def test_scores_of_a_cross_validation_in_threads_are_those_in_sequence():
    estimator = TransformerKMeans(4, random_state=0)
    with joblib.parallel_backend("threading", n_jobs=2):
        threaded = cross_val_score(estimator, X, cv=4)
    assert_array_equal(threaded, cross_val_score(estimator, X, cv=4, n_jobs=1))


def test_clone_takes_parameters_and_no_fitted_attribute():
    parameters = {
        "n_clusters": 4,
        "init": X[:4],
        "tol": 0.1,
        "n_steps": 3,
        "backend": "dense",
        "device": "cpu",
    }
    estimator = TransformerKMeans(**parameters)
    twin = clone(estimator.fit(X))
    assert not hasattr(twin, "cluster_centers_")
    assert_array_equal(twin.init, X[:4])
    assert twin.init is not estimator.init
    shown = {name: value for name, value in twin.get_params().items() if name != "init"}
    assert shown == {name: value for name, value in estimator.get_params().items() if name != "init"}


def test_parameters_set_after_a_fit_act_at_the_next_one():
    estimator = fitted()
    estimator.set_params(n_clusters=7, backend="dense").fit(X)
    assert estimator.cluster_centers_.shape == (7, 4)
    assert estimator.backend_ == "dense"
    assert_array_equal(estimator.get_feature_names_out(), [f"transformerkmeans{j}" for j in range(7)])


@pytest.mark.parametrize("move", [copy.copy, copy.deepcopy, through_pickle, through_joblib])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_copy_answers_with_the_same_bits(move, dtype, backend):
    data = X.astype(dtype)
    estimator = TransformerKMeans(4, random_state=0, backend=backend).fit(data)
    twin = move(estimator)
    assert_array_equal(twin.labels_, estimator.labels_)
    assert_array_equal(twin.cluster_centers_, estimator.cluster_centers_)
    assert_array_equal(twin.transform(data), estimator.transform(data))
    assert_array_equal(twin.predict(data), estimator.labels_)
    assert twin.score(data) == estimator.score(data)
    assert_array_equal(twin.fit(data).cluster_centers_, estimator.cluster_centers_)


def test_a_deep_copy_shares_no_array_with_the_original():
    estimator = fitted()
    twin = copy.deepcopy(estimator)
    twin.cluster_centers_[:] = 0.0
    assert_array_equal(estimator.predict(X), estimator.labels_)


def test_an_unfitted_estimator_can_be_pickled():
    twin = through_pickle(TransformerKMeans(4, random_state=0))
    assert_array_equal(twin.fit_predict(X), fitted().labels_)


def test_the_fitted_state_is_plain_python_and_numpy():
    for name, value in vars(fitted()).items():
        module = type(value).__module__.split(".")[0]
        assert module in {"builtins", "numpy"}, f"{name} is a {type(value)}"


def test_frames_in_give_the_results_of_arrays_and_keep_names():
    names = ["a", "b", "c", "d"]
    estimator = TransformerKMeans(4, random_state=0).fit(pd.DataFrame(X, columns=names))
    assert_array_equal(estimator.labels_, fitted().labels_)
    assert_array_equal(estimator.feature_names_in_, names)
    assert_array_equal(
        TransformerKMeans(4, random_state=0).fit(pl.DataFrame(X, schema=names)).labels_, fitted().labels_
    )


@pytest.mark.parametrize(("container", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_set_output_gives_a_frame_with_our_names(container, frame):
    estimator = TransformerKMeans(3, random_state=0).set_output(transform=container)
    out = estimator.fit_transform(X)
    assert isinstance(out, frame)
    assert list(out.columns) == ["transformerkmeans0", "transformerkmeans1", "transformerkmeans2"]
    estimator.set_output(transform="default")
    assert_array_equal(out.to_numpy(), estimator.transform(X))


def test_an_estimator_serves_in_a_column_transformer():
    frame = pd.DataFrame(X, columns=list("abcd"))
    parts = make_column_transformer(
        (TransformerKMeans(2, random_state=0), ["a", "c"]), remainder="passthrough"
    )
    parts.set_output(transform="pandas")
    out = parts.fit_transform(frame)
    own = ["transformerkmeans__transformerkmeans0", "transformerkmeans__transformerkmeans1"]
    assert list(out.columns) == [*own, "remainder__b", "remainder__d"]


def test_weights_reach_fit_through_a_pipeline_when_routed():
    alone = TransformerKMeans(4, random_state=0).fit(X, sample_weight=WEIGHTS)
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler(with_mean=False, with_std=False).set_fit_request(sample_weight=False)
        estimator = TransformerKMeans(4, random_state=0).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(scaler, estimator.set_score_request(sample_weight=True))
        pipeline.fit(X, sample_weight=WEIGHTS)
        score = pipeline.score(X, sample_weight=WEIGHTS)
    assert_array_equal(pipeline[-1].cluster_centers_, alone.cluster_centers_)
    assert_allclose(score, -alone.inertia_, rtol=1e-12)
    assert not np.allclose(alone.cluster_centers_, fitted().cluster_centers_)


def test_weights_reach_fit_and_score_through_a_grid_search_when_routed():
    scores = []
    with sklearn.config_context(enable_metadata_routing=True):
        for cls in (TransformerKMeans, KMeans):
            estimator = cls(random_state=0).set_fit_request(sample_weight=True)
            estimator.set_score_request(sample_weight=True)
            search = GridSearchCV(estimator, {"n_clusters": [2, 4]}, cv=3).fit(X, sample_weight=WEIGHTS)
            scores.append(search.cv_results_["mean_test_score"])
    assert_allclose(scores[0], scores[1], rtol=1e-9)
    unweighted = GridSearchCV(KMeans(random_state=0), {"n_clusters": [2, 4]}, cv=3).fit(X)
    assert not np.allclose(scores[0], unweighted.cv_results_["mean_test_score"])


def test_unrequested_weights_are_refused_when_routing_is_on():
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(TransformerKMeans(4))
        with pytest.raises(ValueError, match="sample_weight"):
            pipeline.fit(X, sample_weight=WEIGHTS)


def test_a_sparse_matrix_in_a_pipeline_stays_sparse_and_agrees_with_its_dense_form():
    data = sp.csr_array(np.where(X > 0, X, 0))
    scaler = StandardScaler(with_mean=False)
    labels = make_pipeline(scaler, TransformerKMeans(4, random_state=0)).fit_predict(data)
    assert_array_equal(labels, make_pipeline(scaler, KMeans(4, random_state=0)).fit_predict(data))


def test_repr_shows_only_what_was_changed():
    assert repr(TransformerKMeans(3, backend="dense")) == "TransformerKMeans(backend='dense', n_clusters=3)"
