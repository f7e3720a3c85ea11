"""The compiled kernels: on every input the labels of the streamed core, which is their plain twin."""

import ctypes
import mmap
import sys

import numpy as np
import pytest
import torch

from sktransclust import TransformerKMeans, _engine
from sktransclust._engine import data_frame, query_core
from sktransclust.core import compiled
from sktransclust.core.compiled import CompiledCore
from sktransclust.core.dense_samples import DenseSamples
from sktransclust.core.nearest import Keys, nearest

from . import oracle
from .kernels import BUILT, CPU, both, local, some

LAYOUTS = {
    "C": lambda X: X,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
}


@pytest.fixture(autouse=True)
def bounds_for_small_problems_too(monkeypatch):
    monkeypatch.setattr(compiled, "_WORTH_BOUNDS", 0)


@pytest.fixture(params=list(BUILT))
def instruction_set(request):
    return request.param


@pytest.fixture
def plain_calls(monkeypatch):
    """Samples that a compiled core hands to the plain rule, one list a call."""
    calls = []
    decide = compiled.nearest

    def recorded(tile, keys):
        calls.append(tile._members.tolist())
        return decide(tile, keys)

    monkeypatch.setattr(compiled, "nearest", recorded)
    return calls


def assert_same_iterations(plain, fast, centers, n_iter=3):
    """Labels, weights and changes are equal, means up to the order of additions."""
    labels = torch.zeros(plain.samples.n_samples, dtype=torch.int32)
    for _ in range(n_iter):
        expected, step = plain.iterate(centers, labels), fast.iterate(centers, labels)
        np.testing.assert_array_equal(step.labels, expected.labels)
        np.testing.assert_array_equal(fast.assign(centers), expected.labels)
        np.testing.assert_allclose(step.weights, expected.weights, rtol=1e-12, atol=0)
        scale = np.abs(plain.samples.rows(np.arange(plain.samples.n_samples)).numpy()).max()
        np.testing.assert_allclose(step.means, expected.means, rtol=0, atol=1e-12 * scale)
        assert step.n_changed == expected.n_changed
        centers, labels = expected.means, expected.labels


def test_a_build_that_is_required_is_there_and_has_the_baseline():
    assert "baseline" in BUILT


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("d", [1, 2, 3, 7, 17, 33, 130])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 1000])
def test_odd_sizes_have_the_streamed_labels_and_sums(instruction_set, n, d, dtype):
    X = some(n, d, dtype)
    weights = np.random.default_rng(n).integers(0, 4, n) / 2.0
    for k in (1, 5, 6, 7, 33, 300):
        plain, fast = both(X if k % 3 else np.asfortranarray(X), instruction_set, weights if k % 2 else None)
        assert_same_iterations(plain, fast, local(plain, some(k, d, "f8", seed=1)), n_iter=2)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_every_layout_has_the_streamed_labels_and_sums(instruction_set, layout, dtype, offset):
    X = LAYOUTS[layout](some(333, 9, dtype) + np.dtype(dtype).type(offset))
    plain, fast = both(X, instruction_set, np.arange(333.0) % 3)
    assert_same_iterations(plain, fast, local(plain, X[:11]))


