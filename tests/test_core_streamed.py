"""The streamed core: tiles and chunks add up to what NumPy finds for the whole, dense and sparse."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from sktransclust._lloyd import mean_variance
from sktransclust.core import streamed
from sktransclust.core.csr_samples import CSRSamples
from sktransclust.core.dense_samples import DenseSamples
from sktransclust.core.frame import Frame
from sktransclust.core.samples import pairwise_squares
from sktransclust.core.streamed import StreamedCore

from . import oracle

CPU = torch.device("cpu")


def data(n=700, d=5, dtype="f8", density=0.4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    return X.astype(dtype), rng.random(n) * (rng.random(n) < 0.8)


def core_of(X, kind, weights=None):
    if kind == "dense":
        samples = DenseSamples(X, frame := Frame(), frame, CPU)
    else:
        csr = sp.csr_array(X)
        samples = CSRSamples(csr.data, csr.indices, csr.indptr, X.shape[1], frame := Frame(), frame, CPU)
    return StreamedCore(samples, None if weights is None else torch.from_numpy(weights))


@pytest.fixture
def small_tiles(monkeypatch):
    """Many tiles and chunks on small data."""
    monkeypatch.setitem(streamed._TILE_ELEMENTS, "cpu", 64)
    monkeypatch.setitem(streamed._TILE_ROWS, "cpu", (1, 37))
    monkeypatch.setattr(streamed, "_MAX_CHUNKS", 5)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_an_iteration_is_the_oracles(kind, weighted, dtype):
    X, weights = data(dtype=dtype)
    weights = weights if weighted else None
    centers = X[:9].astype("f8") + 0.01 * np.arange(9)[:, None]
    core = core_of(X, kind, weights)
    previous = torch.zeros(len(X), dtype=torch.int32)
    step = core.iterate(centers, previous)
    labels = oracle.assign(X, centers)
    np.testing.assert_array_equal(step.labels, labels)
    np.testing.assert_array_equal(core.assign(centers), labels)
    assert step.n_changed == np.count_nonzero(labels)
    expected = oracle.update(X, labels, centers, weights)
    np.testing.assert_allclose(step.means, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(step.weights, np.bincount(labels, weights, minlength=9), rtol=1e-12)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_moments_distances_and_inertia_are_numpys(kind):
    X, weights = data()
    centers = X[:4] + 0.5
    core = core_of(X, kind, weights)
    moments = core.moments()
    assert mean_variance(core.samples, moments) == pytest.approx(X.var(0).mean(), rel=1e-12)
    assert moments.weighted_squares == pytest.approx(weights @ (X**2).sum(1), rel=1e-12)
    np.testing.assert_allclose(core.samples.norms, np.linalg.norm(X, axis=1), rtol=1e-12)
    labels = core.assign(centers)
    squared = ((X - centers[labels]) ** 2).sum(1)
    expected = np.where(weights > 0, squared, 0)
    np.testing.assert_allclose(core.squared_distances(centers, labels), expected, rtol=1e-10)
    assert core.inertia(centers, labels) == pytest.approx(weights @ squared, rel=1e-12)
    distances = np.empty((len(X), 4))
    core.distances(centers, distances)
    np.testing.assert_allclose(distances, np.linalg.norm(X[:, None] - centers, axis=2), rtol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_a_sample_is_exactly_zero_from_itself_and_near_duplicates_are_told_apart(kind):
    X = np.array([[3.0, 1e4], [3.0, 1e4 + 1e-9], [0.0, 7.0], [3.0, 1e4]])
    core = core_of(X, kind)
    rows = core.samples.rows(np.array([0, 2, 1, 0]))
    np.testing.assert_array_equal(rows, X[[0, 2, 1, 0]])
    squared = pairwise_squares(core.samples.tile(0, 4), rows).numpy()
    exact = ((X[:, None] - X[[0, 2, 1, 0]]) ** 2).sum(-1)
    np.testing.assert_allclose(squared, exact, rtol=1e-9, atol=0)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_bits_do_not_depend_on_the_number_of_threads(kind):
    X, weights = data(n=30_000)
    centers = X[:40] + 0.1
    before = torch.get_num_threads()
    outcomes = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            core = core_of(X, kind, weights)
            step = core.iterate(centers, torch.zeros(len(X), dtype=torch.int32))
            outcomes.append(
                (step.labels.numpy(), step.means, step.weights, core.inertia(centers, step.labels))
            )
    finally:
        torch.set_num_threads(before)
    for outcome in outcomes[1:]:
        for one, other in zip(outcomes[0], outcome, strict=True):
            np.testing.assert_array_equal(one, other)


def test_chunks_do_not_hold_more_than_their_share():
    X, _ = data(n=100_000, d=2)
    core = core_of(X, "dense")
    chunks = core._chunks(8)
    assert len(chunks) <= streamed._MAX_CHUNKS
    covered = [index for chunk in chunks for start, stop in chunk for index in (start, stop)]
    assert covered[0] == 0
    assert covered[-1] == len(X)
    assert covered[1:-1:2] == covered[2:-1:2]  # each tile begins where the one before ends
