"""Many threads in one process, processes of joblib, and an interruption in the middle of a fit."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from numpy.testing import assert_array_equal

from sktransclust import TransformerKMeans

from .backends import available_backends
from .cases import gaussians
from .test_estimator_resources import assert_same_bits, run_python, threads

BACKENDS = [*available_backends(), "auto"]
X = gaussians(n_samples=3000, n_features=4, n_centers=6, std=4.0)


def estimators(backend):
    """Different problems, so that a mix-up shows; the last one with learned steps."""
    exact = [TransformerKMeans(3 + seed % 4, random_state=seed, backend=backend) for seed in range(7)]
    return [*exact, TransformerKMeans(6, random_state=0, backend=backend, weights="binary-l2", n_steps=3)]


def fitted(estimator):
    estimator.fit(X[:2000])
    return estimator, estimator.predict(X[2000:]), estimator.transform(X[2000:]), estimator.score(X)


@pytest.mark.parametrize("backend", BACKENDS)
def test_eight_threads_fit_and_predict_to_the_bits_of_one_after_the_other(backend):
    with threads(2):
        expected = [fitted(estimator) for estimator in estimators(backend)]
        together = threading.Barrier(8)

        def work(estimator):
            together.wait()
            return fitted(estimator)

        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(work, estimators(backend), timeout=300))
    for (one, *answers), (other, *others) in zip(expected, results, strict=True):
        assert_same_bits(one, other)
        for answer, same in zip(answers, others, strict=True):
            assert_array_equal(answer, same)


COUNT_THREADS = """
import sys, threading, time
import numpy as np
from threadpoolctl import threadpool_limits
import torch
from sktransclust import TransformerKMeans

def count():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Threads:"))

asked, backend = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(asked)
X = np.random.RandomState(0).randn(50_000, 8)
with threadpool_limits(asked):
    before, most, done = count(), 0, threading.Event()
    def watch():
        global most
        while not done.wait(0.005):
            most = max(most, count())
    watcher = threading.Thread(target=watch)
    watcher.start()
    TransformerKMeans(20, init=X[:20], max_iter=5, backend=backend).fit(X)
    done.set()
    watcher.join()
    for _ in range(100):  # a thread that has been joined is counted for a moment more
        if (kept := count() - before) == 0:
            break
        time.sleep(0.01)
print(most - before - 1, kept)
"""
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads in /proc")


@linux
@pytest.mark.parametrize("backend", ["auto", "streamed"])
@pytest.mark.parametrize("asked", [1, 2])
def test_a_fit_starts_no_more_threads_than_it_may_use(asked, backend):
    printed = run_python(COUNT_THREADS, asked, backend, OMP_NUM_THREADS=str(asked))
    most, kept = map(int, printed.split())
    # The workers, a moment for each of them another thread, and PyTorch's own beside the calling one.
    allowed = 0 if asked == 1 else 3 * asked
    assert most <= allowed
    assert kept <= allowed


INTERRUPTED = """
import os, signal, sys, threading
import numpy as np
from sklearn.exceptions import NotFittedError
from sktransclust import TransformerKMeans

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is started without
backend = sys.argv[1]
X = np.random.RandomState(0).randn(8_000, 6)
rehearsal = TransformerKMeans(12, init=X[:12], backend=backend, tol=0, max_iter=3).fit(X)
n_lines = 0

class Interrupting:
    "Stands for the terminal: the signal comes while the third iteration is told."

    def write(self, text):
        global n_lines
        n_lines += text.startswith("Iteration")
        if n_lines == 3 and text.startswith("Iteration"):
            os.kill(os.getpid(), signal.SIGINT)
        return len(text)

    def flush(self):
        pass

m = TransformerKMeans(12, init=X[:12], backend=backend, tol=0, max_iter=60, verbose=1)
real, sys.stdout = sys.stdout, Interrupting()
try:
    m.fit(X)
except KeyboardInterrupt:
    sys.stdout = real
    print("interrupted", end=" ")
try:
    m.predict(X)
except NotFittedError:
    print("not fitted", end=" ")
m.set_params(verbose=0, max_iter=3).fit(X)
print(np.array_equal(m.labels_, rehearsal.labels_), m.inertia_ == rehearsal.inertia_)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends a process of Windows at once")
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_interrupted_fit_leaves_no_result_and_a_process_that_can_fit(backend):
    printed = run_python(INTERRUPTED, backend, OMP_NUM_THREADS="2")
    assert printed == "interrupted not fitted True True"


INTERRUPTED_ANYWHERE = """
import os, signal, sys, threading, time
import numpy as np
from sktransclust import TransformerKMeans

signal.signal(signal.SIGINT, signal.default_int_handler)
X = np.random.RandomState(0).randn(20_000, 6)
m = TransformerKMeans(12, init=X[:12], backend=sys.argv[1], tol=0, max_iter=1000)
TransformerKMeans(2, backend=sys.argv[1]).fit(X[:10])  # so that all is imported
n_interrupted = 0
for delay in (0.003, 0.01, 0.02, 0.05, 0.1):
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        m.fit(X)
        time.sleep(1)
    except KeyboardInterrupt:
        n_interrupted += 1
    timer.join()
print(n_interrupted, hasattr(m, "labels_"), len(np.unique(m.set_params(max_iter=3).fit(X).labels_)))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends a process of Windows at once")
@pytest.mark.parametrize("backend", ["auto", "streamed"])
def test_an_interruption_at_any_moment_leaves_a_process_that_can_fit(backend):
    assert run_python(INTERRUPTED_ANYWHERE, backend, OMP_NUM_THREADS="2") == "5 False 12"


SIGNALS = """
import signal
import numpy as np
from sktransclust import TransformerKMeans
before = [signal.getsignal(number) for number in signal.valid_signals()]
TransformerKMeans(3, random_state=0).fit(np.random.RandomState(0).randn(500, 3))
print(before == [signal.getsignal(number) for number in signal.valid_signals()])
"""


def test_a_fit_installs_no_signal_handler():
    assert run_python(SIGNALS) == "True"
