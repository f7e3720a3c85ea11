"""Threads, processes and memory: the same bits for any number of them, no deadlock, no copy of the data."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_limits

from sktransclust import TransformerKMeans

from .cases import gaussians, sparse_counts

FITTED = ("cluster_centers_", "labels_", "inertia_", "n_iter_", "inertia_history_")


@contextmanager
def threads(number):
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        with threadpool_limits(number):
            yield
    finally:
        torch.set_num_threads(before)


def assert_same_bits(one, other):
    for name in FITTED:
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


DATA = {
    "float64": lambda: gaussians(n_samples=30_001, n_features=7, n_centers=12, std=4.0),
    "float32": lambda: gaussians(n_samples=30_001, n_features=7, n_centers=12, std=4.0).astype(np.float32),
    "csr": lambda: sp.csr_array(sparse_counts(n_samples=20_001)),
}


@pytest.mark.parametrize("backend", ["auto", "streamed"])
@pytest.mark.parametrize("kind", DATA)
def test_the_same_bits_for_any_number_of_threads(kind, backend):
    X = DATA[kind]()
    weights = np.random.RandomState(0).rand(X.shape[0])
    parameters = {"n_clusters": 17, "n_init": 2, "max_iter": 8, "random_state": 0, "backend": backend}
    results = []
    for number in (1, 2, 3, 8):
        with threads(number):
            estimator = TransformerKMeans(**parameters).fit(X, sample_weight=weights)
            results.append((estimator, estimator.predict(X), estimator.transform(X), estimator.score(X)))
    first = results[0]
    for other in results[1:]:
        assert_same_bits(first[0], other[0])
        assert_array_equal(first[1], other[1])
        assert_array_equal(first[2], other[2])
        assert first[3] == other[3]


def test_the_same_bits_for_any_number_of_threads_of_the_literal_network():
    X = gaussians(n_samples=3001, n_features=5, std=4.0)
    results = []
    for number in (1, 2, 3, 8):
        with threads(number):
            results.append(TransformerKMeans(9, random_state=0, backend="dense").fit(X))
    for other in results[1:]:
        assert_same_bits(results[0], other)


FIT_AND_PRINT = """
import hashlib, sys
import numpy as np
from sktransclust import TransformerKMeans
X = np.random.RandomState(0).randn(20_000, 5)
m = TransformerKMeans(11, random_state=0, max_iter=6).fit(X)
parts = (m.cluster_centers_, m.labels_, np.float64(m.inertia_), m.transform(X))
print(*(hashlib.sha256(np.ascontiguousarray(part)).hexdigest() for part in parts))
"""


def run_python(script, *arguments, **environment):
    """Run a script in a fresh process and return what it printed; its hanging is a failure."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_the_same_bits_in_processes_started_with_other_numbers_of_threads():
    printed = {run_python(FIT_AND_PRINT, OMP_NUM_THREADS=str(number)) for number in (1, 3)}
    assert len(printed) == 1


def test_refitting_gives_the_same_bits(backend):
    X = gaussians(n_samples=2000, std=4.0)
    estimator = TransformerKMeans(6, n_init=2, random_state=0, backend=backend)
    first = {name: getattr(estimator.fit(X), name) for name in FITTED}
    second = {name: getattr(estimator.fit(X), name) for name in FITTED}
    for name in FITTED:
        assert_array_equal(first[name], second[name], err_msg=name)


@pytest.mark.parametrize("parallel", ["loky", "threading", "sequential"])
def test_fits_inside_joblib_workers_give_the_bits_of_a_fit_outside(parallel):
    X = gaussians(n_samples=5000, std=4.0)
    alone = TransformerKMeans(6, random_state=0).fit(X)
    with joblib.parallel_backend(parallel, n_jobs=2):
        tasks = (joblib.delayed(TransformerKMeans(6, random_state=0).fit)(X) for _ in range(4))
        for other in joblib.Parallel()(tasks):
            assert_same_bits(alone, other)


