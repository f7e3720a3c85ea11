"""Samples in cells: the order of the curve, and iterations that have the labels of the plain rule."""

import numpy as np
import pytest
import torch

from sktransclust import TransformerKMeans
from sktransclust._lloyd import lloyd
from sktransclust.core import compiled
from sktransclust.core.cells import Cells
from sktransclust.core.streamed import Ahead

from . import oracle
from .kernels import BUILT, both, local, some


@pytest.fixture(autouse=True)
def cells_for_small_problems_too(monkeypatch):
    monkeypatch.setattr(compiled, "_WORTH_BOUNDS", 0)
    monkeypatch.setattr(compiled, "_WORTH_CELLS", 0)


@pytest.fixture(params=list(BUILT))
def instruction_set(request):
    return request.param


def cells_of(X, instruction_set=None):
    _, core = both(X, instruction_set)
    core.moments()
    return core._cells


def uniform(rng, n, d):
    return rng.random((n, d))


def lattice(rng, n, d):
    """Many equal samples, half way between centers that are samples too."""
    return rng.integers(-3, 4, (n, d)).astype("f8")


def heavy(rng, n, d):
    """A few samples a million times as far as the others."""
    return rng.standard_normal((n, d)) * np.where(rng.random((n, 1)) < 0.01, 1e6, 1.0)


def line(rng, n, d):
    """All on one line but for rounding."""
    return np.linspace(-1, 1, n)[:, None] * np.ones(d) + 1e-7 * rng.standard_normal((n, d))


def tiny(rng, n, d):
    return 1e-18 * rng.standard_normal((n, d))


def test_the_curve_visits_quadrants_of_quadrants_in_turn():
    # Four places on each axis, two on each side of 0. Of two bits that of the first feature counts less.
    x, y = np.meshgrid(np.arange(4.0) - 1.5, np.arange(4.0) - 1.5)
    X = np.column_stack([x.ravel(), y.ravel()])  # row 4 y + x
    shuffled = np.random.default_rng(0).permutation(16)
    order = shuffled[cells_of(X[shuffled]).order]
    expected = [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]
    assert order.tolist() == expected


