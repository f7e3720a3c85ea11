import pytest
import torch

from sktransclust.tasks import MixedDistribution, MixedSampler
from sktransclust.tasks.mixed import STARTS, lloyd_iterations, start_centers
from sktransclust.training import lloyd_step


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def is_finite(tensor):
    return bool(tensor.isfinite().all())


def test_batches_are_centered_of_length_1_and_of_all_sizes_in_the_ranges():
    distribution = MixedDistribution(n_features=(2, 5), n_clusters=(2, 6), n_samples=(30, 60))
    sampler, source, seen = MixedSampler(distribution, torch.float64), generator(), set()
    for _ in range(60):
        samples, centers = sampler.draw(3, source)
        (_, n, d), k = samples.shape, centers.shape[1]
        assert centers.shape == (3, k, d)
        assert 30 <= n <= 60
        assert is_finite(centers)
        torch.testing.assert_close(samples.mean(1), torch.zeros(3, d, dtype=torch.float64))
        torch.testing.assert_close(samples.square().sum(2).mean(1), torch.ones(3, dtype=torch.float64))
        seen.add((d, k))
    assert {d for d, _ in seen} == {2, 3, 4, 5}
    assert {k for _, k in seen} == {2, 3, 4, 5, 6}


def test_the_same_generator_gives_the_same_tasks():
    sampler = MixedSampler(MixedDistribution())
    for one, other in zip(sampler.draw(2, generator(3)), sampler.draw(2, generator(3)), strict=True):
        assert torch.equal(one, other)


def test_iterations_are_those_of_the_exact_network():
    samples = torch.randn(2, 30, 3, dtype=torch.float64, generator=generator())
    centers = samples[:, :5]
    expected = lloyd_step(samples, lloyd_step(samples, centers))
    torch.testing.assert_close(lloyd_iterations(samples, centers, 2), expected, rtol=1e-12, atol=1e-12)


def test_the_center_of_an_empty_cluster_stays():
    samples = torch.tensor([[[0.0], [1.0]]])
    moved = lloyd_iterations(samples, torch.tensor([[[0.0], [9.0]]]), 1)
    assert moved.flatten().tolist() == [0.5, 9.0]


@pytest.mark.parametrize("start", STARTS)
def test_each_start_gives_k_finite_centers_even_where_all_samples_are_equal(start):
    for samples in (torch.randn(2, 20, 3, generator=generator()), torch.ones(2, 20, 3)):
        for k in (1, 2, 5):
            centers = start_centers(samples, k, start, generator(k))
            assert centers.shape == (2, k, 3)
            assert is_finite(centers)


def test_a_grown_start_is_an_optimum_of_fewer_clusters_and_some_samples():
    samples = torch.randn(1, 200, 2, generator=generator())
    centers = start_centers(samples, 10, "grown", generator(1))
    is_sample = (centers[0, :, None] == samples[0]).all(2).any(1)
    n_grown = int(is_sample.sum())
    assert 1 <= n_grown <= 3
    assert is_sample[-n_grown:].all()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("families", ()),
        ("families", ("student",)),
        ("starts", ("grid",)),
        ("n_features", (3,)),
        ("n_clusters", (5, 2)),
    ],
)
def test_a_wrong_choice_is_named(field, value):
    with pytest.raises(ValueError, match=f"`{field}` should"):
        MixedDistribution(**{field: value})
