"""Iterations by the compiled kernels: bounds, changing sums and threads alter no label and no bit."""

import ctypes
import dataclasses
import functools

import numpy as np
import pytest
import torch

from sktransclust._lloyd import lloyd
from sktransclust.core import compiled
from sktransclust.core.library import Kernels, Problem

from . import oracle
from .kernels import BUILT, both, local, some


@pytest.fixture(autouse=True)
def bounds_for_small_problems_too(monkeypatch):
    monkeypatch.setattr(compiled, "_WORTH_BOUNDS", 0)


@pytest.fixture(params=list(BUILT))
def instruction_set(request):
    return request.param


def lattice_of(rng, dtype):
    """Integer samples, often half way between integer centers."""
    return rng.integers(-3, 4, (600, 3)).astype(dtype), 2.0 * rng.integers(-2, 3, (20, 3))


def groups_of(rng, dtype):
    """Well separated groups, a center near each."""
    places = 20 * rng.standard_normal((20, 3))
    return (places[rng.integers(0, 20, 600)] + rng.standard_normal((600, 3))).astype(dtype), places


def bisector_of(rng, dtype):
    """Samples within rounding of the plane half way between two centers."""
    near = np.column_stack([np.ldexp(rng.standard_normal(600), -24), rng.standard_normal((600, 2))])
    return near.astype(dtype), np.array([[-1.0, 0.2, 0.1], [1.0, 0.2, 0.1], [9.0, 9.0, 9.0]])


def crowd_of(rng, dtype):
    """Many centers in a plane, few near any; many samples half way between two; some centers repeat."""
    centers = np.concatenate([rng.integers(-12, 13, (60, 2)), 12 * rng.standard_normal((45, 2))])
    X = np.concatenate([rng.integers(-25, 26, (6000, 2)) / 2.0, 12 * rng.standard_normal((4500, 2))])
    return rng.permutation(X).astype(dtype), rng.permutation(centers)


def label_all(core, monkeypatch):
    """Let a core compute every sample's scores in every iteration, whatever its bounds say."""
    kernels, kind = Kernels.from_buffer_copy(core._set.kernels), core._kind
    assign = core._set.kernels.assign[kind]

    def without_bounds(problem, *rest):
        copied = Problem.from_buffer_copy(problem.contents)
        copied.bounded = copied.n_near = 0
        return assign(copied, *rest)

    kernels.assign[kind] = type(assign)(without_bounds)
    begin = functools.partial(core._set.begin_iteration.func, ctypes.pointer(kernels))
    monkeypatch.setattr(core, "_set", dataclasses.replace(core._set, kernels=kernels, begin_iteration=begin))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("data", [lattice_of, groups_of, bisector_of, crowd_of])
@pytest.mark.parametrize("moves", ["means", "rounding", "jumps", "repeats"])
def test_bounds_change_no_label_of_any_iteration_and_no_bit_of_sums_in_the_same_order(
    instruction_set, data, moves, weighted, dtype, monkeypatch
):
    rng = np.random.default_rng(0)
    X, centers = data(rng, dtype)
    weights = rng.random(len(X)) if weighted else None
    (_, bounded), (plain, free) = both(X, instruction_set, weights), both(X, instruction_set, weights)
    for core in (bounded, free, plain):
        core.moments()
    label_all(free, monkeypatch)
    centers = local(bounded, centers)
    labels, other_labels = torch.full((2, len(X)), -1, dtype=torch.int32)
    for iteration in range(12):
        step, expected = bounded.iterate(centers, labels), free.iterate(centers, other_labels)
        np.testing.assert_array_equal(step.labels, expected.labels)
        if data is crowd_of:  # samples of a label are taken together, so that sums are added in another order
            np.testing.assert_allclose(step.means, expected.means, rtol=0, atol=1e-12 * np.abs(X).max())
            np.testing.assert_allclose(step.weights, expected.weights, rtol=1e-12, atol=0)
        else:
            np.testing.assert_array_equal(step.means, expected.means)
            np.testing.assert_array_equal(step.weights, expected.weights)
        assert step.n_changed == expected.n_changed
        added_anew = plain.iterate(centers, labels)
        np.testing.assert_array_equal(step.labels, added_anew.labels)
        np.testing.assert_allclose(step.means, added_anew.means, rtol=0, atol=1e-12 * np.abs(X).max())
        other_labels = expected.labels
        labels = step.labels
        centers = step.means if moves == "means" else centers.copy()
        if moves == "rounding":
            centers *= 1 + np.finfo(dtype).eps * rng.standard_normal(centers.shape)
        elif moves == "jumps":
            centers[rng.integers(len(centers))] = X[rng.integers(len(X))]
        elif moves == "repeats" and iteration % 3 < 2:
            centers[-1] = centers[0] + iteration % 3


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("k", [2, 20, 100])
@pytest.mark.parametrize("d", [1, 2, 3, 6, 17])
def test_every_iteration_of_a_bounded_run_has_the_streamed_labels(instruction_set, d, k, dtype):
    n = 10_000 if k == 100 else 4000  # enough for the centers near each one to be worth listing
    X = np.random.default_rng([d, k]).random((n, d)).astype(dtype)
    plain, fast = both(X, instruction_set)
    fast.moments()
    centers = local(plain, X[:k])
    before, labels = torch.full((2, n), -1, dtype=torch.int32)
    for _ in range(15):
        expected, step = plain.iterate(centers, before), fast.iterate(centers, labels)
        np.testing.assert_array_equal(step.labels, expected.labels)
        assert step.n_changed == expected.n_changed
        centers, before, labels = step.means, expected.labels, step.labels


