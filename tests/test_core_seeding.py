"""Greedy k-means++, plain and compiled, against distances in float64 by NumPy."""

import itertools

import numpy as np
import pytest
import torch

from sktransclust._engine import data_frame
from sktransclust.core import compiled, compiled_seeding
from sktransclust.core.compiled import CompiledCore, instruction_sets
from sktransclust.core.dense_samples import DenseSamples
from sktransclust.core.streamed import StreamedCore

CPU = torch.device("cpu")
LAYOUTS = {
    "C": lambda X: X,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
}


@pytest.fixture(
    params=["plain", *itertools.product(instruction_sets(), ["", "cells"])],
    ids=lambda name: "-".join(name) if isinstance(name, tuple) else name,
)
def begin(request, monkeypatch):
    """A function that begins a seeding of samples, with a plain core or one of each instruction set."""

    def seeding(X, weights, first, n_trials=1):
        frame = data_frame(X)
        samples = DenseSamples(X, frame, frame, CPU)
        if request.param == "plain":
            return StreamedCore(samples).seeding(weights, first, n_trials)
        instruction_set, cells = request.param
        core = CompiledCore(samples, None, instruction_set)
        if cells:
            for name in "_WORTH_BOUNDS", "_WORTH_CELLS", "_CENTERS_WORTH_CELLS":
                monkeypatch.setattr(compiled, name, 0)
            core.moments()
        return core.seeding(weights, first, n_trials)

    return seeding


class Expected:
    """The same with all distances at hand."""

    def __init__(self, X, weights, first):
        self.X = X.astype("f8")
        self.weights = np.ones(len(X)) if weights is None else weights
        self.nearest = self.squared(first)

    def squared(self, sample):
        return np.square(self.X - self.X[sample]).sum(1)

    def draw(self, shares):
        mass = np.cumsum(self.weights * self.nearest)
        return np.searchsorted(mass, shares * mass[-1])

    def gains(self, candidates):
        self.found = {c: np.minimum(self.nearest, self.squared(c)) for c in candidates}
        return np.array([(self.nearest - self.found[c]) @ self.weights for c in candidates])

    def add(self, candidate):
        self.nearest = self.found[candidate]

    def extend(self, shares):
        """Add a center for each row of numbers; return them and their gains."""
        centers, best = [], []
        for row in shares:
            candidates = self.draw(row)
            gains = self.gains(candidates)
            best.append(gains.max())
            centers.append(candidates[np.argmax(gains)])
            self.add(centers[-1])
        return centers, best

    @property
    def is_done(self):
        return not self.weights @ self.nearest > 1e-20 * np.square(self.X).max()


def assert_same_centers(begin, X, weights, n_centers=6, n_trials=4, rtol=1e-9):
    rng = np.random.default_rng(len(X))
    first = int(rng.integers(len(X)))
    seeding, expected = begin(X, weights, first), Expected(X, weights, first)
    for shares in rng.random((n_centers, n_trials)):
        if expected.is_done:
            break
        center, gain = (found[0] for found in seeding.extend(shares[None]))
        candidates = expected.draw(shares)
        gains = expected.gains(candidates)
        # Of two samples that are closest to each other, one may gain exactly what the other gains.
        np.testing.assert_allclose(gains[candidates == center], gains.max(), rtol=1e-13)
        np.testing.assert_allclose(gain, gains.max(), rtol=rtol)
        expected.add(center)


def some(n, d, dtype):
    return np.random.default_rng([n, d]).standard_normal((n, d)).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("d", [1, 2, 3, 5, 7, 17, 33])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 513, 1000])
def test_odd_sizes_have_the_centers_and_gains_of_all_distances(begin, n, d, dtype):
    X = some(n, d, dtype)
    weights = np.random.default_rng(d).integers(0, 3, n) + 1.0 * (n == 1)
    for n_trials, w in ((1, None), (2, weights), (5, None), (7, weights), (16, weights)):
        assert_same_centers(begin, X, w, n_centers=3, n_trials=n_trials)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_has_the_centers_and_gains_of_all_distances(begin, layout, dtype):
    X = LAYOUTS[layout](np.round(some(700, 6, dtype) * 50 + 1000))  # whole numbers: exact everywhere
    assert_same_centers(begin, X, np.arange(700) % 3 / 2)


@pytest.mark.parametrize(("dtype", "factor"), [("f4", 1e20), ("f4", 1e-25), ("f8", 1e200), ("f8", 1e-200)])
def test_large_and_tiny_data_have_the_centers_of_data_near_1(begin, dtype, factor):
    X, shares = some(600, 5, "f4").astype("f8"), np.random.default_rng(0).random((5, 4))
    power = np.ldexp(1.0, np.frexp(factor)[1])
    centers, gains = begin((X * power).astype(dtype), None, 3).extend(shares)
    expected = Expected(X, None, 3)
    expected_centers, expected_gains = expected.extend(shares)
    np.testing.assert_array_equal(centers, expected_centers)
    np.testing.assert_allclose(gains / gains[0], np.divide(expected_gains, expected_gains[0]))


@pytest.mark.parametrize("factor", [1e-300, 1e-40, 1e38, 1e290])
def test_large_and_tiny_weights_have_the_centers_of_weights_near_1(begin, factor):
    X, weights = some(900, 5, "f4"), np.random.default_rng(1).random(900) ** 40
    shares = np.random.default_rng(0).random((8, 4))
    power = np.ldexp(1.0, np.frexp(factor)[1])
    centers, gains = begin(X, weights, 3).extend(shares)
    found = begin(X, weights * power, 3).extend(shares)
    np.testing.assert_array_equal(found[0], centers)
    np.testing.assert_allclose(found[1] / power, gains, rtol=1e-12)


