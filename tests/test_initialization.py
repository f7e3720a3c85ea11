"""Initial centers: the samples that scikit-learn draws, from the same random numbers."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.cluster import kmeans_plusplus as reference

from sktransclust._engine import fit_core
from sktransclust.initialization import initializer, kmeans_plusplus, random_samples


def core_of(X, backend="auto"):
    return fit_core(X, None, torch.device("cpu"), backend, "binary", 2)


@pytest.mark.parametrize(
    ("kind", "backend"),
    [(np.asarray, "auto"), (np.asarray, "streamed"), (sp.csr_array, "streamed")],
    ids=["dense", "streamed", "csr"],
)
@pytest.mark.parametrize("n_clusters", [1, 2, 9, 40])
def test_kmeans_plusplus_chooses_what_scikit_learn_chooses(kind, backend, n_clusters):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, weights = rng.standard_normal((200, 3)), rng.random(200) if seed else None
        state, same_state = np.random.RandomState(seed), np.random.RandomState(seed)
        indices = kmeans_plusplus(core_of(kind(X), backend), n_clusters, weights, state)
        expected = reference(X, n_clusters, sample_weight=weights, random_state=same_state)[1]
        np.testing.assert_array_equal(indices, expected)
        assert state.uniform() == same_state.uniform()


def test_kmeans_plusplus_far_from_the_origin_chooses_as_at_the_origin():
    X = np.random.default_rng(0).integers(-50, 50, (300, 2)).astype(float)
    near = kmeans_plusplus(core_of(X), 20, np.ones(300), np.random.RandomState(0))
    far = kmeans_plusplus(core_of(X + 2.0**40), 20, np.ones(300), np.random.RandomState(0))
    np.testing.assert_array_equal(near, far)


def test_kmeans_plusplus_finds_each_of_a_few_distinct_points():
    X = np.repeat(np.eye(6), 30, axis=0) + 1e6
    indices = kmeans_plusplus(core_of(X), 6, np.ones(180), np.random.RandomState(3))
    assert set(indices // 30) == set(range(6))


@pytest.mark.parametrize("n_samples", [1, 2, 3, 7, 1000])
def test_the_first_sample_is_that_of_choice_also_where_rounding_decides(n_samples):
    class Fixed(np.random.RandomState):
        """Always gives the same number."""

        share = 0.0

        def random_sample(self, size=None):
            return self.share if size is None else np.full(size, self.share)

    state = Fixed(0)
    multiples = np.arange(1, n_samples + 1) / n_samples
    near = [np.nextafter(multiples, 0), multiples, np.nextafter(multiples, 1)]
    core = core_of(np.arange(float(n_samples))[:, None])
    for share in np.concatenate([[0.0, 0.3], *near]):
        if share < 1.0:
            state.share = share
            cumulated = np.full(n_samples, 1 / n_samples).cumsum()
            expected = np.searchsorted(cumulated / cumulated[-1], share, side="right")
            assert kmeans_plusplus(core, 1, None, state) == [expected]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n_features", [1, 3, 17])
def test_samples_closer_than_so_far_are_those_of_float64_differences(dtype, n_features):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((333, n_features)).astype(dtype) + 100, rng.random(333)
    core = core_of(X, "streamed")
    points = core.samples.rows(np.array([5, 70, 5])).numpy()
    squared = ((X.astype("f8")[:, None] - X[[5, 70, 5]].astype("f8")) ** 2).sum(2)
    nearest = squared[:, 1] * rng.uniform(0.5, 1.5, 333)
    found = core.closer(points, nearest, weights)
    for j in range(3):
        closer = np.flatnonzero(squared[:, j] < nearest)
        np.testing.assert_array_equal(found.rows[j], closer)
        np.testing.assert_allclose(found.squared[j], squared[closer, j], rtol=1e-9, atol=1e-12)
        gain = weights[closer] @ (nearest[closer] - squared[closer, j])
        np.testing.assert_allclose(found.gains[j], gain, rtol=1e-9)


@pytest.mark.parametrize("choose", [kmeans_plusplus, random_samples])
def test_samples_without_weight_are_never_chosen(choose):
    X, weights = np.random.default_rng(1).standard_normal((50, 2)), np.tile([0.0, 2.0], 25)
    for seed in range(20):
        assert (choose(core_of(X), 10, weights, np.random.RandomState(seed)) % 2 == 1).all()


def test_too_few_weighted_samples_are_counted_in_the_error():
    with pytest.raises(ValueError, match=r"at least n_clusters=3 non-zero entries.*got 2"):
        random_samples(core_of(np.eye(5)), 3, np.array([1.0, 0, 0, 1.0, 0]), np.random.RandomState(0))


def test_a_callable_gets_centered_dense_data_and_answers_in_their_coordinates():
    X = np.random.default_rng(2).standard_normal((40, 3)) + 100
    seen = []

    def init(X, n_clusters, random_state):
        seen.append(X.copy())
        X[:] = 7.0  # its own copy
        return seen[0][:n_clusters]

    core, before = core_of(X), X.copy()
    centers = initializer(init, core, X, 4, None, np.random.RandomState(0))()
    np.testing.assert_allclose(seen[0].mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(core.samples.reference_frame.to_data(centers), X[:4], rtol=1e-14)
    np.testing.assert_array_equal(X, before)


def test_given_centers_are_not_an_alias():
    X, given = np.random.default_rng(3).standard_normal((20, 2)), np.zeros((2, 2))
    draw = initializer(given, core_of(X), X, 2, None, np.random.RandomState(0))
    draw()[:] = 5.0
    np.testing.assert_array_equal(given, 0)
