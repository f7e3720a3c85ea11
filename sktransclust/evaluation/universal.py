"""What the network for any problem does, through the estimator, beside KMeans and others.

``python -m sktransclust.evaluation.universal real FILE.csv`` measures real data, ``mixtures`` mixtures that
were not seen in training, ``moves`` what a move is worth without the network, ``far`` problems far outside of
it, ``ablations`` networks that are trained without one of its parts. Inertias are compared as geometric
means of ratios, between fits with the same seed.
"""

import csv
import importlib.util
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from .. import TransformerKMeans
from ..model.scalar_step import ScalarStep
from ..tasks import FAMILIES, MixedDistribution, MixedSampler
from ..tasks.mixed import lloyd_iterations
from .provenance import made_with
from .universal_ablations import ablations
from .universal_data import problems

SEEDS = range(100, 104)
N_TASKS = 8  # mixtures of each family

Fit = Callable[[np.ndarray, int, int], float]  # samples, clusters and seed to an inertia
Row = dict[str, Any]


def kmeans(X: np.ndarray, k: int, seed: int, n_init: int = 1, init: str = "k-means++") -> float:
    """Fit scikit-learn's KMeans."""
    return KMeans(k, init=init, n_init=n_init, random_state=seed).fit(X).inertia_


def ours(X: np.ndarray, k: int, seed: int, weights: str = "universal", init: str = "k-means++") -> float:
    """Fit the estimator with one start."""
    fitted = TransformerKMeans(k, weights=weights, init=init, n_init=1, random_state=seed, device="cpu")
    return fitted.fit(X).inertia_


def breathing(X: np.ndarray, k: int, seed: int) -> float:
    """Fit breathing k-means, by the package bkmeans."""
    module = importlib.import_module("bkmeans")
    return module.BKMeans(n_clusters=k, n_init=1, random_state=seed).fit(X).inertia_


