import numpy as np
import pytest
import torch
from scipy import stats

from sktransclust.tasks import FAMILIES, TaskDistribution, TaskSampler
from sktransclust.tasks.sampler import _scale_to_unit_cube
from sktransclust.tasks.starts import kmeans_plus_plus_centers, random_centers

EVERYTHING = TaskDistribution(
    families=tuple(FAMILIES),
    scales=(0.05, 0.2),
    shapes=("isotropic", "anisotropic"),
    mixture_weights=("equal", "random"),
    scalings=("per_dimension", "scalar"),
    starts=("random", "k-means++"),
    n_samples=40,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(distribution, n_features, n_clusters, n_tasks, seed=0):
    return TaskSampler(distribution, n_features, n_clusters, torch.float64).draw(n_tasks, generator(seed))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("distribution", [TaskDistribution(n_samples=40), EVERYTHING])
def test_tasks_have_the_shapes_and_dtype_asked_for_and_lie_in_the_unit_cube(distribution, dtype):
    samples, centers = TaskSampler(distribution, 3, 5, dtype).draw(64, generator())
    assert samples.shape == (64, 40, 3)
    assert centers.shape == (64, 5, 3)
    assert samples.dtype == centers.dtype == dtype
    assert samples.isfinite().all()
    assert samples.min() == 0
    assert samples.max() == 1


def test_one_seed_draws_the_same_tasks_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    first, second, other = (draw(EVERYTHING, 3, 5, 8, seed) for seed in (4, 4, 5))
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[1], second[1])
    assert not torch.equal(first[0], other[0])
    assert torch.equal(before, torch.get_rng_state())


def test_a_generator_goes_on_where_the_last_batch_ended():
    sampler, one = TaskSampler(TaskDistribution(n_samples=10), 2, 3), generator()
    first, second = sampler.draw(4, one), sampler.draw(4, one)
    assert not torch.equal(first[0], second[0])


def test_every_center_is_a_sample_of_its_own_task():
    samples, centers = draw(EVERYTHING, 3, 5, 64)
    assert (samples[:, None] == centers[:, :, None]).all(dim=-1).any(dim=-1).all()


def test_locations_are_uniform_in_the_cube_and_isotropic_scales_are_as_given():
    sampler = TaskSampler(TaskDistribution(), 3, 4, torch.float64)
    chosen = {name: torch.zeros(1000, dtype=torch.int64) for name in ("scales", "shapes")}
    location, scale = sampler._components(chosen, 1000, generator())
    assert location.shape == scale.shape == (1000, 4, 3)
    assert stats.kstest(location.flatten().numpy(), stats.uniform.cdf).pvalue > 0.01
    assert (scale == 0.1).all()


def test_scale_of_isotropic_components_is_the_standard_deviation_of_their_samples():
    # One component: scaled by one scalar, all dimensions keep the same spread; anisotropic ones do not.
    distribution = TaskDistribution(scalings=("scalar",), n_samples=4000)
    spread = draw(distribution, 2, 1, 100)[0].std(dim=1)
    torch.testing.assert_close(spread[:, 0] / spread[:, 1], torch.ones(100).double(), rtol=0.1, atol=0)


def test_anisotropic_scales_are_independent_and_uniform():
    distribution = TaskDistribution(shapes=("anisotropic",), scalings=("scalar",), n_samples=1000)
    spread = draw(distribution, 2, 1, 2000)[0].std(dim=1)

    def ratio_of_uniforms(r):  # distribution function of U / V
        return np.where(r < 1, r / 2, 1 - 1 / (2 * np.maximum(r, 1e-9)))

    assert stats.kstest((spread[:, 0] / spread[:, 1]).numpy(), ratio_of_uniforms).pvalue > 0.01


def share_of_the_right_component(mixture_weights, n_tasks, n_samples):
    """Two nearly pointlike components in one dimension, at 0 and 1 after scaling: the share near 1."""
    distribution = TaskDistribution(scales=(1e-9,), mixture_weights=(mixture_weights,), n_samples=n_samples)
    samples, _ = draw(distribution, 1, 2, n_tasks)
    return (samples[:, :, 0] > 0.5).double().mean(dim=1).numpy()


def test_equal_weights_share_the_samples_as_a_fair_coin():
    share = share_of_the_right_component("equal", 2000, 100)
    counts = np.round(share * 100).astype(int)
    assert abs(counts.mean() - 50) < 4 * np.sqrt(25 / 2000)
    np.testing.assert_allclose(counts.var(), 25, rtol=0.15)


def test_random_weights_of_two_components_are_uniform():
    share = share_of_the_right_component("random", 2000, 2000)
    share = share[(share > 0) & (share < 1)]  # a task of one component has no second one to scale by
    assert stats.kstest(share, stats.uniform.cdf).pvalue > 0.01


def test_lists_of_choices_are_drawn_uniformly_and_independently():
    distribution = TaskDistribution(
        scalings=("per_dimension", "scalar"), shapes=("isotropic", "anisotropic"), n_samples=400
    )
    samples, _ = draw(distribution, 2, 1, 2000)
    per_dimension = (samples.amax(dim=1) == 1).all(dim=1)
    assert stats.binomtest(int(per_dimension.sum()), 2000, 0.5).pvalue > 0.01


