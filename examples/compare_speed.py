"""
Time a fit beside scikit-learn's
================================

Fits of ``TransformerKMeans`` and ``KMeans`` alternate in one process, on the same 32-bit data and from the
same initial centers. For each size the median time per Lloyd iteration of both is printed with their ratio,
and at the end the geometric mean of the ratios: below 1, ours is faster.

Run it with ``python examples/compare_speed.py``; ``--help`` lists the settings.
"""

# %%
import argparse
import os
import platform
import statistics
import time
from pathlib import Path

import numpy as np
import scipy
import sklearn
import torch
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_sample_image

import sktransclust
from sktransclust import TransformerKMeans

# %%
# Each cell is (n, d, k). The first is the photograph that scikit-learn ships, the last its digits,
# the rest standard normal: without clusters no fit converges early.
CELLS = [(273280, 3, 64), (100000, 16, 64), (100000, 64, 256), (1000000, 16, 8), (1797, 64, 10)]


def make_data(n_samples, n_features, rng):
    """Return the samples of one cell, shape (n_samples, n_features), float32."""
    if (n_samples, n_features) == (273280, 3):
        return load_sample_image("china.jpg").reshape(-1, 3).astype(np.float32) / 255
    if (n_samples, n_features) == (1797, 64):
        return load_digits().data.astype(np.float32)
    return rng.standard_normal((n_samples, n_features), dtype=np.float32)


def seconds_per_iteration(estimator, X):
    """Fit once and return the wall-clock time divided by the number of Lloyd iterations."""
    start = time.perf_counter()
    estimator.fit(X)
    return (time.perf_counter() - start) / estimator.n_iter_


def time_cell(X, n_clusters, rng, args):
    """Return the fitted TransformerKMeans and the median seconds per iteration of (ours, KMeans)."""
    distinct = np.unique(X, axis=0)
    init = distinct[rng.choice(len(distinct), n_clusters, replace=False)]
    settings = {"n_clusters": n_clusters, "init": init, "n_init": 1, "max_iter": args.max_iter, "tol": 0}
    pair = (TransformerKMeans(**settings, device=args.device, backend=args.backend), KMeans(**settings))
    for estimator in pair:  # neither pays for its first call
        estimator.fit(X)
    times = [[seconds_per_iteration(estimator, X) for estimator in pair] for _ in range(args.repeat)]
    return pair[0], [statistics.median(column) for column in zip(*times, strict=True)]


def processor_name():
    """Return the processor's name, as far as the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


# %%
parser = argparse.ArgumentParser(description="Time TransformerKMeans and KMeans alternately.")
parser.add_argument("--repeat", type=int, default=7, help="timed fits of each, per cell")
parser.add_argument("--max-iter", type=int, default=20, help="most Lloyd iterations of a fit")
parser.add_argument("--shrink", type=int, default=1, help="keep every SHRINK-th sample, for a quick look")
parser.add_argument("--device", default="auto")
parser.add_argument("--backend", default="auto")
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

# %%
print(f"{processor_name()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}")
print(f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, ", end="")
print(
    f"scikit-learn {sklearn.__version__}, torch {torch.__version__}, sktransclust {sktransclust.__version__}"
)
print(f"{'n':>8} {'d':>4} {'k':>4} {'device':>6} {'backend':>8} {'ours ms':>9} {'KMeans ms':>9} {'ratio':>6}")

rng = np.random.default_rng(args.seed)
ratios = []
for n_samples, n_features, n_clusters in CELLS:
    X = np.ascontiguousarray(make_data(n_samples, n_features, rng)[:: args.shrink])
    fitted, (ours, reference) = time_cell(X, n_clusters, rng, args)
    ratios.append(ours / reference)
    print(
        f"{len(X):8d} {n_features:4d} {n_clusters:4d} {fitted.device_!s:>6} {fitted.backend_:>8} "
        f"{1e3 * ours:9.3f} {1e3 * reference:9.3f} {ratios[-1]:6.2f}",
        flush=True,
    )
print(f"geometric mean of the ratios: {statistics.geometric_mean(ratios):.3f}")