@pytest.mark.parametrize("data", [uniform, lattice, heavy, line, tiny])
@pytest.mark.parametrize("n", [1, 31, 32, 33, 2100])
def test_cells_hold_each_sample_once_and_reach_to_all_of_theirs(instruction_set, data, n):
    X = data(np.random.default_rng(n), n, 3)
    cells = cells_of(X, instruction_set)
    assert sorted(cells.order) == list(range(n))
    np.testing.assert_array_equal(cells.samples.values, X[cells.order])
    points = local(cells, X[cells.order])
    for cell in range(-(-n // 32)):
        distances = np.linalg.norm(points[32 * cell : 32 * (cell + 1)] - cells.middles[:3, cell], axis=1)
        assert distances.max() <= cells.radii[cell]
        assert cells.radii[cell] <= distances.max() * (1 + 1e-12) + 1e-150


def test_cells_of_spread_samples_are_small():
    cells = cells_of(np.random.default_rng(0).random((32 * 1024, 2)))
    # Half the diagonal of a square of area 1/1024 is 0.022; the curve's cells are not all squares.
    assert np.median(cells.radii[:1024]) < 2 * 0.022


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("data", [uniform, lattice, heavy, line, tiny])
@pytest.mark.parametrize(
    ("n", "d", "k"), [(2100, 1, 7), (5000, 2, 20), (3001, 3, 100), (700, 5, 33), (40, 2, 3)]
)
def test_every_iteration_in_cells_has_the_streamed_labels(instruction_set, data, n, d, k, weighted, dtype):
    rng = np.random.default_rng([n, d])
    X = data(rng, n, d).astype(dtype)
    weights = rng.random(n) if weighted else None
    plain, fast = both(X, instruction_set, weights)
    fast.moments()
    centers = local(plain, X[rng.choice(n, k, replace=False)])
    before, labels = torch.full((2, n), -1, dtype=torch.int32)
    size = np.abs(local(plain, X)).max()
    for _ in range(12):
        expected, step = plain.iterate(centers, before), fast.iterate(centers, labels)
        np.testing.assert_array_equal(step.labels, expected.labels)
        assert step.n_changed == expected.n_changed
        np.testing.assert_allclose(step.means, expected.means, rtol=0, atol=1e-12 * size)
        np.testing.assert_allclose(step.weights, expected.weights, rtol=1e-12, atol=0)
        centers, before, labels = step.means, expected.labels, step.labels
    assert fast._iterations._cells is not None


def test_labels_agree_with_exact_distances_of_samples_near_bisectors(instruction_set):
    rng = np.random.default_rng(0)
    near = np.column_stack([np.ldexp(rng.standard_normal(3000), -24), rng.standard_normal((3000, 2))])
    X = np.concatenate([near, rng.standard_normal((3000, 3))]).astype("f4")
    centers = np.array([[-1.0, 0.2, 0.1], [1.0, 0.2, 0.1], [9.0, 9.0, 9.0], [1.0, 0.2, 0.1]])
    _, core = both(X, instruction_set)
    core.moments()
    labels = core.iterate(local(core, centers), torch.full((6000,), -1, dtype=torch.int32)).labels
    points, keys = local(core, X), local(core, centers)
    np.testing.assert_array_equal(labels, oracle.assign(points, keys))


def test_labels_that_the_caller_has_changed_are_counted_against(instruction_set):
    X = some(3000, 2, "f4")
    _, core = both(X, instruction_set)
    core.moments()
    centers = local(core, X[:20])
    first = core.iterate(centers, torch.full((3000,), -1, dtype=torch.int32))
    assert core.iterate(centers, first.labels).n_changed == 0
    others = first.labels.clone()
    others[[5, 1700]] += 1
    again = core.iterate(centers, others)
    assert again.n_changed == 2
    np.testing.assert_array_equal(again.labels, first.labels)
    np.testing.assert_array_equal(again.means, first.means)


def test_iterations_ahead_and_any_number_of_threads_end_in_the_same_bits(monkeypatch):
    X = some(20_000, 2, "f4")
    monkeypatch.setattr(compiled, "_CHUNK_WORK", 2**16)
    found = []
    for n_threads, n_ahead in (1, 1), (1, 30), (3, 30):
        monkeypatch.setattr(compiled, "n_threads", lambda n=n_threads: n)
        _, core = both(X)
        moments = core.moments()
        report = (lambda progress: False) if n_ahead == 1 else None
        run = lloyd(core, moments, local(core, X[:30]), max_iter=40, tol=0.0, report=report)
        assert core._iterations.state.chunk_rows < 20_000
        found.append((run.centers.tobytes(), run.last_labels.numpy().tobytes(), tuple(run.steps)))
    assert found[0] == found[1] == found[2]


def test_an_iteration_ahead_is_one_told_of():
    X = some(4000, 2, "f8")
    _, one = both(X)
    _, several = both(X)
    for core in one, several:
        core.moments()
    centers = local(one, X[:10])
    labels = torch.full((4000,), -1, dtype=torch.int32)
    step = several.iterate(centers, labels.clone(), Ahead(3, 0.0, -np.inf))
    for _ in range(3):
        single = one.iterate(centers, labels)
        centers, labels = single.means, single.labels
    np.testing.assert_array_equal(step.labels, single.labels)
    np.testing.assert_array_equal(step.means, single.means)


@pytest.mark.parametrize("layout", ["C", "F", "strided", "reversed"])
def test_a_fit_in_cells_is_that_of_the_plain_core_in_any_layout(layout):
    X = some(4000, 3, "f4")
    given = {
        "C": X,
        "F": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
        "reversed": X[::-1].copy()[::-1],
    }
    fits = [
        TransformerKMeans(40, random_state=0, backend=backend, n_init=2).fit(data)
        for backend, data in (("streamed", X), ("compiled", given[layout]))
    ]
    np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)
    np.testing.assert_allclose(fits[0].cluster_centers_, fits[1].cluster_centers_, rtol=1e-6)
    assert fits[0].n_iter_ == fits[1].n_iter_


def test_empty_clusters_are_moved_as_without_cells():
    X = np.concatenate([some(2000, 2, "f8"), [[50.0, 50.0], [51.0, 50.0]]])
    init = np.array([[0.0, 0.0], [1e3, 1e3], [2e3, 1e3]])
    plain, fast = (
        TransformerKMeans(3, init=init, n_init=1, backend=backend).fit(X)
        for backend in ("streamed", "compiled")
    )
    np.testing.assert_array_equal(plain.labels_, fast.labels_)
    assert set(fast.labels_) == {0, 1, 2}


def test_samples_of_equal_place_keep_their_order():
    X = np.ones((100, 2))
    cells = cells_of(X)
    assert isinstance(cells, Cells)
    np.testing.assert_array_equal(cells.order, np.arange(100))
