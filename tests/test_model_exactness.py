"""Theorem 2.1, held against Lloyd's algorithm in NumPy: layer t of the exact network is iteration t."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sktransclust.model import (
    LloydConfig,
    LloydTransformer,
    decode_labels,
    embed_centers,
    embed_samples,
    exact_config,
    lloyd_layer,
    lloyd_projections,
)
from sktransclust.model import attention as attention_module
from sktransclust.model.attention import squared_distances
from sktransclust.model.attention_weights import hardmax_weights
from sktransclust.model.embedding import center_codes

from . import oracle

N_LAYERS = 8
CLUSTER_COUNTS = [1, 2, 3, 4, 5, 8, 9, 31, 32, 33]
EMBEDDINGS = ["binary", "onehot"]
each_embedding = pytest.mark.parametrize("embedding", EMBEDDINGS)


def run_layers(config, samples, centers, sample_weight=None, n_layers=N_LAYERS):
    """Tokens embedded once, layers applied one after the other: [(labels, centers, sample codes), ...]."""
    x, c = (torch.as_tensor(z, dtype=torch.float64) for z in (samples, centers))
    x, c = embed_samples(x, config), embed_centers(c, config)
    weight = None if sample_weight is None else torch.as_tensor(sample_weight, dtype=torch.float64)
    d, layers = config.n_features, []
    for _ in range(n_layers):
        x, c = lloyd_layer(x, c, lloyd_projections(config), config, weight)
        layers.append((decode_labels(x, config).numpy(), c[..., :d].numpy(), x[..., d:].numpy()))
    return layers


def assert_layers_are_iterations(config, samples, centers, sample_weight=None):
    """Compare every layer of a batch of tasks with the oracle's iteration, centers to 1e-12 of the scale."""
    layers = run_layers(config, samples, centers, sample_weight)
    codes = center_codes(config, like=torch.zeros((), dtype=torch.float64)).numpy()
    for b in range(len(samples)):
        weight = None if sample_weight is None else sample_weight[b]
        scale = max(1.0, np.abs(samples[b]).max(), np.abs(centers[b]).max())
        for layer, (true_labels, true_centers) in zip(
            layers, oracle.lloyd(samples[b], centers[b], N_LAYERS, weight), strict=True
        ):
            labels, new_centers, sample_codes = (z[b] for z in layer)
            np.testing.assert_allclose(new_centers, true_centers, rtol=0, atol=1e-12 * scale)
            np.testing.assert_array_equal(labels, true_labels)
            np.testing.assert_array_equal(sample_codes, codes[true_labels])


def random_tasks(rng, n_tasks, n, d, k):
    """Normal mixtures; the initial centers are k distinct samples."""
    means = rng.normal(scale=3.0, size=(n_tasks, k, d))
    samples = np.stack([m[rng.integers(k, size=n)] for m in means]) + rng.normal(size=(n_tasks, n, d))
    return samples, samples[:, :k].copy()


def lattice_tasks(rng, n_tasks, n, d, k, width=5):
    """Integers 0..width-1: equal samples and equal distances everywhere, in exact arithmetic."""
    samples = rng.integers(width, size=(n_tasks, n, d)).astype(np.float64)
    return samples, samples[:, :k].copy()


@each_embedding
@pytest.mark.parametrize("k", CLUSTER_COUNTS)
def test_layer_t_is_iteration_t_on_random_tasks(k, embedding):
    rng = np.random.default_rng(
        k
    )  # 10 cluster counts x 4 dimensions x 6 tasks = 240 tasks for each embedding
    for d in (1, 2, 5, 9):
        samples, centers = random_tasks(rng, n_tasks=6, n=80, d=d, k=k)
        assert_layers_are_iterations(exact_config(d, k, embedding), samples, centers)


