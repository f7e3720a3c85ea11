"""The passes of k-means++, plain and compiled, against distances in float64 by NumPy."""

import numpy as np
import pytest
import torch

from sktransclust._engine import data_frame
from sktransclust.core import compiled_seeding
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


@pytest.fixture(params=["plain", *instruction_sets()])
def begin(request):
    """A function that begins a seeding of samples, with a plain core or one of each instruction set."""

    def seeding(X, weights, first):
        frame = data_frame(X)
        samples = DenseSamples(X, frame, frame, CPU)
        plain = request.param == "plain"
        core = StreamedCore(samples) if plain else CompiledCore(samples, None, request.param)
        return core.seeding(weights, first)

    return seeding


class Expected:
    """The same passes with all distances at hand."""

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
        self.found = [np.minimum(self.nearest, self.squared(c)) for c in candidates]
        return (self.nearest - self.found) @ self.weights

    def add(self, candidate):
        self.nearest = self.found[candidate]


def assert_same_passes(begin, X, weights, n_centers=6, n_trials=4, rtol=1e-9):
    rng = np.random.default_rng(len(X))
    first = int(rng.integers(len(X)))
    seeding, expected = begin(X, weights, first), Expected(X, weights, first)
    for _ in range(n_centers):
        if not expected.weights @ expected.nearest > 1e-20 * np.square(X.astype("f8")).max():
            break
        shares = rng.random(n_trials)
        candidates = expected.draw(shares)
        np.testing.assert_array_equal(seeding.draw(shares), candidates)
        gains = expected.gains(candidates)
        np.testing.assert_allclose(seeding.gains(candidates), gains, rtol=rtol)
        best = int(np.argmax(gains))
        seeding.add(best)
        expected.add(best)


def some(n, d, dtype):
    return np.random.default_rng([n, d]).standard_normal((n, d)).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("d", [1, 2, 3, 5, 7, 17, 33])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 1000])
def test_odd_sizes_have_the_draws_and_gains_of_all_distances(begin, n, d, dtype):
    X = some(n, d, dtype)
    weights = np.random.default_rng(d).integers(0, 3, n) + 1.0 * (n == 1)
    for n_trials, w in ((2, None), (7, weights), (13, weights)):
        assert_same_passes(begin, X, w, n_centers=3, n_trials=n_trials)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_has_the_draws_and_gains_of_all_distances(begin, layout, dtype):
    X = LAYOUTS[layout](np.round(some(700, 6, dtype) * 50 + 1000))  # whole numbers: exact everywhere
    assert_same_passes(begin, X, np.arange(700) % 3 / 2)


@pytest.mark.parametrize(("dtype", "factor"), [("f4", 1e20), ("f4", 1e-25), ("f8", 1e200), ("f8", 1e-200)])
def test_large_and_tiny_data_have_the_draws_of_data_near_1(begin, dtype, factor):
    X = some(600, 5, "f4").astype("f8")
    power = np.ldexp(1.0, np.frexp(factor)[1])
    seeding, expected = begin((X * power).astype(dtype), None, 3), Expected(X, None, 3)
    for _ in range(5):
        shares = np.linspace(0.05, 0.95, 4)
        candidates = expected.draw(shares)
        np.testing.assert_array_equal(seeding.draw(shares), candidates)
        gains = expected.gains(candidates)
        np.testing.assert_allclose(seeding.gains(candidates) / gains, seeding.gains(candidates)[0] / gains[0])
        seeding.add(int(np.argmax(gains)))
        expected.add(int(np.argmax(gains)))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_tight_groups_far_apart_gain_by_exact_distances(begin, dtype):
    # Scores, whose rounding is that of the squared distance of the groups, rule nothing out within a group.
    rng = np.random.default_rng(0)
    X = (rng.integers(0, 3, (900, 4)) + 4096.0 * rng.choice([-1, 1], (900, 1))).astype(dtype)
    assert_same_passes(begin, X, None, n_centers=12, rtol=1e-14)


def test_few_distinct_samples_leave_no_mass_and_draw_the_first_one(begin):
    X = np.repeat(some(4, 3, "f4"), 200, axis=0)
    seeding = begin(X, None, 0)
    for sample in (200, 400, 600):
        seeding.gains(np.array([sample]))
        seeding.add(0)
    np.testing.assert_array_equal(seeding.draw(np.array([0.0, 0.5, 0.99])), 0)
    np.testing.assert_array_equal(seeding.gains(np.array([0, 799])), 0.0)


def test_draws_find_the_one_block_with_mass(begin):
    X = np.zeros((5000, 2), "f4")
    X[3210] = 1.0
    shares = np.array([2.0**-60, 0.5, 1 - 2.0**-53])
    np.testing.assert_array_equal(begin(X, None, 0).draw(shares), 3210)
    weights = np.zeros(5000)
    weights[[3210, 4000]] = 0.3
    np.testing.assert_array_equal(begin(X, weights, 0).draw(shares), 3210)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_bits_do_not_depend_on_the_number_of_threads(begin, dtype, monkeypatch):
    monkeypatch.setattr(compiled_seeding, "_CHUNK_WORK", 1)
    X, weights = some(6000, 5, dtype), np.random.default_rng(0).random(6000)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            seeding, passes = begin(X, weights, 17), []
            for _ in range(5):
                candidates = seeding.draw(np.linspace(0.1, 0.9, 5))
                gains = seeding.gains(candidates)
                seeding.add(int(np.argmax(gains)))
                passes.append((candidates, gains))
            found.append(passes)
    finally:
        torch.set_num_threads(before)
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one[0], three[0])
        np.testing.assert_array_equal(one[1], three[1])
