import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.nn.attention import SDPBackend, sdpa_kernel

from sktransclust.model import (
    PROJECTION_NAMES,
    LloydConfig,
    embed_centers,
    embed_samples,
    exact_config,
    lloyd_layer,
    lloyd_projections,
    random_projections,
)

CONFIGS = [LloydConfig(2, 5, embedding) for embedding in ("binary", "onehot", "none")]
each_config = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.embedding)


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(0)


def make_tokens(rng, config, *lead, n=9):
    samples = torch.rand(*lead, n, config.n_features, generator=rng, dtype=torch.float64)
    return embed_samples(samples, config), embed_centers(samples[..., : config.n_clusters, :], config)


def equation_3(x, z, projections, name, gamma=1.0):
    query, key, value = (projections[f"{name}.{part}"] for part in ("query", "key", "value"))
    distances = torch.cdist(x @ query, z @ key, compute_mode="donot_use_mm_for_euclid_dist") ** 2
    return torch.softmax(-gamma / math.sqrt(x.shape[-1]) * distances, dim=-1) @ z @ value


@each_config
@pytest.mark.parametrize("n", [9, 150])
def test_layer_is_equation_4(rng, config, n):
    weights = random_projections(config, rng, torch.float64)
    x, c = make_tokens(rng, config, 3, n=n)
    new_x = x + equation_3(x, c, weights, "assign") + equation_3(x, x, weights, "erase_samples")
    new_c = c + equation_3(c, new_x, weights, "update") + equation_3(c, c, weights, "erase_centers")
    actual_x, actual_c = lloyd_layer(x, c, weights, config)
    torch.testing.assert_close(actual_x, new_x, rtol=0, atol=1e-12)
    torch.testing.assert_close(actual_c, new_c, rtol=0, atol=1e-12)


def test_layer_over_many_samples_runs_on_the_fused_kernel_alone(rng):
    config = LloydConfig(4, 6)
    x, c = make_tokens(rng, config, 2, n=300)
    weights = {
        name: matrix.requires_grad_()
        for name, matrix in random_projections(config, rng, torch.float64).items()
    }
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # raises where the kernel would fall back
        _, centers = lloyd_layer(x, c, weights, config)
        centers.sum().backward()
    assert all(weights[name].grad.isfinite().all() for name in PROJECTION_NAMES)


@each_config
def test_stacked_networks_equal_a_loop_over_networks(rng, config):
    networks = [random_projections(config, rng, torch.float64) for _ in range(3)]
    stacked = {name: torch.stack([network[name] for network in networks]) for name in PROJECTION_NAMES}
    x, c = make_tokens(rng, config, 3, 2)
    weight = torch.rand(3, 2, 9, generator=rng, dtype=torch.float64)
    together = lloyd_layer(x, c, stacked, config, weight)
    for s, network in enumerate(networks):
        alone = lloyd_layer(x[s], c[s], network, config, weight[s])
        torch.testing.assert_close(tuple(z[s] for z in together), alone, rtol=0, atol=1e-13)


def test_stacked_exact_networks_equal_a_loop_over_tasks(rng):
    config = exact_config(2, 5)
    weights = lloyd_projections(config)
    stacked = {name: matrix.expand(3, -1, -1) for name, matrix in weights.items()}
    x, c = make_tokens(rng, config, 3, 2, n=30)
    together = lloyd_layer(x, c, stacked, config)
    for s in range(3):
        torch.testing.assert_close(tuple(z[s] for z in together), lloyd_layer(x[s], c[s], weights, config))


@each_config
def test_gradients_of_a_layer_are_those_of_finite_differences(rng, config):
    weights = random_projections(config, rng, torch.float64)
    x, c = make_tokens(rng, config, 1, n=6)
    inputs = [z.requires_grad_() for z in (x, c, *weights.values())]

    def layer(x, c, *matrices):
        return lloyd_layer(x, c, dict(zip(PROJECTION_NAMES, matrices, strict=True)), config)

    assert gradcheck(layer, inputs, fast_mode=True)


def test_every_projection_of_a_learned_layer_receives_a_gradient(rng):
    config = LloydConfig(2, 5)
    weights = {name: matrix.requires_grad_() for name, matrix in random_projections(config, rng).items()}
    x, c = (z.float() for z in make_tokens(rng, config, 4))
    lloyd_layer(x, c, weights, config)[1].square().sum().backward()
    assert all(weights[name].grad.any() for name in PROJECTION_NAMES)


@pytest.mark.parametrize("config", [*CONFIGS, exact_config(2, 5), exact_config(2, 5, "onehot")], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_attention_matrices_have_rows_that_sum_to_one(rng, config, weighted):
    exact = config.update_map == "hardmax"
    weights = lloyd_projections(config) if exact else random_projections(config, rng, torch.float64)
    x, c = make_tokens(rng, config, 3)
    weight = torch.randint(3, (3, 9), generator=rng).double() if weighted else None
    new_x, new_c, matrices = lloyd_layer(x, c, weights, config, weight, return_attention=True)
    torch.testing.assert_close((new_x, new_c), lloyd_layer(x, c, weights, config, weight))
    shapes = {name: tuple(matrix.shape) for name, matrix in matrices.items()}
    assert shapes == {
        "assign": (3, 9, 5),
        "erase_samples": (3, 9, 9),
        "update": (3, 5, 14 if exact else 9),
        "erase_centers": (3, 5, 5),
    }
    for matrix in matrices.values():
        assert (matrix >= 0).all()
        torch.testing.assert_close(matrix.sum(dim=-1), torch.ones(matrix.shape[:-1], dtype=torch.float64))


@each_config
def test_order_of_the_samples_does_not_matter_to_the_centers(rng, config):
    weights = random_projections(config, rng, torch.float64)
    x, c = make_tokens(rng, config, 3)
    order = torch.randperm(9, generator=rng)
    shuffled = lloyd_layer(x[:, order], c, weights, config)
    straight = lloyd_layer(x, c, weights, config)
    torch.testing.assert_close(shuffled[0], straight[0][:, order], rtol=0, atol=1e-13)
    torch.testing.assert_close(shuffled[1], straight[1], rtol=0, atol=1e-13)


@each_config
def test_float32_layer_is_the_float64_layer_rounded(rng, config):
    weights = random_projections(config, rng, torch.float64)
    x, c = make_tokens(rng, config, 3, n=100)
    single = {name: matrix.float() for name, matrix in weights.items()}
    for actual, expected in zip(
        lloyd_layer(x.float(), c.float(), single, config), lloyd_layer(x, c, weights, config), strict=True
    ):
        assert actual.dtype == torch.float32
        torch.testing.assert_close(actual, expected.float(), rtol=1e-5, atol=1e-5)


def test_network_of_one_width_has_as_many_weights_as_the_paper_says():
    for embedding, width in [("onehot", 4 + 6), ("binary", 4 + 3), ("none", 4)]:
        weights = random_projections(LloydConfig(4, 6, embedding))
        assert sum(matrix.numel() for matrix in weights.values()) == 12 * width**2