@each_embedding
@pytest.mark.parametrize("k", CLUSTER_COUNTS)
def test_layer_t_is_iteration_t_on_lattices_full_of_ties(k, embedding):
    rng = np.random.default_rng(100 + k)
    n_ties = 0
    for d in (1, 2, 3):
        samples, centers = lattice_tasks(rng, n_tasks=7, n=60, d=d, k=k)
        assert_layers_are_iterations(exact_config(d, k, embedding), samples, centers)
        distances = np.stack([oracle.squared_distances(x, c) for x, c in zip(samples, centers, strict=True)])
        n_ties += (distances == distances.min(axis=-1, keepdims=True)).sum() - distances[..., 0].size
    assert k == 1 or n_ties > 100


@each_embedding
def test_layer_t_is_iteration_t_on_duplicated_samples(embedding):
    rng = np.random.default_rng(7)
    distinct, _ = random_tasks(rng, n_tasks=10, n=9, d=3, k=6)
    samples = np.stack([x[rng.integers(9, size=60)] for x in distinct])
    samples[:, :9] = distinct  # so the six initial centers are different
    assert_layers_are_iterations(exact_config(3, 6, embedding), samples, samples[:, :6].copy())


@each_embedding
@pytest.mark.parametrize("k", [2, 6, 8, 33])
def test_empty_clusters_keep_their_center(k, embedding):
    rng = np.random.default_rng(k)
    samples, centers = random_tasks(rng, n_tasks=20, n=50, d=2, k=k)
    centers[:, 1::2] += 100.0  # no sample is near these
    assert_layers_are_iterations(exact_config(2, k, embedding), samples, centers)
    *_, (labels, last, _) = run_layers(exact_config(2, k, embedding), samples, centers)
    assert not (labels % 2).any()
    np.testing.assert_array_equal(last[:, 1::2], centers[:, 1::2])


@each_embedding
@pytest.mark.parametrize("offset", [1e3, 1e6, -1e8])
def test_layer_t_is_iteration_t_far_from_the_origin(offset, embedding):
    samples, centers = random_tasks(np.random.default_rng(3), n_tasks=20, n=80, d=3, k=5)
    assert_layers_are_iterations(exact_config(3, 5, embedding), samples + offset, centers + offset)


@each_embedding
def test_weighted_samples_are_iterations_of_weighted_lloyd(embedding):
    rng = np.random.default_rng(4)
    samples, centers = random_tasks(rng, n_tasks=20, n=80, d=2, k=6)
    weight = rng.exponential(size=(20, 80)) * (rng.random((20, 80)) < 0.7)  # three in ten weigh nothing
    assert_layers_are_iterations(exact_config(2, 6, embedding), samples, centers, weight)
    lattice, centers = lattice_tasks(rng, n_tasks=20, n=80, d=2, k=6)
    weight = rng.integers(4, size=(20, 80)).astype(np.float64)
    assert_layers_are_iterations(exact_config(2, 6, embedding), lattice, centers, weight)


@each_embedding
def test_weight_is_repetition_and_weight_zero_is_absence(embedding):
    rng = np.random.default_rng(5)
    config = exact_config(2, 5, embedding)
    for _ in range(20):
        samples, centers = (z[0] for z in lattice_tasks(rng, n_tasks=1, n=40, d=2, k=5))
        weight = rng.integers(4, size=40)
        weighted = run_layers(config, samples, centers, weight.astype(np.float64))
        repeated = run_layers(config, np.repeat(samples, weight, axis=0), centers)
        for (labels, new_centers, _), (repeated_labels, repeated_centers, _) in zip(
            weighted, repeated, strict=True
        ):
            np.testing.assert_array_equal(new_centers, repeated_centers)
            np.testing.assert_array_equal(np.repeat(labels, weight), repeated_labels)