def test_repeated_choices_are_likelier():
    distribution = TaskDistribution(scalings=("per_dimension", "scalar", "scalar", "scalar"), n_samples=20)
    samples, _ = draw(distribution, 2, 1, 2000)
    per_dimension = (samples.amax(dim=1) == 1).all(dim=1)
    assert stats.binomtest(int(per_dimension.sum()), 2000, 0.25).pvalue > 0.01


def test_families_of_a_list_each_get_their_own_tasks():
    # The kurtosis of one component tells normal (3) from Cauchy (about n).
    distribution = TaskDistribution(families=("normal", "cauchy"), n_samples=2000)
    x = draw(distribution, 1, 1, 400)[0].squeeze(-1).numpy()
    is_cauchy = stats.kurtosis(x, axis=1, fisher=False) > 10
    assert stats.binomtest(int(is_cauchy.sum()), 400, 0.5).pvalue > 0.01


def test_scalings_differ_by_the_range_of_each_dimension_alone():
    one, each = (
        draw(TaskDistribution(scalings=(name,), n_samples=30), 3, 4, 8)[0]
        for name in ("scalar", "per_dimension")
    )
    assert (one.amin(dim=1) == 0).all()
    assert (one.amax(dim=(1, 2)) == 1).all()
    assert (one.amax(dim=1) < 1).any()
    torch.testing.assert_close(one / one.amax(dim=1, keepdim=True), each)


@pytest.mark.parametrize("per_dimension", [True, False])
def test_a_constant_dimension_becomes_zero_and_a_constant_task_too(per_dimension):
    samples = torch.tensor([[[5.0, 1.0], [5.0, 3.0]], [[7.0, -2.0], [7.0, -2.0]]])
    scaled = _scale_to_unit_cube(samples, torch.tensor([per_dimension, per_dimension]))
    assert scaled.tolist() == [[[0.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]


def test_random_centers_are_distinct_and_every_sample_is_equally_likely():
    samples = torch.arange(5.0).reshape(1, 5, 1).expand(4000, 5, 1)
    centers = random_centers(samples, 2, generator())
    assert (centers[:, 0] != centers[:, 1]).all()
    counts = [int((centers == value).sum()) for value in range(5)]
    assert stats.chisquare(counts).pvalue > 0.01


def test_kmeans_plus_plus_weighs_by_the_squared_distance():
    samples = torch.tensor([0.0, 1.0, 3.0]).reshape(1, 3, 1).expand(40_000, 3, 1)
    first, second = kmeans_plus_plus_centers(samples, 2, generator()).squeeze(-1).unbind(1)
    assert stats.chisquare([int((first == value).sum()) for value in (0, 1, 3)]).pvalue > 0.01
    after_zero = second[first == 0]
    assert (after_zero != 0).all()
    assert stats.binomtest(int((after_zero == 3).sum()), len(after_zero), 0.9).pvalue > 0.01


def test_kmeans_plus_plus_weighs_by_the_nearest_of_the_centers_so_far():
    # After 0 and 10 are taken, 9 and 5 have the squared distances 1 and 25.
    samples = torch.tensor([0.0, 10.0, 9.0, 5.0]).reshape(1, 4, 1).expand(20_000, 4, 1)
    centers = kmeans_plus_plus_centers(samples, 3, generator()).squeeze(-1)
    third = centers[(centers[:, 0] == 0) & (centers[:, 1] == 10), 2]
    assert stats.binomtest(int((third == 5).sum()), len(third), 25 / 26).pvalue > 0.01


@pytest.mark.parametrize("start", [random_centers, kmeans_plus_plus_centers])
def test_equal_samples_are_all_that_a_start_can_choose(start):
    samples = torch.full((3, 6, 2), 0.25)
    assert (start(samples, 4, generator()) == 0.25).all()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("families", ("student",), "`families` should contain only normal, cauchy"),
        ("families", (), "`families` should list at least one choice"),
        ("scales", (0.1, -1.0), "`scales` should be positive"),
        ("starts", ("kmeans++",), r"`starts` should contain only random, k-means\+\+, got 'kmeans\+\+'"),
        ("n_samples", 0, "`n_samples` should be at least 1"),
    ],
)
def test_bad_fields_are_named(field, value, message):
    with pytest.raises(ValueError, match=message):
        TaskDistribution(**{field: value})


def test_more_clusters_than_samples_are_refused():
    with pytest.raises(ValueError, match="`n_samples` should be at least n_clusters=6, got 5"):
        TaskSampler(TaskDistribution(n_samples=5), 2, 6)


@pytest.mark.gpu
def test_tasks_are_drawn_on_the_generators_device():
    samples, centers = TaskSampler(EVERYTHING, 3, 5).draw(4, torch.Generator("cuda").manual_seed(0))
    assert samples.device.type == centers.device.type == "cuda"


def test_quantile_scaling_puts_the_middle_nine_tenths_into_the_cube_and_clipping_the_rest_onto_its_border():
    samples = torch.arange(21.0)[None, :, None] ** 3  # 5 % and 95 % are the second and the last but one
    sampler = TaskSampler(TaskDistribution(scalings=("quantile", "clipped"), n_samples=21), 1, 2)
    quantile, clipped = (sampler._scale(samples, torch.tensor([index])).flatten() for index in (2, 3))
    assert quantile[[1, 19]].tolist() == [0, 1]
    assert quantile[0] < 0
    assert quantile[20] == pytest.approx((20**3 - 1) / (19**3 - 1))
    assert torch.equal(clipped, quantile.clamp(0, 1))
