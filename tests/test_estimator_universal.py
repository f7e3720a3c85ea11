"""The network for any problem, in the estimator: never above exact iterations, whatever the data."""

from importlib.resources import files

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

import sktransclust
from sktransclust import TransformerKMeans
from sktransclust.checkpoint import checkpoint_info, load_checkpoint, save_checkpoint
from sktransclust.model import LloydTransformer
from sktransclust.tasks import MixedDistribution
from sktransclust.training import UnrolledConfig, UnrolledRecipe, read_recipe

from . import oracle
from .test_estimator_resources import threads

ROUNDING = 1e-9
BUNDLED = files(sktransclust) / "checkpoints"


def fit(X, k, weights="universal", **parameters):
    sample_weight = parameters.pop("sample_weight", None)
    parameters = {"random_state": 0, "device": "cpu"} | parameters
    return TransformerKMeans(k, weights=weights, **parameters).fit(X, sample_weight=sample_weight)


def blobs(n=400, d=2, k=12, seed=0, std=0.6):
    return make_blobs(n, d, centers=k, cluster_std=std, random_state=seed)[0]


SHAPES = {
    "blobs": lambda r, n, d: blobs(n, d, 6, int(r.integers(1000)), r.choice([0.2, 1.0, 4.0])),
    "cauchy": lambda r, n, d: r.standard_cauchy((n, d)),
    "lattice": lambda r, n, d: r.integers(0, 3, (n, d)).astype(float),
    "duplicates": lambda r, n, d: np.repeat(r.normal(size=(max(n // 8, 9), d)), 8, axis=0),
    "line": lambda r, n, d: np.outer(np.arange(n), np.ones(d)),
    "one outlier": lambda r, n, d: np.vstack([r.normal(size=(n - 1, d)), np.full((1, d), 1e8)]),
    "masses": lambda r, n, d: np.exp(3 * r.normal(size=(n, 1))) * r.normal(size=(n, d)),
    "far from the origin": lambda r, n, d: 1e6 + r.normal(size=(n, d)),
    "tiny": lambda r, n, d: 1e-150 * r.normal(size=(n, d)),
    "huge": lambda r, n, d: 1e150 * r.normal(size=(n, d)),
}


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("shape", SHAPES)
def test_no_fit_ends_above_exact_iterations_from_the_same_start(shape):
    random = np.random.default_rng(list(SHAPES).index(shape))
    for seed in range(50):
        n, d, k = int(random.integers(20, 80)), int(random.integers(1, 6)), int(random.integers(1, 12))
        X = SHAPES[shape](random, n, d)
        init = ("k-means++", "random")[seed % 2]
        weight = random.integers(0, 3, len(X)).astype(float) if seed % 3 == 0 else None
        if weight is not None:
            weight[: k + 1] = 1.0
        same = {"init": init, "n_init": 1, "random_state": seed, "sample_weight": weight}
        learned, exact = fit(X, k, **same), fit(X, k, "exact", **same)
        assert learned.inertia_ <= exact.inertia_ * (1 + ROUNDING), (seed, n, d, k)
        truth, largest = true_inertia(X, learned, weight), float(np.abs(X).max())
        assert abs(learned.inertia_ - truth) <= 1e-9 * truth + n * (1e-15 * largest) ** 2, (seed, n, d, k)


def true_inertia(X, fitted, weight):
    """Inertia of the stored centers by direct differences, with more digits than the estimator has."""
    difference = X.astype(np.longdouble) - fitted.cluster_centers_[fitted.labels_]
    return (difference**2).sum(1) @ (np.ones(len(X)) if weight is None else weight)


def test_no_fit_ends_above_kmeans_with_the_same_seed():
    ratios = []
    for seed in range(20):
        X = blobs(300, 2, 15, seed)
        kmeans = KMeans(15, n_init=1, random_state=seed).fit(X)
        ratios.append(fit(X, 15, random_state=seed).inertia_ / kmeans.inertia_)
    assert max(ratios) <= 1 + ROUNDING
    assert np.mean(ratios) < 0.97  # and it does escape


def test_result_is_a_fixed_point_of_exact_iterations():
    X = blobs()
    learned = fit(X, 12, tol=0)
    again = fit(X, 12, "exact", init=learned.cluster_centers_, n_init=1, tol=0)
    assert_array_equal(again.labels_, learned.labels_)
    assert learned.inertia_ == pytest.approx(oracle.inertia(X, learned.cluster_centers_), rel=1e-12)
    assert len(learned.inertia_history_) == learned.n_iter_ + 1
    assert learned.inertia_history_[-1] == learned.inertia_


def test_without_steps_the_bits_are_those_of_exact_mode():
    X = blobs()
    assert_array_equal(fit(X, 12, n_steps=0).cluster_centers_, fit(X, 12, "exact").cluster_centers_)


def test_the_random_state_is_used_as_in_exact_mode():
    X, states = blobs(), [np.random.RandomState(0), np.random.RandomState(0)]
    for weights, state in zip(("universal", "exact"), states, strict=True):
        fit(X, 12, weights, random_state=state)
    assert states[0].uniform() == states[1].uniform()


def test_samples_of_weight_0_are_as_if_they_were_not_there():
    X = blobs()
    noise = np.random.default_rng(0).normal(size=(50, 2), scale=30)
    weight = np.r_[np.ones(len(X)), np.zeros(50)]
    init = X[:12]
    with_noise = fit(np.vstack([X, noise]), 12, init=init, n_init=1, sample_weight=weight)
    without = fit(X, 12, init=init, n_init=1)
    assert_allclose(with_noise.inertia_, without.inertia_, rtol=1e-6)


def test_data_beyond_the_networks_sample_and_clusters_beyond_its_training_do():
    X = np.random.default_rng(0).normal(size=(9000, 3))
    assert fit(X, 100).inertia_ <= fit(X, 100, "exact").inertia_ * (1 + ROUNDING)


def test_the_same_bits_for_any_number_of_threads():
    X, results = blobs(3000, 4, 20, std=2.0), []
    for number in (1, 3):
        with threads(number):
            results.append(fit(X, 20))
    assert_array_equal(results[0].cluster_centers_, results[1].cluster_centers_)


def test_name_path_and_module_are_the_same_network(tmp_path):
    X, path = blobs(), tmp_path / "mine.safetensors"
    network = load_checkpoint("universal")
    save_checkpoint(path, network)
    for weights in (path, network):
        assert_array_equal(fit(X, 12, weights).cluster_centers_, fit(X, 12).cluster_centers_)


def test_sparse_data_are_refused_by_saying_what_does():
    with pytest.raises(ValueError, match=r"X should be dense .*use weights='exact'"):
        fit(sp.csr_array(np.eye(8)), 2)


def test_a_network_whose_steps_are_not_numbers_changes_nothing():
    X, network = blobs(), load_checkpoint("universal")
    broken = {name: value.detach() * np.nan for name, value in network.named_parameters()}
    fitted = fit(X, 12, LloydTransformer(network.config, broken))
    assert_array_equal(fitted.cluster_centers_, fit(X, 12, "exact").cluster_centers_)


def test_the_bundled_network_was_trained_from_the_bundled_recipe():
    recipe = read_recipe(BUNDLED / "universal.toml")
    info = checkpoint_info("universal")
    assert isinstance(recipe, UnrolledRecipe)
    assert info.model == recipe.model
    assert MixedDistribution(**info.tasks) == MixedDistribution(
        **{k: list(v) for k, v in vars(recipe.tasks).items()}
    )
    assert UnrolledConfig(**info.training) == recipe.training
    assert info.validation < 1


@pytest.mark.parametrize(("n", "d", "k"), [(1100, 2, 1000), (80, 1000, 6)])
def test_clusters_and_features_far_beyond_the_training_hold_the_guarantee(n, d, k):
    X = np.random.default_rng(0).normal(size=(n, d))
    same = {"init": "random", "n_init": 1, "n_steps": 3}
    learned, exact = fit(X, k, **same), fit(X, k, "exact", **same)
    assert learned.inertia_ <= exact.inertia_ * (1 + ROUNDING)
    assert learned.inertia_ == pytest.approx(oracle.inertia(X, learned.cluster_centers_), rel=1e-9)