def before_forbidden_memory(X):
    """Return a copy of X whose last byte is the last one that may be read, in the same order."""
    whole = -(-X.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, whole + mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    assert protect(ctypes.c_void_p(start + whole), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    order = "F" if X.flags.f_contiguous else "C"
    place = np.ndarray(X.shape, X.dtype, memory, whole - X.nbytes, order=order)
    place[...] = X
    return place


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no mprotect")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("d", [1, 2, 3, 5, 6, 17])
def test_nothing_is_read_behind_the_end_of_the_data(instruction_set, d, dtype):
    for n in (1, 3, 16, 18, 64):
        for order in "CF":
            X = before_forbidden_memory(np.asarray(some(n, d, dtype), order=order))
            plain, fast = both(X, instruction_set)
            fast.moments()
            assert_same_iterations(plain, fast, local(plain, some(4, d, "f8", seed=1)), n_iter=2)


@pytest.mark.parametrize(
    ("dtype", "factor", "offset"),
    [
        ("f8", 1.0, 1e9),
        ("f8", 1e200, 0.0),
        ("f8", 1e-200, 0.0),
        ("f4", 1.0, 1e4),
        ("f4", 1e20, 0.0),
        ("f4", 1e-25, 0.0),
    ],
)
def test_far_large_and_tiny_data_have_the_streamed_labels_and_the_oracles(
    instruction_set, dtype, factor, offset
):
    X = (some(400, 5, "f8") * factor + offset).astype(dtype)
    plain, fast = both(X, instruction_set)
    assert_same_iterations(plain, fast, local(plain, X[:8]))
    power = np.ldexp(1.0, -np.frexp(factor)[1])
    points = (X.astype("f8") - offset) * power
    np.testing.assert_array_equal(fast.assign(local(plain, X[:8])), oracle.assign(points, points[:8]))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_ties_on_a_lattice_go_to_the_lowest_index_in_the_kernel(instruction_set, plain_calls, d, dtype):
    rng = np.random.default_rng(d)
    X = rng.integers(-2, 3, (500, d)).astype(dtype)
    centers = 2.0 * rng.integers(-1, 2, (12, d))  # with repetitions; half way between lie samples
    plain, fast = both(X, instruction_set, rng.integers(0, 3, 500) * 1.0)
    step = fast.iterate(centers, torch.zeros(500, dtype=torch.int32))
    np.testing.assert_array_equal(step.labels, oracle.assign(X.astype("f8"), centers))
    squared = np.sort(oracle.squared_distances(X.astype("f8"), np.unique(centers, axis=0)), axis=1)
    assert np.count_nonzero(squared[:, 0] == squared[:, 1]) > 50
    assert plain_calls == []
    assert_same_iterations(plain, fast, centers)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_ties_off_any_lattice_go_to_the_lowest_index_in_the_kernel_too(instruction_set, plain_calls, dtype):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((400, 3)) * (rng.random((400, 1)) < 0.5)).astype(dtype)
    X[:, 0] = 0.0  # as far from -0.3 as from 0.3
    centers = np.array([[0.3, 0.1, 0.2], [-0.3, 0.1, 0.2], [0.3, -5.0, -5.0], [-0.3, -5.0, -5.0]])
    plain, fast = both(X, instruction_set, rng.random(400))
    np.testing.assert_array_equal(fast.assign(centers), oracle.assign(X.astype("f8"), centers))
    assert_same_iterations(plain, fast, centers)
    assert plain_calls == []


@pytest.mark.parametrize("d", [2, 5, 19])
def test_near_ties_of_decimal_numbers_fall_as_rounding_in_the_order_of_the_features_has_it(
    instruction_set, plain_calls, d
):
    # Many of these distances are equal as decimals, but not as sums of squares of their binary neighbors.
    rng = np.random.default_rng(d)
    X, centers = np.round(rng.random((2, 3000, d)), 1) + 0.3 * (np.arange(d) > 6)
    centers = centers[:12]
    _, fast = both(X, instruction_set)
    points, places = local(fast, X), local(fast, centers)
    squares = (points[:, None] - places) ** 2
    in_order, reverse = squares[..., 0].copy(), squares[..., -1].copy()
    for f in range(1, d):
        in_order += squares[..., f]
        reverse += squares[..., -1 - f]
    labels = fast.assign(places)
    np.testing.assert_array_equal(labels, in_order.argmin(1))
    np.testing.assert_array_equal(labels, nearest(fast.samples.tile(0, 3000), Keys.of(places, fast.samples)))
    assert plain_calls == []
    if d == 19:
        assert (in_order.argmin(1) != reverse.argmin(1)).any()  # the order matters


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_moments_and_squared_distances_are_those_of_the_streamed_core(instruction_set, layout, dtype):
    X = LAYOUTS[layout](some(700, 7, dtype) * 50 + 1000)
    plain, fast = both(X, instruction_set, np.arange(700.0) % 3)
    expected, moments = plain.moments(), fast.moments()
    # What is added up lies around 0: it cancels, but not the rounding of sums on the way.
    np.testing.assert_allclose(moments.sums, expected.sums, rtol=0, atol=1e-15 * 50 * 700)
    np.testing.assert_allclose(moments.squares, expected.squares, rtol=1e-12)
    np.testing.assert_allclose(moments.weighted_squares, expected.weighted_squares, rtol=1e-12)
    np.testing.assert_allclose(fast.samples.norms, plain.samples.norms, rtol=4 * np.finfo(dtype).eps)
    centers = local(plain, X[:9])
    labels = plain.assign(centers)
    squared = fast.squared_distances(centers, labels)
    np.testing.assert_allclose(squared, plain.squared_distances(centers, labels), rtol=1e-12, atol=0)
    assert squared[1] == 0.0
    assert squared[np.arange(700) % 3 == 0].max() == 0.0


def test_near_ties_beyond_float32_are_settled_by_the_kernel(instruction_set, plain_calls):
    # The perpendicular bisector of both centers passes within 1e-9 of each sample, on a known side.
    rng = np.random.default_rng(0)
    side = rng.integers(0, 2, 400)
    X = np.column_stack([np.ldexp(side * 2.0 - 1, -30), rng.standard_normal(400)]).astype("f4")
    frame = data_frame(X)
    core = CompiledCore(DenseSamples(X, frame, frame, CPU), None, instruction_set)
    centers = np.array([[-1.0, 0.5], [1.0, 0.5]])
    np.testing.assert_array_equal(core.assign(centers), side)
    assert plain_calls == []


def test_repeated_centers_never_win_and_make_nothing_doubtful(instruction_set, plain_calls):
    X = some(300, 4, "f4")
    _, fast = both(X, instruction_set)
    centers = np.repeat(local(fast, X[:5]), 3, axis=0)
    np.testing.assert_array_equal(fast.assign(centers) % 3, 0)
    np.testing.assert_array_equal(fast.assign(centers) // 3, fast.assign(centers[::3]))
    assert plain_calls == []


def test_centers_out_of_reach_of_float32_leave_every_sample_to_the_plain_rule(instruction_set, plain_calls):
    X = some(100, 3, "f4")
    plain, fast = both(X, instruction_set)
    centers = np.vstack([1e30 * np.ones((2, 3)), local(fast, X[:2])])
    np.testing.assert_array_equal(fast.assign(centers), plain.assign(centers))
    assert plain_calls == [list(range(100))]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_queries_in_another_frame_have_the_streamed_labels(instruction_set, dtype, monkeypatch):
    X = some(500, 6, dtype) + 100
    sets = {instruction_set: BUILT[instruction_set]}
    monkeypatch.setattr(compiled, "instruction_sets", lambda: sets)
    cores = [query_core(X, X[:9], None, CPU, name, "binary") for name in ("streamed", "compiled")]
    assert cores[0][0].samples.score_frame is not cores[0][0].samples.reference_frame
    plain, fast = (core.assign(centers) for core, centers in cores)
    np.testing.assert_array_equal(fast, plain)
    np.testing.assert_array_equal(fast, oracle.assign(X.astype("f8"), X[:9].astype("f8")))


def test_auto_chooses_the_kernels_for_dense_data_and_names_them():
    X = some(200, 5, "f8")
    auto, named = (TransformerKMeans(4, random_state=0, backend=name).fit(X) for name in ("auto", "compiled"))
    plain = TransformerKMeans(4, random_state=0, backend="streamed").fit(X)
    assert (auto.backend_, named.backend_, plain.backend_) == ("compiled", "compiled", "streamed")
    np.testing.assert_array_equal(auto.labels_, plain.labels_)
    np.testing.assert_allclose(auto.cluster_centers_, plain.cluster_centers_, rtol=1e-12)
    assert auto.n_iter_ == plain.n_iter_


def test_without_a_build_a_named_kernel_raises_and_auto_streams(monkeypatch):
    monkeypatch.setattr(_engine, "instruction_sets", dict)
    X = some(50, 3, "f8")
    with pytest.raises(ValueError, match=r"without a C\+\+ compiler.*'streamed'"):
        TransformerKMeans(2, backend="compiled").fit(X)
    assert TransformerKMeans(2).fit(X).backend_ == "streamed"