def test_bounds_spare_most_samples_of_separated_groups(instruction_set):
    X, centers = groups_of(np.random.default_rng(1), "f4")
    _, core = both(X, instruction_set)
    core.moments()
    labels = torch.zeros(600, dtype=torch.int32)
    centers = local(core, centers)
    for _ in range(6):
        step = core.iterate(centers, labels)
        centers, labels = step.means, step.labels
    # The bounds come from the samples as they were: a sample that is looked at again is elsewhere now.
    core.samples.values.copy_(core.samples.values.flip(0))
    assert (oracle.assign(core.samples.values.numpy().astype("f8"), centers) != labels.numpy()).sum() > 500
    assert (core.iterate(centers, labels).labels == labels).sum() > 500


@pytest.mark.parametrize("weights", [None, np.tile([0.1, 0.7, 1.3], 20)])
def test_an_outlier_that_leaves_takes_its_rounding_along(instruction_set, weights):
    # 1e10 more in a sum of numbers near 1 costs ten digits, which have to come back with the next labels.
    X = np.concatenate([np.random.default_rng(0).random(59), [1e10]])[:, None]
    plain, core = both(X, instruction_set, weights)
    core.moments()
    labels = torch.full((60,), -1, dtype=torch.int32)
    for centers in ([[0.0], [-5.0]], [[0.0], [1e10]], [[0.3], [1e10]]):
        step = core.iterate(local(core, centers), labels)
        expected = plain.iterate(local(core, centers), labels)
        np.testing.assert_allclose(step.means, expected.means, rtol=1e-14)
        np.testing.assert_allclose(step.weights, expected.weights, rtol=1e-15)
        labels = step.labels


def test_a_cluster_that_loses_all_samples_weighs_exactly_nothing(instruction_set):
    X, weights = np.arange(30.0)[:, None], np.tile([0.1, 0.2, 0.3], 10)
    _, core = both(X, instruction_set, weights)
    core.moments()
    labels = torch.full((30,), -1, dtype=torch.int32)
    for centers in ([[5.0], [25.0]], [[5.0], [90.0]]):
        step = core.iterate(local(core, centers), labels)
        labels = step.labels
    assert step.weights[1] == 0.0
    np.testing.assert_allclose(step.weights[0], weights.sum(), rtol=1e-15)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("n", "d", "k"), [(5000, 7, 10), (12_000, 2, 100)])
def test_bits_do_not_depend_on_the_number_of_threads(n, d, k, dtype, monkeypatch):
    monkeypatch.setattr(compiled, "_CHUNK_WORK", 1)
    X = np.round(some(n, d, dtype), 1)  # some ties, decided by the plain rule
    _, fast = both(X, weights=np.random.default_rng(0).random(n))
    centers = local(fast, X[:k])
    before = torch.get_num_threads()
    steps = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            fast._iterations = None
            fast.moments()
            labels = torch.zeros(n, dtype=torch.int32)
            first = fast.iterate(centers, labels)
            steps.append(fast.iterate(first.means, first.labels))
    finally:
        torch.set_num_threads(before)
    for step in steps[1:]:
        np.testing.assert_array_equal(step.labels, steps[0].labels)
        np.testing.assert_array_equal(step.means, steps[0].means)
        np.testing.assert_array_equal(step.weights, steps[0].weights)


def test_many_iterations_of_a_small_problem_are_one_step(instruction_set, monkeypatch):
    X = some(700, 3, "f8")
    _, core = both(X, instruction_set)
    iterate, steps = core.iterate, []
    monkeypatch.setattr(core, "iterate", lambda *arguments: steps.append(iterate(*arguments)) or steps[-1])
    outcome = lloyd(core, core.moments(), local(core, X[:8]), max_iter=100, tol=0.0)
    (step,) = steps
    assert len(step.passed) == outcome.n_iter - 1 > 5
