"""Learned steps before exact iterations: what they may change, what they must not, and who refuses them."""

import copy
import io
import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sktransclust import LloydTransformer, TransformerKMeans
from sktransclust.checkpoint import list_checkpoints, load_checkpoint, save_checkpoint
from sktransclust.model import LloydConfig

from . import oracle
from .cases import EPS, gaussians, true_inertia
from .test_estimator_resources import assert_same_bits, threads

NAME = "binary-l2-d4-k6"
X = gaussians(seed=0, n_samples=300, n_features=4, n_centers=6, std=2.0)
N_STEPS = 12


def network(dtype=torch.float64):
    return load_checkpoint(NAME).to(dtype)


def untrained(n_features, n_clusters, embedding="binary", seed=0):
    config = LloydConfig(n_features, n_clusters, embedding)
    return LloydTransformer(config, generator=torch.Generator().manual_seed(seed))


def fit(data=X, sample_weight=None, **parameters):
    defaults = {"n_clusters": 6, "weights": NAME, "n_steps": N_STEPS, "random_state": 0, "device": "cpu"}
    return TransformerKMeans(**(defaults | parameters)).fit(data, sample_weight=sample_weight)


def path_of(step, data, init, n_steps=N_STEPS):
    """Centers before and after each step, brought into the unit cube and back in NumPy."""
    low, scale = data.min(axis=0), np.ptp(data, axis=0).max()
    samples = torch.as_tensor((data - low) / scale)[None]
    path = [init]
    for _ in range(n_steps):
        centers = torch.as_tensor((path[-1] - low) / scale)[None]
        path.append(step(samples, centers)[0].detach().numpy() * scale + low)
    return path


@pytest.mark.parametrize("seed", range(5))
def test_history_holds_the_inertias_of_the_networks_path_and_exact_iterations_start_at_its_best(seed):
    init = X[np.random.RandomState(seed).permutation(len(X))[:6]]
    learned = fit(init=init, n_init=1, weights=network())
    path = path_of(network().step, X, init)
    inertias = [oracle.inertia(X, centers) for centers in path]
    assert len(learned.inertia_history_) == N_STEPS + learned.n_iter_ + 1
    assert_allclose(learned.inertia_history_[:N_STEPS], inertias[:-1], rtol=1e-9)
    assert_allclose(learned.inertia_history_[N_STEPS], min(inertias), rtol=1e-9)

    finish = fit(init=path[int(np.argmin(inertias))], n_init=1, weights="exact")
    assert_array_equal(learned.labels_, finish.labels_)
    assert learned.n_iter_ == finish.n_iter_


@pytest.mark.parametrize("name", [info.name for info in list_checkpoints("dense")])
def test_no_bundled_network_ends_worse_than_its_initial_centers(name):
    config = load_checkpoint(name).config
    d, k = config.n_features, config.n_clusters
    embedding = "onehot" if config.embedding == "onehot" else "binary"
    for seed in range(5):
        data = gaussians(seed, n_samples=150, n_features=d, n_centers=k, std=4.0)
        init = data[:k]
        learned = fit(data, n_clusters=k, init=init, n_init=1, weights=name, embedding=embedding)
        assert_allclose(learned.inertia_history_[0], oracle.inertia(data, init), rtol=1e-9)
        assert learned.inertia_history_[N_STEPS:].max() <= learned.inertia_history_[:N_STEPS].min() * (
            1 + 1e-9
        )
        assert learned.inertia_history_[-1] == learned.inertia_
        assert_allclose(learned.inertia_, oracle.inertia(data, learned.cluster_centers_), rtol=1e-9)
        assert_array_equal(learned.labels_, learned.predict(data))