@each_embedding
@pytest.mark.parametrize("weighted", [False, True])
def test_literal_erase_over_all_pairs_of_samples_equals_the_identity(embedding, weighted):
    rng = np.random.default_rng(6)
    samples, centers = lattice_tasks(rng, n_tasks=30, n=60, d=2, k=6)  # 60 samples on 25 places
    weight = rng.integers(1, 5, size=(30, 60)).astype(np.float64) if weighted else None
    config = exact_config(2, 6, embedding)
    shortcut = run_layers(config, samples, centers, weight)
    literal = run_layers(replace(config, erase_map="hardmax"), samples, centers, weight)
    for shortcut_layer, literal_layer in zip(shortcut, literal, strict=True):
        for ours, theirs in zip(shortcut_layer, literal_layer, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@each_embedding
def test_eight_layers_of_the_module_and_eight_reembedded_steps_are_eight_iterations(embedding):
    samples, centers = random_tasks(np.random.default_rng(8), n_tasks=5, n=80, d=3, k=6)
    x, c = torch.from_numpy(samples), torch.from_numpy(centers)
    deep = LloydTransformer.exact(3, 6, embedding, n_layers=N_LAYERS)
    shallow = LloydTransformer.exact(3, 6, embedding)
    output = deep(x, c)
    for _ in range(N_LAYERS):
        c = shallow.step(x, c)
    for b in range(5):
        labels, expected = oracle.lloyd(samples[b], centers[b], N_LAYERS)[-1]
        for actual in (output.center_tokens[b, :, :3], c[b]):
            np.testing.assert_allclose(actual.detach(), expected, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(deep.decode_labels(output.sample_tokens)[b], labels)


@each_embedding
def test_float32_network_gives_the_labels_of_float64_on_a_lattice(embedding):
    samples, centers = lattice_tasks(np.random.default_rng(9), n_tasks=10, n=60, d=2, k=6)
    double = LloydTransformer.exact(2, 6, embedding)
    single = LloydTransformer.exact(2, 6, embedding).float()
    x, c = torch.from_numpy(samples), torch.from_numpy(centers)
    expected, actual = double(x, c), single(x.float(), c.float())
    assert actual.center_tokens.dtype == torch.float32
    assert torch.equal(
        single.decode_labels(actual.sample_tokens), double.decode_labels(expected.sample_tokens)
    )
    torch.testing.assert_close(actual.center_tokens, expected.center_tokens.float())


@each_embedding
@pytest.mark.parametrize("gamma", [1.0, 30.0, 1000.0])
def test_codes_at_finite_inverse_temperature_obey_the_bound(gamma, embedding):
    k, d = 6, 2
    samples, centers = random_tasks(np.random.default_rng(10), n_tasks=1, n=80, d=d, k=k)
    config = LloydConfig(d, k, embedding, inverse_temperature=gamma)
    (_, _, codes), *_ = run_layers(config, samples, centers, n_layers=1)
    distances = np.sort(oracle.squared_distances(samples[0], centers[0]), axis=1)
    bound = (k - 1) * np.exp(-gamma * (distances[:, 1] - distances[:, 0]) / np.sqrt(config.token_width))
    exact = center_codes(config, like=torch.zeros((), dtype=torch.float64)).numpy()
    error = np.abs(codes[0] - exact[oracle.assign(samples[0], centers[0])]).max(axis=1)
    assert (error <= bound + 1e-13).all()
    assert gamma < 1000.0 or np.median(error) < 1e-12


@each_embedding
def test_softmax_network_tends_to_lloyd_as_the_temperature_tends_to_zero(embedding):
    samples, centers = random_tasks(np.random.default_rng(11), n_tasks=5, n=80, d=3, k=5)
    expected = np.stack([oracle.lloyd(x, c, 1)[0][1] for x, c in zip(samples, centers, strict=True)])

    def error(gamma):
        config = LloydConfig(3, 5, embedding, inverse_temperature=gamma)
        ((_, actual, _),) = run_layers(config, samples, centers, n_layers=1)
        return np.abs(actual - expected).max()

    assert error(1.0) > 0.1
    assert error(1e6) < 1e-9


# Why the rules exist: each of these networks breaks one of them, and is wrong.


def test_inner_products_of_binary_codes_confuse_nine_pairs_where_distances_confuse_none():
    codes = center_codes(exact_config(1, 6, "binary"), like=torch.zeros(()))
    inner = codes @ codes.T
    not_less = (inner >= inner.diagonal().unsqueeze(1)).sum() - 6
    assert not_less == 9
    assert torch.equal(hardmax_weights(-squared_distances(codes, codes)), torch.eye(6))
    assert not torch.equal(hardmax_weights(inner), torch.eye(6))


@each_embedding
def test_averaging_in_assign_loses_a_sample_halfway_between_two_centers(embedding):
    samples, centers = np.array([[[0.0], [1.0], [2.0]]]), np.array([[[0.0], [2.0]]])
    config = exact_config(1, 2, embedding)
    ((labels, exact, _),) = run_layers(config, samples, centers, n_layers=1)
    ((_, averaged, codes),) = run_layers(replace(config, assign_map="hardmax"), samples, centers, n_layers=1)
    assert labels.tolist() == [[0, 0, 1]]
    assert exact.ravel().tolist() == [0.5, 2.0]
    assert (codes[0, 1] == 0.5).all()  # no center's code
    assert averaged.ravel().tolist() == [0.0, 2.0]  # the middle sample is in no cluster


def test_weights_of_one_over_m_go_wrong_where_sum_over_count_does_not(monkeypatch):
    config = replace(exact_config(2, 6), erase_map="hardmax")
    samples, centers = lattice_tasks(np.random.default_rng(12), n_tasks=200, n=60, d=2, k=6)
    expected = np.stack([oracle.lloyd(x, c, N_LAYERS)[-1][1] for x, c in zip(samples, centers, strict=True)])

    def n_wrong():
        *_, (_, actual, _) = run_layers(config, samples, centers)
        return (np.abs(actual - expected).max(axis=(1, 2)) > 1e-6).sum()

    assert n_wrong() == 0
    monkeypatch.setattr(
        attention_module,
        "weighted_mean",
        lambda weights, values: weights / weights.sum(-1, keepdim=True) @ values,
    )
    assert n_wrong() > 20


def test_without_keep_bias_an_empty_binary_center_takes_the_mean_of_a_code_neighbour():
    samples = np.array([[[0.0], [1.0], [10.0], [14.0]]])
    centers = np.array(
        [[[0.0], [10.0], [50.0]]]
    )  # codes 00, 10, 01: the third differs in one bit from the first
    config = exact_config(1, 3, "binary")
    ((_, kept, _),) = run_layers(config, samples, centers, n_layers=1)
    ((_, lost, _),) = run_layers(replace(config, keep_bias=None), samples, centers, n_layers=1)
    assert kept.ravel().tolist() == [0.5, 12.0, 50.0]
    assert lost.ravel().tolist() == [0.5, 12.0, 0.5]


def test_without_keep_bias_an_empty_onehot_center_takes_the_mean_of_all_samples():
    samples = np.array([[[0.0], [1.0], [10.0], [14.0]]])
    centers = np.array([[[0.0], [10.0], [50.0]]])  # one-hot codes are all equally far apart
    config = exact_config(1, 3, "onehot")
    ((_, kept, _),) = run_layers(config, samples, centers, n_layers=1)
    ((_, lost, _),) = run_layers(replace(config, keep_bias=None), samples, centers, n_layers=1)
    assert kept.ravel().tolist() == [0.5, 12.0, 50.0]
    assert lost.ravel().tolist() == [0.5, 12.0, 6.25]


@pytest.mark.gpu
@each_embedding
def test_network_on_cuda_gives_the_labels_of_the_cpu(embedding):
    samples, centers = lattice_tasks(np.random.default_rng(13), n_tasks=10, n=60, d=2, k=6)
    network = LloydTransformer.exact(2, 6, embedding, n_layers=4)
    x, c = torch.from_numpy(samples), torch.from_numpy(centers)
    expected = network(x, c)
    actual = network.to("cuda")(x.cuda(), c.cuda())
    assert torch.equal(
        network.decode_labels(actual.sample_tokens).cpu(), network.decode_labels(expected.sample_tokens)
    )
    torch.testing.assert_close(actual.center_tokens.cpu(), expected.center_tokens, rtol=0, atol=1e-12)