def measure(fits: dict[str, Fit], X: np.ndarray, k: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Compare fits with the first one.

    Returns
    -------
    dict
        For each but the first: the geometric mean of the ratio of inertias and the largest one, and
        the median ratio of CPU times; all alternate in one process, on one thread.
    """
    inertias, times = (np.empty((len(seeds), len(fits))) for _ in range(2))
    for row, seed in enumerate(seeds):
        for column, fit in enumerate(fits.values()):
            start = time.process_time()
            inertias[row, column] = fit(X, k, seed)
            times[row, column] = time.process_time() - start
    ratios = inertias[:, 1:] / inertias[:, :1]
    means, slower = np.exp(np.log(ratios).mean(0)), np.median(times[:, 1:] / times[:, :1], axis=0)
    result: dict[str, Any] = {}
    for name, mean, largest, factor in zip(list(fits)[1:], means, ratios.max(0), slower, strict=True):
        result |= {name: mean, f"{name}, largest": largest, f"{name}, time": factor}
    return result


def real() -> Iterator[Row]:
    """Compare with KMeans of ten starts and breathing k-means on real data, relative to one start."""
    fits: dict[str, Fit] = {
        "KMeans": kmeans,
        "universal": ours,
        "10 starts": lambda X, k, seed: kmeans(X, k, seed, 10),
        "exact": lambda X, k, seed: ours(X, k, seed, "exact"),
    }
    if importlib.util.find_spec("bkmeans"):
        fits["breathing"] = breathing
    else:
        print("without breathing k-means: bkmeans is not installed", file=sys.stderr)
    for name, X, k in problems():
        yield {"data": name, "n": len(X), "d": X.shape[1], "k": k} | measure(fits, X, k, SEEDS)


def mixtures() -> Iterator[Row]:
    """Compare with exact iterations from the same start, on mixtures with other seeds and larger sizes."""
    for family in FAMILIES:
        distribution = MixedDistribution((2, 64), (2, 64), (100, 20_000), (family,))
        sampler, generator = MixedSampler(distribution, most=1 << 20), torch.Generator().manual_seed(2**40)
        tasks = [sampler.draw(1, generator) for _ in range(N_TASKS)]
        for init in ("random", "k-means++"):
            fits: dict[str, Fit] = {
                name: lambda X, k, seed, name=name, init=init: ours(X, k, seed, name, init)  # type: ignore[misc]
                for name in ("exact", "universal")
            }
            rows = [
                measure(fits, samples[0].double().numpy(), centers.shape[1], [number])
                for number, (samples, centers) in enumerate(tasks)
            ]
            yield {"family": family, "start": init, "tasks": len(rows)} | summary(rows)


def moves() -> Iterator[Row]:
    """Compare moves with the network, with Lloyd's iterations in its place, and with neither."""

    def lloyd_step(step: ScalarStep, centers: np.ndarray) -> np.ndarray:
        start = torch.from_numpy(centers).to(step.samples)
        return lloyd_iterations(step.samples[None], start[None], 1)[0].double().numpy()

    def with_step(step: Callable[[ScalarStep, np.ndarray], np.ndarray]) -> Fit:
        def fit(X: np.ndarray, k: int, seed: int) -> float:
            with mock.patch.object(ScalarStep, "step", step):
                return ours(X, k, seed)

        return fit

    fits = {
        "exact": lambda X, k, seed: ours(X, k, seed, "exact"),
        "network": ours,
        "Lloyd in its place": with_step(lloyd_step),
        "neither": with_step(lambda _, centers: centers),
    }
    for name, X, k in problems():
        yield {"data": name, "n": len(X), "d": X.shape[1], "k": k} | measure(fits, X, k, SEEDS[:3])


def far() -> Iterator[Row]:
    """Compare with exact iterations where there are far more clusters or features than in training."""
    random = np.random.default_rng(0)
    fits: dict[str, Fit] = {"exact": lambda X, k, seed: ours(X, k, seed, "exact"), "universal": ours}
    for n, d, k in ((20_000, 8, 1000), (2000, 1000, 20)):
        X = random.uniform(size=(k, d))[random.integers(k, size=n)] + 0.1 * random.normal(size=(n, d))
        yield {"data": "blobs", "n": n, "d": d, "k": k} | measure(fits, X, k, SEEDS[:2])


def summary(rows: Sequence[Row]) -> Row:
    """Geometric mean of every column of numbers; of the columns named "largest", the largest."""
    return {
        name: max(row[name] for row in rows)
        if name.endswith("largest")
        else math.exp(np.mean([math.log(row[name]) for row in rows]))
        for name in rows[0]
        if isinstance(rows[0][name], float)
    }


TABLES: dict[str, Callable[[], Iterator[Row]]] = {
    "real": real,
    "mixtures": mixtures,
    "moves": moves,
    "far": far,
    "ablations": ablations,
}


def main(arguments: Sequence[str]) -> None:
    """Write the table named to the CSV file named; a last line of means, but for ablations."""
    table, path = arguments
    warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
    torch.set_num_threads(1)
    origin, rows = {"made_with": made_with()}, list[Row]()
    with threadpool_limits(1), open(path, "w", newline="", encoding="utf-8") as file:
        for row in TABLES[table]():
            if not rows:
                writer = csv.DictWriter(file, [*row, *origin])
                writer.writeheader()
            rows.append(row)
            writer.writerow(_rounded(row) | origin)
            file.flush()
            print(_rounded(row), file=sys.stderr, flush=True)
        if table != "ablations":
            writer.writerow({next(iter(rows[0])): "all"} | _rounded(summary(rows)) | origin)
            print(_rounded(summary(rows)), file=sys.stderr)


def _rounded(row: Row) -> Row:
    return {
        name: round(float(value), 4) if isinstance(value, float) else value for name, value in row.items()
    }


if __name__ == "__main__":
    main(sys.argv[1:])