@pytest.mark.parametrize(("factor", "shift"), [(2.0**-40, 0.0), (2.0**9, 0.0), (1.0, 4096.0), (8.0, -512.0)])
def test_data_times_a_power_of_two_plus_a_constant_keep_their_labels(factor, shift):
    coarse = np.round(X * 256) / 256  # so that shifting is exact
    plain = fit(coarse, init=coarse[:6], n_init=1)
    moved_data = coarse * factor + shift
    moved = fit(moved_data, init=moved_data[:6], n_init=1)
    assert_array_equal(moved.labels_, plain.labels_)
    assert moved.n_iter_ == plain.n_iter_
    assert_allclose(moved.inertia_history_, plain.inertia_history_ * factor**2, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_restarts_moved_at_once_are_the_starts_moved_one_by_one(dtype):
    drawn = [X[np.random.RandomState(seed).permutation(len(X))[:6]] for seed in range(7)]
    alone = [fit(init=init, n_init=1, weights=network(dtype)) for init in drawn]
    remaining = iter(drawn)

    def draw(data, n_clusters, random_state):
        return next(remaining) - X.mean(axis=0)  # a callable is given, and answers for, centered data

    together = fit(init=draw, n_init=7, weights=network(dtype))
    best = min(alone, key=lambda estimator: estimator.inertia_)
    assert_array_equal(together.labels_, best.labels_)
    assert_allclose(
        together.inertia_history_, best.inertia_history_, rtol=1e-9 if dtype.itemsize == 8 else 1e-4
    )


def test_starts_are_drawn_as_in_exact_mode():
    for init in ("k-means++", "random"):
        learned = fit(init=init, n_init=1, random_state=5)
        exact = fit(init=init, n_init=1, random_state=5, weights="exact")
        assert learned.inertia_history_[0] == pytest.approx(exact.inertia_history_[0], rel=1e-9)


def test_weight_two_is_the_row_twice():
    weight = np.random.RandomState(0).randint(1, 4, len(X))
    init = X[:6]
    weighted = fit(sample_weight=weight, init=init, n_init=1, weights=network())
    repeated = fit(np.repeat(X, weight, axis=0), init=init, n_init=1, weights=network())
    assert_array_equal(np.repeat(weighted.labels_, weight), repeated.labels_)
    assert_allclose(weighted.inertia_history_, repeated.inertia_history_, rtol=1e-9)


def test_weight_zero_is_the_row_gone():
    weight = np.random.RandomState(0).randint(0, 2, len(X))
    weighted = fit(sample_weight=weight, init=X[:6], n_init=1, weights=network())
    without = fit(X[weight > 0], init=X[:6], n_init=1, weights=network())
    assert_array_equal(weighted.labels_[weight > 0], without.labels_)
    assert_allclose(weighted.inertia_history_, without.inertia_history_, rtol=1e-9)


def test_a_far_row_of_weight_zero_does_not_change_the_path():
    data, weight = np.vstack([X, np.full((1, 4), 1e3)]), np.append(np.ones(len(X)), 0)
    weighted = fit(data, weight, init=X[:6], n_init=1, tol=0, weights=network())
    without = fit(init=X[:6], n_init=1, tol=0, weights=network())
    assert_array_equal(weighted.labels_[:-1], without.labels_)
    assert_allclose(weighted.inertia_history_, without.inertia_history_, rtol=1e-9)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_steps": 0},
        {"weights": LloydTransformer.exact(4, 6)},
        {"weights": LloydTransformer.exact(4, 6, "onehot"), "embedding": "onehot"},
    ],
    ids=["no steps", "exact binary network", "exact one-hot network"],
)
def test_without_learned_steps_the_bits_are_those_of_exact_mode(parameters):
    weight = np.linspace(0.5, 2.0, len(X))
    plain = {"n_init": 3, "sample_weight": weight}
    assert_same_bits(fit(**plain, **parameters), fit(**(plain | parameters | {"weights": "exact"})))


