"""The interface that scikit-learn's KMeans promises: names, defaults, messages, draws, printed lines."""

import copy
import inspect
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import InvalidParameterError

from sktransclust import TransformerKMeans

from .cases import gaussians

X = gaussians()
OWN = {"weights": "exact", "embedding": "binary", "n_steps": 20, "device": "auto", "backend": "auto"}


def outcome(action):
    """Type and text of the error that `action` raises, with the class's name blotted out."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the two errors are compared with each other
        action()
    return type(caught.value), re.sub("(Transformer)?KMeans", "<Class>", str(caught.value))


def test_shared_parameters_have_kmeans_order_kinds_and_defaults():
    ours = list(inspect.signature(TransformerKMeans).parameters.values())
    theirs = list(inspect.signature(KMeans).parameters.values())
    assert [(p.name, p.kind, p.default) for p in ours[: len(theirs)]] == [
        (p.name, p.kind, p.default) for p in theirs
    ]


def test_own_parameters_are_keyword_only_with_the_documented_defaults():
    parameters = inspect.signature(TransformerKMeans).parameters
    own = {name: p for name, p in parameters.items() if name not in inspect.signature(KMeans).parameters}
    assert {name: p.default for name, p in own.items()} == OWN
    assert {p.kind for p in own.values()} == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform", "predict", "transform", "score"])
def test_methods_have_kmeans_signatures(method):
    ours, theirs = (inspect.signature(getattr(cls, method)) for cls in (TransformerKMeans, KMeans))
    described = [[(p.name, p.kind, p.default) for p in s.parameters.values()] for s in (ours, theirs)]
    assert described[0] == described[1]


def test_tags_are_those_of_kmeans():
    ours, theirs = get_tags(TransformerKMeans()), get_tags(KMeans())
    assert ours.estimator_type == theirs.estimator_type == "clusterer"
    assert ours.input_tags == theirs.input_tags
    assert ours.transformer_tags.preserves_dtype == ["float64", "float32"]


BAD_PARAMETERS = [
    {"n_clusters": 0},
    {"n_clusters": 3.0},
    {"init": "kmeans"},
    {"init": sp.csr_matrix(np.eye(8, 4))},
    {"n_init": 0},
    {"n_init": "ten"},
    {"max_iter": 0},
    {"tol": -1},
    {"tol": np.inf},
    {"tol": np.nan},
    {"verbose": "loud"},
    {"random_state": np.random.default_rng(0)},
    {"random_state": -1},
    {"copy_x": "no"},
    {"algorithm": "full"},
    {"tol": -1, "max_iter": 0},
]


@pytest.mark.parametrize(
    "parameters", BAD_PARAMETERS, ids=lambda p: "-".join(f"{k}={v!r:.20}" for k, v in p.items())
)
def test_a_bad_parameter_gives_kmeans_own_message(parameters):
    kind, text = outcome(lambda: TransformerKMeans(**parameters).fit(X))
    expected_kind, expected = outcome(lambda: KMeans(**parameters).fit(X))
    assert kind is expected_kind is InvalidParameterError
    # The order of the allowed strings is that of a set, and differs from run to run.
    assert sorted(text) == sorted(expected)


BAD_INPUT = {
    "one dimension": lambda cls: cls().fit(X[:, 0]),
    "three dimensions": lambda cls: cls().fit(X.reshape(3, 100, 4)),
    "no features": lambda cls: cls().fit(np.zeros((10, 0))),
    "no samples": lambda cls: cls().fit(np.zeros((0, 3))),
    "fewer samples than clusters": lambda cls: cls(6).fit(X[:5]),
    "complex": lambda cls: cls().fit(X.astype(complex)),
    "text": lambda cls: cls().fit([["a", "b"]] * 9),
    "wrong number of initial centers": lambda cls: cls(3, init=X[:2]).fit(X),
    "wrong width of initial centers": lambda cls: cls(3, init=X[:3, :2]).fit(X),
    "callable of wrong shape": lambda cls: cls(3, init=lambda X, k, random_state: X[:2]).fit(X),
    "initial centers with NaN": lambda cls: cls(3, init=np.full((3, 4), np.nan)).fit(X),
    "unfitted predict": lambda cls: cls().predict(X),
    "unfitted transform": lambda cls: cls().transform(X),
    "unfitted score": lambda cls: cls().score(X),
    "unfitted names": lambda cls: cls().get_feature_names_out(),
    "fewer features in predict": lambda cls: cls(3).fit(X).predict(X[:, :2]),
    "fewer features in transform": lambda cls: cls(3).fit(X).transform(X[:, :2]),
    "fewer features in score": lambda cls: cls(3).fit(X).score(X[:, :2]),
    "no rows in predict": lambda cls: cls(3).fit(X).predict(X[:0]),
    "weights with NaN": lambda cls: cls(3).fit(X, sample_weight=np.full(len(X), np.nan)),
    "weights of another length": lambda cls: cls(3).fit(X, sample_weight=np.ones(7)),
    "weights of two dimensions": lambda cls: cls(3).fit(X, sample_weight=np.ones((len(X), 2))),
    "mixed column names": lambda cls: cls(3).fit(pd.DataFrame(X, columns=["a", 1, "b", 2])),
    "names in another order": lambda cls: (
        cls(3).fit(pd.DataFrame(X, columns=list("abcd"))).predict(pd.DataFrame(X, columns=list("dcba")))
    ),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_gives_kmeans_own_message(name):
    assert outcome(lambda: BAD_INPUT[name](TransformerKMeans)) == outcome(lambda: BAD_INPUT[name](KMeans))


def test_an_unfitted_estimator_says_so():
    with pytest.raises(NotFittedError, match="This TransformerKMeans instance is not fitted yet"):
        TransformerKMeans().predict(X)


def test_predict_takes_no_sample_weight():
    with pytest.raises(TypeError, match="sample_weight"):
        TransformerKMeans(3).fit(X).predict(X, sample_weight=np.ones(len(X)))


@pytest.mark.parametrize(
    ("fitted_on", "asked_on"),
    [(pd.DataFrame(X, columns=list("abcd")), X), (X, pd.DataFrame(X, columns=list("abcd")))],
    ids=["names only in fit", "names only in predict"],
)
def test_missing_feature_names_warn_as_for_kmeans(fitted_on, asked_on):
    texts = []
    for cls in (TransformerKMeans, KMeans):
        estimator = cls(3, random_state=0).fit(fitted_on)
        with pytest.warns(UserWarning, match="feature names") as caught:
            estimator.predict(asked_on)
        texts.append([str(w.message).replace(cls.__name__, "<Class>") for w in caught])
    assert texts[0] == texts[1]


def test_an_array_of_centers_with_several_starts_warns_that_one_is_made():
    words = r"Explicit initial center position passed: performing only one init in TransformerKMeans"
    with pytest.warns(RuntimeWarning, match=words + " instead of n_init=10"):
        estimator = TransformerKMeans(3, init=X[:3], n_init=10).fit(X)
    assert estimator._n_init == 1


@pytest.mark.parametrize(
    ("init", "expected"),
    [("k-means++", 1), ("random", 10), (lambda X, k, random_state: X[:k].copy(), 10), (X[:3], 1)],
    ids=["k-means++", "random", "callable", "array"],
)
def test_the_automatic_number_of_starts(init, expected):
    assert TransformerKMeans(3, init=init).fit(X)._n_init == expected


def test_private_attributes_that_other_packages_read():
    estimator, reference = (cls(3, random_state=0).fit(X) for cls in (TransformerKMeans, KMeans))
    assert estimator._n_features_out == 3
    assert estimator._algorithm == "lloyd"
    assert estimator._n_threads >= 1
    assert_allclose(estimator._tol, reference._tol, rtol=1e-12)
    assert_allclose(estimator._tol, 1e-4 * X.var(axis=0).mean(), rtol=1e-12)


def test_elkan_with_one_cluster_warns_and_runs_lloyd():
    with pytest.warns(RuntimeWarning, match="algorithm='elkan' doesn't make sense for a single cluster"):
        assert TransformerKMeans(1, algorithm="elkan").fit(X)._algorithm == "lloyd"


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_init_centroids_draws_what_kmeans_draws(init, storage):
    drawn = [
        cls(4)._init_centroids(
            storage(X),
            x_squared_norms=(X**2).sum(axis=1),
            init=init,
            random_state=np.random.RandomState(7),
            sample_weight=np.linspace(0, 1, len(X)),
            n_centroids=6,
        )
        for cls in (TransformerKMeans, KMeans)
    ]
    assert_allclose(drawn[0], drawn[1], rtol=1e-12)


INITS = {
    "k-means++": "k-means++",
    "random": "random",
    "array": X[:5],
    "callable": lambda X, n_clusters, random_state: X[random_state.permutation(len(X))[:n_clusters]].copy(),
}


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("n_init", ["auto", 1])
def test_a_random_state_is_left_as_kmeans_leaves_it(init, n_init):
    states = []
    for cls in (TransformerKMeans, KMeans):
        random_state = np.random.RandomState(11)
        estimator = cls(5, init=INITS[init], n_init=n_init, random_state=random_state)
        estimator.fit(X)
        estimator.fit(X, sample_weight=np.linspace(1, 2, len(X)))
        states.append(random_state.get_state())
    assert_array_equal(states[0][1], states[1][1])
    assert states[0][2:] == states[1][2:]


def test_the_global_random_state_serves_only_where_none_is_given():
    before = check_random_state(None).get_state()[1].copy()
    TransformerKMeans(3, random_state=0).fit(X)
    assert_array_equal(check_random_state(None).get_state()[1], before)


def test_a_callable_is_given_the_centered_data_the_number_and_the_state():
    seen = []

    def init(data, n_clusters, *, random_state):
        seen.append((data.copy(), n_clusters, random_state.get_state()[2]))
        return data[:n_clusters].copy()

    for cls in (TransformerKMeans, KMeans):
        cls(3, init=init, n_init=1, random_state=0).fit(X + 100.0)
    assert_allclose(seen[0][0], seen[1][0], atol=1e-11)
    assert seen[0][1:] == seen[1][1:]


def printed(cls, capsys, data, **parameters):
    cls(verbose=1, **parameters).fit(data)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize(
    ("tol", "n_init", "algorithm"), [(0, 1, "lloyd"), (1e-2, 3, "lloyd"), (1e-2, 1, "elkan")]
)
def test_verbose_prints_kmeans_lines(capsys, storage, tol, n_init, algorithm):
    parameters = {"n_clusters": 6, "random_state": 1, "tol": tol, "n_init": n_init, "algorithm": algorithm}
    data = storage(gaussians(seed=1, std=4.0))
    number = re.compile(r"\d+\.?\d*(?:e[-+]?\d+)?")
    ours = printed(TransformerKMeans, capsys, data, **parameters)
    # With "elkan", scikit-learn leaves out a full stop; ours runs, and says, Lloyd's iterations.
    theirs = printed(KMeans, capsys, data, **{**parameters, "algorithm": "lloyd"})
    assert [number.sub("#", line) for line in ours] == [number.sub("#", line) for line in theirs]
    values = [np.array(number.findall("\n".join(lines)), dtype=float) for lines in (ours, theirs)]
    assert_allclose(values[0], values[1], rtol=1e-6)


def test_nothing_is_printed_by_default(capsys):
    TransformerKMeans(3).fit(X)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("fitted_on", "centers"),
    [
        (np.float64, np.float64),
        (np.float32, np.float32),
        (np.float16, np.float64),
        (np.int32, np.float64),
        (">f4", np.float64),
    ],
)
def test_dtypes_of_results_are_those_of_kmeans(fitted_on, centers):
    data = (X * 10).astype(fitted_on)
    ours = TransformerKMeans(3, random_state=0).fit(data)
    reference = KMeans(3, random_state=0).fit(data)
    assert ours.cluster_centers_.dtype == reference.cluster_centers_.dtype == centers
    assert ours.labels_.dtype == ours.predict(data).dtype == np.int32
    assert ours.transform(data).dtype == reference.transform(data).dtype
    assert type(ours.inertia_) is type(ours.score(data)) is float
    assert type(ours.n_iter_) is int
    assert ours.inertia_history_.dtype == np.float64
    assert isinstance(ours.device_, str)
    assert isinstance(ours.backend_, str)


def test_fit_returns_self_and_the_shortcuts_agree_with_it():
    fitted = TransformerKMeans(3, random_state=0)
    assert fitted.fit(X) is fitted
    assert_array_equal(clone(fitted).fit_predict(X), fitted.labels_)
    assert_array_equal(clone(fitted).fit_transform(X), fitted.transform(X))
    assert_array_equal(copy.deepcopy(fitted).predict(X), fitted.labels_)
