import numpy as np
import pytest
import torch

from sktransclust.model.config import FEATURES
from sktransclust.model.scalar import describe, scalar_layer, weighted_mean
from sktransclust.model.scalar_step import ScalarStep

from .test_model_scalar import F64, network, problem


def fast(model, samples, weight=None, tile_elements=1 << 18):
    return ScalarStep(samples, dict(model.named_parameters()), model.config, weight, tile_elements)


def centered(n, d, k, seed=1, weight=None):
    samples, centers = problem(n, d, k, seed, lead=())
    middle = weighted_mean(samples, weight)
    return samples - middle, centers - middle


def squared(samples, centers):
    return ((samples[:, None] - centers) ** 2).sum(-1).numpy()


@pytest.mark.parametrize("tile_elements", [1, 37, 400, 1 << 18])
@pytest.mark.parametrize(("n", "d", "k"), [(40, 3, 5), (7, 1, 1), (130, 2, 70), (9, 30, 2)])
@pytest.mark.parametrize("features", [(), ("gap",), FEATURES])
def test_fast_step_is_the_layer(n, d, k, features, tile_elements):
    model = network(features)
    weight = torch.rand(n, dtype=F64, generator=torch.Generator().manual_seed(0)) + 0.1
    for weighting in (None, weight):
        samples, centers = centered(n, d, k, weight=weighting)
        expected = scalar_layer(samples, centers, dict(model.named_parameters()), model.config, weighting)
        moved = fast(model, samples, weighting, tile_elements).step(centers.numpy())
        np.testing.assert_allclose(moved, expected.detach().numpy(), rtol=1e-10, atol=1e-10)


def test_steps_in_turn_do_not_disturb_each_other():
    model = network()
    samples, centers = centered(60, 3, 8)
    step = fast(model, samples, tile_elements=100)
    first = step.step(centers.numpy())
    step.use(centers[:5].numpy())
    step.near(centers[:2].numpy())
    np.testing.assert_array_equal(step.step(centers.numpy()), first)


def test_scores_far_apart_are_those_of_the_layer():
    model = network()
    samples, centers = centered(50, 2, 4)
    centers = torch.cat([centers, 30 + centers])  # exp of their scores is 0, or next to it
    expected = scalar_layer(samples, centers, dict(model.named_parameters()), model.config)
    np.testing.assert_allclose(fast(model, samples).step(centers.numpy()), expected.detach(), rtol=1e-9)


def test_samples_on_their_centers_stay_finite():
    model = network().float()
    assert np.array_equal(fast(model, torch.zeros(4, 2)).step(np.zeros((3, 2))), np.zeros((3, 2)))


def test_description_is_that_of_the_layer_and_ties_count_in_part():
    samples = torch.tensor([[-1.0], [1.0], [5.0], [-5.0]], dtype=F64)
    centers = torch.tensor([[0.0], [5.0]], dtype=F64)
    expected = describe(samples, centers, FEATURES)
    scale, features = fast(network(), samples).describe(centers.numpy())
    assert scale == pytest.approx(expected.scale.item())
    np.testing.assert_allclose(features, expected.features, rtol=1e-12)
    _, features = fast(network(), samples).describe(np.zeros((2, 1)))
    np.testing.assert_allclose(np.exp(features) - 0.05, [[1, 1, 0], [1, 1, 0]], atol=1e-12)


def test_near_and_use_are_those_of_all_distances_written_out():
    samples, centers = centered(80, 3, 6)
    weight = torch.rand(80, dtype=F64, generator=torch.Generator().manual_seed(0))
    step = fast(network(), samples, weight, tile_elements=100)
    distances = squared(samples, centers)
    np.testing.assert_allclose(step.near(centers.numpy()).numpy(), distances.min(1), rtol=1e-9, atol=1e-12)
    without = [np.delete(distances, j, axis=1).min(1) for j in range(6)]
    expected = [weight.numpy() @ (least - distances.min(1)) for least in without]
    np.testing.assert_allclose(step.use(centers.numpy()), expected, rtol=1e-9)


def test_one_of_two_equal_centers_is_of_no_use():
    samples, centers = centered(20, 2, 3)
    twice = torch.cat([centers, centers[:1]]).numpy()
    use = fast(network(), samples).use(twice)
    assert use[0] == use[3] == 0 < use[1:3].min()


def test_spread_takes_the_best_of_the_samples_drawn_one_after_the_other():
    samples = torch.tensor([[0.0], [1.0], [4.0], [10.0], [11.0]], dtype=F64)
    weight = torch.tensor([1.0, 1, 1, 2, 1], dtype=F64)
    near = samples[:, 0] ** 2  # to one center at 0; weighted sums up to each sample: 0, 1, 17, 217, 338
    uniform = np.array([[0.5 / 338, 250 / 338, 100 / 338], [0.0, 0.5, 0.5]])
    # Drawn first: 1, 11 and 10; 11 leaves 0 + 1 + 16 + 2 + 0 = 19, and 10 leaves 0 + 1 + 16 + 0 + 1 = 18.
    # Of these, 16 are those of 4.
    chosen = fast(network(), samples, weight).spread(near, uniform)
    np.testing.assert_allclose(chosen, [[10.0], [4.0]])