def test_an_exact_network_takes_sparse_data_and_a_learned_one_says_why_not():
    data = sp.csr_array(np.maximum(X, 0))
    exact = fit(data, weights=LloydTransformer.exact(4, 6))
    assert_allclose(exact.inertia_, true_inertia(data, exact.cluster_centers_), rtol=1e-9)
    with pytest.raises(ValueError, match=r"X should be dense .*got a sparse one; use weights='exact'"):
        fit(data)


@pytest.mark.parametrize("shape", [(4, 5), (5, 6)])
def test_another_problem_is_refused_by_naming_both_and_what_is_bundled(shape):
    data = gaussians(n_features=shape[0])
    with pytest.raises(ValueError, match=r"n_features=4 and n_clusters=6") as caught:
        fit(data, n_clusters=shape[1])
    assert f"X has {shape[0]} features and n_clusters={shape[1]}" in str(caught.value)
    assert all(info.name in str(caught.value) for info in list_checkpoints())


def test_a_family_without_this_problem_names_the_members_it_has():
    with pytest.raises(ValueError, match=rf"`weights`: .*'binary-l2'.*\(4, 5\).*{NAME}"):
        fit(n_clusters=5, weights="binary-l2")


def test_another_code_is_refused_by_naming_the_one_to_set():
    with pytest.raises(ValueError, match=r"set_params\(embedding='binary'\)"):
        fit(embedding="onehot")


def test_name_family_path_and_module_are_the_same_network(tmp_path):
    path = tmp_path / "mine.safetensors"
    save_checkpoint(path, load_checkpoint(NAME))
    by_name = fit()
    for weights in ("binary-l2", str(path), path, load_checkpoint(NAME)):
        assert_same_bits(fit(weights=weights), by_name)


@pytest.mark.parametrize("embedding", ["binary", "onehot"])
def test_a_network_without_codes_runs_with_either_embedding(embedding):
    bare = untrained(4, 6, "none").double()
    learned = fit(weights=bare, init=X[:6], n_init=1, embedding=embedding)
    inertias = [oracle.inertia(X, centers) for centers in path_of(bare.step, X, X[:6])]
    assert_allclose(learned.inertia_history_[:N_STEPS], inertias[:-1], rtol=1e-9)


def test_a_pipeline_with_a_scaler_gives_what_its_steps_give():
    data = X * [1.0, 10.0, 100.0, 1000.0]
    estimator = TransformerKMeans(6, weights=NAME, random_state=0)
    pipeline = make_pipeline(StandardScaler(), estimator).fit(data)
    alone = clone(estimator).fit(StandardScaler().fit_transform(data))
    assert_array_equal(pipeline.predict(data), alone.labels_)


def through_joblib(estimator):
    stream = io.BytesIO()
    joblib.dump(estimator, stream)
    stream.seek(0)
    return joblib.load(stream)


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda estimator: pickle.loads(pickle.dumps(estimator)),
    "joblib": through_joblib,
    "clone and fit": lambda estimator: clone(estimator).fit(X),
}


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
def test_copies_carry_the_network_and_fit_to_the_same_bits(duplicate):
    original = fit(weights=network(torch.float32))
    copied = duplicate(original)
    assert_same_bits(copied, original)
    assert copied.weights is not original.weights
    assert_same_bits(copied.fit(X), original)


def test_a_fit_leaves_the_network_as_it_was():
    module = network(torch.float32)
    before = {name: parameter.detach().clone() for name, parameter in module.named_parameters()}
    pointers = [parameter.data_ptr() for parameter in module.parameters()]
    estimator = fit(weights=module)
    assert estimator.weights is module
    assert [parameter.data_ptr() for parameter in module.parameters()] == pointers
    for name, parameter in module.named_parameters():
        assert_array_equal(parameter.detach(), before[name])
        assert parameter.requires_grad
        assert parameter.grad is None
        assert parameter.dtype == torch.float32


