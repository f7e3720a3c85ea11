"""A file mapped into memory is read a piece at a time, and never copied as a whole."""

import sys

import numpy as np
import pytest

from .test_estimator_resources import run_python

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc for the resident size")

# The pages of the file are the page cache's and count for nothing: RssAnon is what the process itself holds.
ANONYMOUS = """
import sys, threading
import numpy as np
from sktransclust import TransformerKMeans

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon:")) / 1e3

path, n_samples, n_features, backend = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
X = np.memmap(path, dtype=np.float32, mode="r", shape=(n_samples, n_features))
few = np.random.default_rng(0).random((20_000, n_features), dtype=np.float32)
TransformerKMeans(8, init=few[:8], max_iter=2, backend=backend).fit(few).transform(few[:100])
before, most, done = anonymous(), 0.0, threading.Event()

def watch():
    global most
    while not done.wait(0.002):
        most = max(most, anonymous())

watcher = threading.Thread(target=watch)
watcher.start()
m = TransformerKMeans(8, init=np.array(X[:8]), max_iter=2, backend=backend).fit(X)
labels = m.predict(X)
assert np.array_equal(labels, m.labels_)
assert -m.score(X) == m.inertia_
done.set()
watcher.join()
assert np.isfinite(m.cluster_centers_).all() and m.backend_ != "dense"
print(most - before)
"""


def write_uniform(path, n_samples, n_features, rows=2**20):
    """Write random float32 numbers to a file, some rows at a time."""
    r = np.random.default_rng(0)
    with open(path, "wb") as file:
        for start in range(0, n_samples, rows):
            file.write(r.random((min(rows, n_samples - start), n_features), dtype=np.float32).tobytes())


@linux
@pytest.mark.parametrize("backend", ["auto", "streamed"])
def test_a_file_of_128_megabytes_is_fitted_and_predicted_in_64_beyond_the_page_cache(tmp_path, backend):
    n_samples, n_features = 500_000, 64
    write_uniform(tmp_path / "data", n_samples, n_features, rows=2**16)
    megabytes = float(run_python(ANONYMOUS, tmp_path / "data", n_samples, n_features, backend))
    # Labels twice, squared distances, norms: 24 bytes a sample; the rest is for tiles.
    assert megabytes <= 64


@linux
@pytest.mark.slow
def test_a_file_of_4_gigabytes_is_fitted_in_1_beyond_the_page_cache(tmp_path):
    n_samples, n_features = 15_625_000, 64
    write_uniform(tmp_path / "data", n_samples, n_features)
    megabytes = float(run_python(ANONYMOUS, tmp_path / "data", n_samples, n_features, "auto"))
    print(f"{megabytes:.0f} MB beyond the page cache")
    assert megabytes <= 1000
