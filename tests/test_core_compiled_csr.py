"""The compiled kernels on sparse samples: the labels of the streamed core, their plain twin."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from sktransclust import TransformerKMeans
from sktransclust._engine import data_frame, query_core
from sktransclust.core import compiled
from sktransclust.core.compiled_csr import CompiledCSRCore
from sktransclust.core.csr_samples import CSRSamples
from sktransclust.core.streamed import StreamedCore

from . import oracle
from .kernels import BUILT, CPU, local


@pytest.fixture(params=list(BUILT))
def instruction_set(request):
    return request.param


def some(n, d, dtype="f8", seed=0):
    """Rows of which about a third of the entries are stored, some rows none."""
    rng = np.random.default_rng([n, d, seed])
    return sp.csr_array((rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)).astype(dtype))


def both(X, instruction_set=None, weights=None):
    """Return the streamed and the compiled core of the same data."""
    frame = data_frame(X)
    weights = None if weights is None else torch.from_numpy(weights)
    samples = [CSRSamples(X.data, X.indices, X.indptr, X.shape[1], frame, frame, CPU) for _ in range(2)]
    return StreamedCore(samples[0], weights), CompiledCSRCore(samples[1], weights, instruction_set)


def assert_same_iterations(plain, fast, centers, n_iter=3):
    """Labels, weights and changes are equal, means up to the order of additions."""
    labels = torch.zeros(plain.samples.n_samples, dtype=torch.int32)
    scale = np.abs(plain.samples.rows(np.arange(plain.samples.n_samples)).numpy()).max()
    for _ in range(n_iter):
        expected, step = plain.iterate(centers, labels), fast.iterate(centers, labels.clone())
        np.testing.assert_array_equal(step.labels, expected.labels)
        np.testing.assert_array_equal(fast.assign(centers), expected.labels)
        np.testing.assert_allclose(step.weights, expected.weights, rtol=1e-12, atol=0)
        np.testing.assert_allclose(step.means, expected.means, rtol=0, atol=1e-12 * scale)
        assert step.n_changed == expected.n_changed
        centers, labels = expected.means, expected.labels


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("d", [1, 2, 3, 7, 17, 33, 130])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 300])
def test_odd_sizes_have_the_streamed_labels_and_sums(instruction_set, n, d, dtype):
    weights = np.random.default_rng(n).integers(0, 4, n) / 2.0
    for k in (1, 5, 7, 8, 17, 49, 300):
        plain, fast = both(some(n, d, dtype), instruction_set, weights if k % 2 else None)
        assert_same_iterations(plain, fast, local(plain, some(k, d, seed=1).toarray()), n_iter=2)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_that_change_follow_the_streamed_run_to_its_end(instruction_set, dtype):
    X = some(700, 40, dtype)
    plain, fast = both(X, instruction_set, np.random.default_rng(0).random(700))
    plain.moments(), fast.moments()
    expected = step = None
    centers, labels = local(plain, X[:9].toarray()), torch.full((700,), -1, dtype=torch.int32)
    kept = labels.clone()
    for _ in range(40):
        expected, step = plain.iterate(centers, labels), fast.iterate(centers, kept)
        np.testing.assert_array_equal(step.labels, expected.labels)
        np.testing.assert_allclose(step.means, expected.means, rtol=0, atol=1e-12)
        centers, labels, kept = expected.means, expected.labels, step.labels
    assert expected.n_changed == step.n_changed == 0


@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_any_type_of_index_and_scale_has_the_oracles_labels(instruction_set, indices, scale):
    X = some(90, 12, "f4")
    X.data *= np.float32(scale)
    X.indices, X.indptr = X.indices.astype(indices), X.indptr.astype(indices)
    centers = X[:7].toarray().astype("f8")
    _, fast = both(X, instruction_set)
    truth = oracle.assign(X.toarray() / scale, centers / scale)
    np.testing.assert_array_equal(fast.assign(local(fast, centers)), truth)


def test_ties_go_to_the_lowest_index_and_repeated_centers_never_win(instruction_set):
    X = sp.csr_array([[0.0, 0.0, 3.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    _, fast = both(X, instruction_set)
    centers = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    np.testing.assert_array_equal(fast.assign(local(fast, centers)), [0, 1, 0, 0])


def test_centers_whose_squares_overflow_can_win(instruction_set):
    X = sp.csr_array(np.float32([[1e12], [-1e12], [9e11], [0.0]]))
    centers = np.array([[-(2.0**64 - 2.0**40)], [2.0**64]])  # the latter is farther from 0 by 1.1e12
    _, fast = both(X, instruction_set)
    np.testing.assert_array_equal(fast.assign(local(fast, centers)), [1, 0, 1, 0])


def test_near_ties_beyond_float32_are_settled(instruction_set):
    X = sp.csr_array(np.tile(np.float32([[1.0, 0.0, 2.0]]), (5, 1)))
    centers = np.array([[0.0, 1.0, 2.0], [0.0, 1.0 - 2.0**-40, 2.0], [9.0, 9.0, 9.0]])
    _, fast = both(X, instruction_set)
    np.testing.assert_array_equal(fast.assign(local(fast, centers)), [1] * 5)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_moments_and_distances_are_those_of_the_dense_rows(instruction_set, dtype):
    X, points = some(60, 25, dtype), some(13, 25, seed=3).toarray()
    weights = np.random.default_rng(1).random(60)
    _, fast = both(X, instruction_set, weights)
    points[4] = X[[7]].toarray()  # a distance of exactly 0, where the inner product would cancel
    rows = X.toarray().astype("f8")
    squared = oracle.squared_distances(rows, points)
    found = fast.pairs(5, 50, local(fast, points))
    scale = fast.samples.reference_frame.squared_to_data(1.0)
    np.testing.assert_allclose(found * scale, squared[5:50], rtol=1e-12, atol=0)
    assert found[2, 4] == squared[7, 4] == 0.0
    labels = torch.arange(60, dtype=torch.int32) % 13
    labels[7] = 4
    each = fast.squared_distances(local(fast, points), labels).numpy()
    np.testing.assert_allclose(each * scale, squared[np.arange(60), labels], rtol=1e-12, atol=0)
    moments = fast.moments()
    squares = np.square(rows).sum(1)
    np.testing.assert_allclose(moments.squares * scale, squares.sum(), rtol=1e-13)
    np.testing.assert_allclose(moments.weighted_squares * scale, squares @ weights, rtol=1e-13)
    np.testing.assert_allclose(fast.samples.norms.double() * scale**0.5, np.sqrt(squares), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_queries_in_other_frames_have_the_oracles_labels(instruction_set, dtype):
    X, centers = some(80, 9, dtype), 1e5 * some(6, 9, seed=2).toarray()
    core, keys = query_core(X, centers, None, CPU, "compiled", "binary")
    core._set = BUILT[instruction_set]
    np.testing.assert_array_equal(core.assign(keys), oracle.assign(X.toarray().astype("f8"), centers))


def test_bits_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(compiled, "_CHUNK_WORK", 1)
    X = some(6000, 30, "f4")
    before, runs = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            _, core = both(X, None, np.random.default_rng(0).random(6000))
            core.moments()
            first = core.iterate(local(core, X[:10].toarray()), torch.zeros(6000, dtype=torch.int32))
            runs.append(core.iterate(first.means, first.labels))
    finally:
        torch.set_num_threads(before)
    for run in runs[1:]:
        np.testing.assert_array_equal(run.labels, runs[0].labels)
        np.testing.assert_array_equal(run.means, runs[0].means)


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_auto_chooses_the_kernels_and_ends_where_the_streamed_run_does(init):
    X = some(400, 50, "f4")
    auto, plain = (
        TransformerKMeans(8, init=init, n_init=2, random_state=0, backend=name).fit(X)
        for name in ("auto", "streamed")
    )
    assert (auto.backend_, plain.backend_) == ("compiled", "streamed")
    np.testing.assert_array_equal(auto.labels_, plain.labels_)
    np.testing.assert_allclose(auto.inertia_, plain.inertia_, rtol=1e-12)
    np.testing.assert_array_equal(auto.predict(X), plain.predict(X))
    assert auto.n_iter_ == plain.n_iter_


def test_copies_of_a_row_beside_a_mean_off_by_rounding_are_settled_by_the_kernel(
    instruction_set, monkeypatch
):
    monkeypatch.setattr(CompiledCSRCore, "_decide", None)  # no sample is left to the plain rule
    row = some(1, 500, seed=5).toarray()
    X = sp.csr_array(np.tile(row, (300, 1)))
    _, fast = both(X, instruction_set)
    centers = np.concatenate([row * (1 + 2.0**-50), row, row + 1.0])
    np.testing.assert_array_equal(fast.assign(local(fast, centers)), [1] * 300)