def test_one_heavy_sample_leaves_the_gains_of_the_others_exact(begin):
    # In float32, all weights but one vanish beside it.
    X, weights = some(700, 3, "f4"), np.full(700, 1e-60)
    weights[123] = 1.0
    shares = np.array([[0.3, 0.6, 0.9], [0.1, 0.5, 0.7], [0.2, 0.4, 0.8]])
    seeding, expected = begin(X, weights, 123), Expected(X, weights, 123)
    centers, gains = seeding.extend(shares)
    expected_centers, expected_gains = expected.extend(shares)
    np.testing.assert_array_equal(centers, expected_centers)
    np.testing.assert_allclose(gains, expected_gains)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_of_candidates_whose_gains_are_close_the_best_one_is_taken(begin, dtype):
    # Around each of four places, samples differ by less than scores tell apart.
    rng = np.random.default_rng(0)
    step = 2.0**-10 if dtype == "f4" else 2.0**-28
    X = (rng.choice([-1, 1], (600, 2)) * 8 + rng.integers(-4, 5, (600, 2)) * step).astype(dtype)
    seeding, expected = begin(X, None, 0), Expected(X, None, 0)
    spread = []
    for shares in rng.random((30, 12)):
        center, gain = (found[0] for found in seeding.extend(shares[None]))
        candidates = expected.draw(shares)
        gains = expected.gains(candidates)
        np.testing.assert_allclose([gain, *gains[candidates == center]], gains.max(), rtol=1e-13)
        expected.add(center)
        spread.append(np.ptp(gains) / gain)
    assert min(spread) < 1e-6


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_tight_groups_far_apart_gain_by_exact_distances(begin, dtype):
    # Scores, whose rounding is that of the squared distance of the groups, rule nothing out within a group.
    rng = np.random.default_rng(0)
    X = (rng.integers(0, 3, (900, 4)) + 4096.0 * rng.choice([-1, 1], (900, 1))).astype(dtype)
    assert_same_centers(begin, X, None, n_centers=12, rtol=1e-14)


def test_few_distinct_samples_leave_no_mass_and_draw_the_first_one(begin):
    X = np.repeat(some(4, 3, "f4"), 200, axis=0)
    shares = np.array([[0.5]] * 3 + [[0.0], [0.5], [0.99]])
    centers, gains = begin(X, None, 0).extend(shares)
    assert set(centers[:3] // 200) == {1, 2, 3}
    np.testing.assert_array_equal(centers[3:], 0)
    np.testing.assert_array_equal(gains[3:], 0.0)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_first_samples_that_are_unlike_the_others_mislead_nobody(begin, dtype):
    X = some(5000, 3, dtype)
    X = X[np.argsort(X[:, 0])]
    assert_same_centers(begin, X, None, n_centers=12)
    assert_same_centers(begin, X, np.linspace(0, 1, 5000), n_centers=12)


def test_equal_candidates_leave_the_choice_to_the_first(begin):
    X = np.array([[0.0], [1.0], [-1.0], [1.0], [-1.0]], "f4")
    # Each of the last four samples has a quarter of the mass, and all gain 2.
    centers, gains = begin(X, None, 0).extend(np.array([[0.6, 0.1, 0.9, 0.3]]))
    np.testing.assert_array_equal(centers, 3)
    np.testing.assert_array_equal(gains, 2.0)


@pytest.mark.parametrize("share", [2.0**-60, 0.5, 1 - 2.0**-53])
def test_draws_find_the_one_block_with_mass(begin, share):
    X = np.zeros((5000, 2), "f4")
    X[3210] = 1.0
    assert begin(X, None, 0).extend(np.array([[share]]))[0] == 3210
    weights = np.zeros(5000)
    weights[[3210, 4000]] = 0.3
    assert begin(X, weights, 0).extend(np.array([[share]]))[0] == 3210


def test_a_seeding_is_the_same_in_one_part_and_in_several(begin):
    X, shares = some(3000, 4, "f4"), np.random.default_rng(0).random((9, 3))
    whole = begin(X, None, 5).extend(shares)
    seeding = begin(X, None, 5)
    parts = [seeding.extend(shares[rows]) for rows in (slice(0, 1), slice(1, 7), slice(7, 9))]
    for one, others in zip(whole, zip(*parts, strict=True), strict=True):
        np.testing.assert_array_equal(one, np.concatenate(others))


def test_calls_of_one_center_each_find_the_same(begin, monkeypatch):
    X, shares = some(3000, 4, "f4"), np.random.default_rng(0).random((9, 3))
    whole = begin(X, None, 5).extend(shares)
    monkeypatch.setattr(compiled_seeding, "_CALL_WORK", 0)
    for one, other in zip(whole, begin(X, None, 5).extend(shares), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_bits_do_not_depend_on_the_number_of_threads(begin, dtype, monkeypatch):
    monkeypatch.setattr(compiled_seeding, "_CHUNK_WORK", 1)
    X, weights = some(6000, 5, dtype), np.random.default_rng(0).random(6000)
    shares, before, found = np.random.default_rng(1).random((7, 5)), torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(begin(X, weights, 17).extend(shares))
    finally:
        torch.set_num_threads(before)
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three)


def test_more_candidates_than_a_mark_has_bits_choose_as_well(begin):
    X = np.random.default_rng(3).standard_normal((300, 2))
    shares = np.random.default_rng(4).random((5, 17))
    chosen = begin(X, None, 7, n_trials=17).extend(shares)[0]
    np.testing.assert_array_equal(chosen, Expected(X, None, 7).extend(shares)[0])