def test_the_same_bits_for_any_number_of_threads():
    data = gaussians(seed=2, n_samples=2500, n_features=4, n_centers=6, std=4.0)
    results = []
    for number in (1, 2, 3):
        with threads(number):
            results.append(fit(data, init="random", n_init=3, n_steps=4))
    for other in results[1:]:
        assert_same_bits(other, results[0])


def broken(dtype, **factors):
    """Return an untrained network with some value projections multiplied until its centers are useless."""
    module = untrained(4, 6).to(dtype)
    with torch.no_grad():
        for attention, factor in factors.items():
            getattr(module, attention)["value"].mul_(factor)
    return module


BROKEN = {
    "not a number": broken(torch.float32, update=float("nan")),
    "infinite in float32": broken(torch.float32, update=1e38),
    "squares overflow in float64": broken(torch.float64, update=1e200),
    "far away": broken(torch.float32, update=1e6, erase_centers=-1e3),
    "all at one point": broken(torch.float32, update=0.0, erase_centers=0.0),
}


@pytest.mark.parametrize("module", BROKEN.values(), ids=BROKEN)
def test_useless_steps_still_end_in_a_solution_of_lloyds_algorithm(module):
    learned = fit(weights=module, init=X[:6], n_init=1)
    assert not np.isnan(learned.inertia_history_).any()
    labels = oracle.assign(X, learned.cluster_centers_)
    assert_array_equal(learned.labels_, labels)
    means = oracle.update(X, labels, learned.cluster_centers_)
    assert np.square(means - learned.cluster_centers_).sum() <= 1e-4 * X.var(axis=0).mean()
    assert learned.inertia_ <= oracle.inertia(X, X[:6])


def test_with_steps_that_lose_exact_mode_is_what_remains():
    learned = fit(weights=BROKEN["not a number"], init=X[:6], n_init=1)
    exact = fit(weights="exact", init=X[:6], n_init=1)
    assert_array_equal(learned.labels_, exact.labels_)
    assert_array_equal(learned.inertia_history_[N_STEPS:], exact.inertia_history_)
    assert np.isinf(learned.inertia_history_[1:N_STEPS]).all()


FEW = {"constant": np.ones((9, 4)), "repeated": np.repeat(X[:5], 3, axis=0), "as many as clusters": X[:6]}


@pytest.mark.parametrize("data", FEW.values(), ids=FEW)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_no_more_distinct_rows_than_clusters_leave_no_inertia(data):
    learned = fit(data, n_init=2)
    assert_allclose(learned.cluster_centers_[learned.labels_], data, rtol=2 * EPS)
    assert learned.inertia_ <= data.size * (2 * EPS * np.abs(data).max()) ** 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_centers_have_the_type_of_the_data(dtype):
    learned = fit(X.astype(dtype))
    assert learned.cluster_centers_.dtype == dtype
    assert_allclose(learned.inertia_, true_inertia(X.astype(dtype), learned.cluster_centers_), rtol=1e-6)


@pytest.mark.parametrize("backend", ["streamed", "dense"])
def test_either_backend_finishes_the_learned_steps(backend):
    learned = fit(backend=backend, n_init=2)
    assert learned.backend_ == backend
    assert_array_equal(learned.labels_, fit(n_init=2).labels_)


@pytest.mark.gpu
def test_cpu_and_cuda_agree_and_a_network_on_either_serves_both():
    module = network()
    on_cpu = fit(weights=module, n_init=4)
    for weights in (module, copy.deepcopy(module).cuda()):
        device = next(weights.parameters()).device
        for where in ("cpu", "cuda"):
            estimator = fit(weights=weights, n_init=4, device=where)
            assert_array_equal(estimator.labels_, on_cpu.labels_)
            assert_allclose(estimator.inertia_history_, on_cpu.inertia_history_, rtol=1e-8)
            assert next(weights.parameters()).device == device
    restored = pickle.loads(pickle.dumps(fit(weights=copy.deepcopy(module).cuda(), device="cuda")))
    assert next(restored.weights.parameters()).device.type == "cpu"