def test_threads_may_share_a_fitted_estimator(backend):
    X = gaussians(n_samples=3000, std=4.0)
    m = TransformerKMeans(6, random_state=0, backend=backend).fit(X)
    with joblib.parallel_backend("threading", n_jobs=4):
        tasks = (joblib.delayed(m.predict)(X[i : i + 1000]) for i in range(0, 2000, 100))
        answers = joblib.Parallel()(tasks)
    for i, labels in zip(range(0, 2000, 100), answers, strict=True):
        assert_array_equal(labels, m.labels_[i : i + 1000])


def test_a_fit_leaves_the_number_of_threads_as_it_was():
    with threads(3):
        TransformerKMeans(6, random_state=0).fit(gaussians())
        assert torch.get_num_threads() == 3


FORK = """
import json, os, signal, sys
import numpy as np
from sktransclust import TransformerKMeans
X = np.random.RandomState(0).randn(20_000, 4)
parameters = {"n_clusters": 6, "random_state": 0, "max_iter": 5, **json.loads(sys.argv[1])}
parent = TransformerKMeans(**parameters).fit(X)
child = os.fork()
if child == 0:
    signal.alarm(120)  # A child that hangs dies of it, and its exit code says so.
    same = np.array_equal(TransformerKMeans(**parameters).fit(X).labels_, parent.labels_)
    same = same and np.array_equal(parent.predict(X), parent.labels_)
    os._exit(0 if same else 1)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize(
    "parameters", [{}, {"backend": "streamed"}, {"weights": "binary-l2", "n_steps": 2}], ids=str
)
def test_a_forked_child_can_fit_and_predict_after_its_parent_has(parameters):
    assert run_python(FORK, json.dumps(parameters), OMP_NUM_THREADS="2") == "child 0"


PEAK = """
import sys
import numpy as np, torch
from sktransclust import TransformerKMeans

def memory(name):  # of this process alone: getrusage's peak is inherited from the one that started it
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(name + ":"))

n_samples, n_clusters, backend = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
warm = np.random.default_rng(0).random((5000, 8), dtype=np.float32)
TransformerKMeans(4, init=warm[:4], max_iter=2, backend=backend).fit(warm)
X = np.random.default_rng(1).random((n_samples, 8), dtype=np.float32)
before = memory("VmRSS")
estimator = TransformerKMeans(n_clusters, init=X[:n_clusters], max_iter=2, backend=backend).fit(X)
peak = memory("VmHWM")
assert estimator.n_iter_ == 2 and estimator.cluster_centers_.dtype == np.float32
print((peak - before) / 1e6)
"""

needs_proc = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="reads /proc for the resident size"
)


@needs_proc
def test_a_fit_of_two_million_rows_needs_150_megabytes_beyond_the_data():
    assert float(run_python(PEAK, 2_000_000, 256, "auto")) <= 150


SPARSE_PEAK = (
    PEAK[: PEAK.index("n_samples, n_clusters")]
    + """
import scipy.sparse as sp
n_samples, n_features, per_row = 2000, 200_000, 50  # 3200 MB if they were dense
r = np.random.RandomState(0)
offsets, columns = np.arange(n_samples + 1) * per_row, r.randint(0, n_features, n_samples * per_row)
X = sp.csr_array((r.rand(len(columns)), columns, offsets), shape=(n_samples, n_features))
X.sum_duplicates()
before = memory("VmRSS")
m = TransformerKMeans(4, random_state=0).fit(X)
m.predict(X), m.transform(X), m.score(X)
print((memory("VmHWM") - before) / 1e6)
"""
)


@needs_proc
def test_a_fit_of_sparse_rows_never_holds_them_dense():
    assert float(run_python(SPARSE_PEAK)) <= 150


@needs_proc
def test_the_memory_of_a_fit_does_not_grow_with_the_number_of_clusters():
    # The scores of all samples for all clusters would be 1.6 GB in float32.
    assert float(run_python(PEAK, 100_000, 4000, "streamed")) <= 150
