"""On CUDA: the CPU's labels, the same bits every time, pickles that travel, and going on with less memory."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal

from sktransclust import TransformerKMeans
from sktransclust.core import streamed

from .cases import EPS, gaussians, nearest, sparse_counts, squared_scale, true_inertia
from .test_estimator_backends import fit as fit_from
from .test_estimator_backends import problem

X = gaussians(seed=1, n_samples=20_011, n_features=7, n_centers=9, std=4.0)
WEIGHTS = np.random.RandomState(0).rand(len(X)) + 0.1


def fit(data=X, **parameters):
    weights = WEIGHTS if data.shape[0] == len(WEIGHTS) else None
    m = TransformerKMeans(**{"n_clusters": 11, "random_state": 0, "max_iter": 20, **parameters})
    return m.fit(data, sample_weight=weights)


@pytest.mark.gpu
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_labels_in_float64_are_those_of_the_cpu(backend, storage):
    data = storage(sparse_counts(n_samples=1501))
    ours, reference = (fit(data, device=device, backend=backend) for device in ("cuda", "cpu"))
    assert ours.device_.startswith("cuda")
    assert_array_equal(ours.labels_, reference.labels_)
    assert ours.n_iter_ == reference.n_iter_
    assert_allclose(ours.cluster_centers_, reference.cluster_centers_, rtol=1e-10)
    assert_allclose(ours.inertia_, reference.inertia_, rtol=1e-10)
    assert_array_equal(ours.predict(data), reference.labels_)
    assert_allclose(ours.transform(data), reference.transform(data), rtol=1e-10, atol=1e-12)


@pytest.mark.gpu
@pytest.mark.parametrize("block", range(4))
def test_small_problems_have_the_results_of_the_cpu(block):
    for number in range(40 * block, 40 * block + 40):
        if number % 4 == 1:
            continue  # Integers: exact ties, which rounding may decide otherwise.
        data, init, weights = problem(number)
        ours, reference = (fit_from(data, init, weights, device=device) for device in ("cuda", "cpu"))
        assert_array_equal(ours.labels_, reference.labels_)
        assert ours.n_iter_ == reference.n_iter_


@pytest.mark.gpu
def test_labels_in_float32_are_nearest_centers():
    data = X.astype(np.float32)
    m = fit(data, device="cuda")
    chosen = ((X.astype(np.float32) - m.cluster_centers_[m.labels_]).astype(float) ** 2).sum(axis=1)
    excess = chosen - nearest(data, m.cluster_centers_)[1]
    assert excess.max() <= 64 * np.finfo(np.float32).eps * squared_scale(data)
    assert_allclose(m.inertia_, true_inertia(data, m.cluster_centers_, WEIGHTS), rtol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_repeats_have_the_same_bits(dtype, storage):
    data = storage(X.astype(dtype))
    first = fit(data, device="cuda")
    for _ in range(4):
        other = fit(data, device="cuda")
        assert_array_equal(other.cluster_centers_, first.cluster_centers_)
        assert_array_equal(other.labels_, first.labels_)
        assert other.inertia_ == first.inertia_
        assert_array_equal(other.inertia_history_, first.inertia_history_)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_alone_and_in_a_subset_gets_the_same_bits(dtype):
    data = X.astype(dtype)
    m = fit(data, device="cuda")
    labels, distances = m.predict(data), m.transform(data)
    for rows in (slice(0, 1), slice(5, 6), slice(20_010, None), slice(3, 2000), slice(1, None)):
        assert_array_equal(m.predict(data[rows]), labels[rows])
        assert_array_equal(m.transform(data[rows]), distances[rows])


@pytest.mark.gpu
def test_a_pickle_made_on_cuda_predicts_where_there_is_none(tmp_path):
    m = fit(device="auto")
    assert m.device_.startswith("cuda")
    (tmp_path / "model").write_bytes(pickle.dumps(m))
    np.save(tmp_path / "data.npy", X[:500])
    script = (
        "import pickle, sys, numpy as np, torch\n"
        "assert not torch.cuda.is_available()\n"
        "m = pickle.load(open(sys.argv[1] + '/model', 'rb'))\n"
        "np.save(sys.argv[1] + '/labels.npy', m.predict(np.load(sys.argv[1] + '/data.npy')))\n"
    )
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([sys.executable, "-P", "-c", script, str(tmp_path)], env=environment, check=True)
    assert_array_equal(np.load(tmp_path / "labels.npy"), m.labels_[:500])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_tensor_on_cuda_gives_the_result_of_its_values(dtype):
    tensor = torch.from_numpy(X).to("cuda", dtype)
    values = tensor.cpu().double().numpy() if dtype is torch.bfloat16 else tensor.cpu().numpy()
    ours, expected = fit(tensor.requires_grad_()), fit(values, device="cuda")
    assert isinstance(ours.labels_, np.ndarray)
    assert_array_equal(ours.labels_, expected.labels_)
    assert_allclose(ours.cluster_centers_, expected.cluster_centers_, rtol=1e-6)
    assert_array_equal(ours.predict(tensor), ours.labels_)


@pytest.mark.gpu
def test_a_tensor_on_cuda_is_not_copied_through_the_host():
    tensor = torch.from_numpy(X).to("cuda")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as trace:
        fit(tensor, max_iter=2, init=X[:11], n_init=1)
    moved = [event for event in trace.events() if "Memcpy DtoH" in event.name]
    assert moved  # Centers and labels do come back,
    assert len(moved) < 500  # and no tile of the data does.


@pytest.mark.gpu
def test_a_fit_goes_on_when_memory_is_short():
    data = np.random.RandomState(0).rand(2_000_000, 8).astype(np.float32)
    expected = fit(data, device="cuda", init=data[:256], n_clusters=256, n_init=1, max_iter=2)
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(400e6 / total)
    try:
        with pytest.warns(RuntimeWarning, match="Out of memory on cuda"):
            m = fit(data, device="cuda", init=data[:256], n_clusters=256, n_init=1, max_iter=2)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert_array_equal(m.labels_, expected.labels_)
    assert_allclose(m.cluster_centers_, expected.cluster_centers_, rtol=1e-6)


@pytest.mark.parametrize("n_failures", [1, 3])
def test_tiles_are_halved_after_an_error_for_want_of_memory(monkeypatch, n_failures):
    """The error is raised by hand, so that this runs without CUDA too."""
    data = X[:16_384]  # Whole tiles only.
    expected = fit(data, device="cpu", backend="streamed")
    real, rows = streamed.nearest, []

    def short_of_memory(tile, keys):
        rows.append(len(tile.squares()))
        if len(rows) <= n_failures:
            raise torch.cuda.OutOfMemoryError("on purpose")
        return real(tile, keys)

    monkeypatch.setattr(streamed, "nearest", short_of_memory)
    with pytest.warns(RuntimeWarning, match="Out of memory on cpu; going on with tiles of"):
        m = fit(data, device="cpu", backend="streamed")
    assert rows[0] // 2 in rows
    assert_array_equal(m.labels_, expected.labels_)
    assert_allclose(m.cluster_centers_, expected.cluster_centers_, rtol=1e-12)
    assert_allclose(m.inertia_, expected.inertia_, rtol=100 * EPS)


def test_an_error_for_want_of_memory_is_raised_when_no_smaller_tile_is_left(monkeypatch):
    def short_of_memory(tile, keys):
        raise torch.cuda.OutOfMemoryError("on purpose")

    monkeypatch.setattr(streamed, "nearest", short_of_memory)
    with (
        pytest.warns(RuntimeWarning, match="Out of memory"),
        pytest.raises(torch.cuda.OutOfMemoryError, match="on purpose"),
    ):
        fit(device="cpu", backend="streamed")
