"""What the bundled checkpoints do on real data, through the estimator, beside scikit-learn's KMeans.

``python -m sktransclust.evaluation.real_data FILE.csv`` computes the documentation's table anew, in minutes
on one core. All data come with scikit-learn.
"""

import csv
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_sample_image, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.image import extract_patches_2d
from sklearn.preprocessing import StandardScaler

from .. import TransformerKMeans
from ..checkpoint import CheckpointInfo, list_checkpoints
from .provenance import made_with

SEEDS = range(10)
INITS = ("k-means++", "random")
SAME = 1e-6  # inertias that differ relatively by less are the same solution


@dataclass(frozen=True)
class Comparison:
    """Final inertias over the seeds: learned with one start, KMeans with one start and with ten.

    All fits of a seed draw their starts with that seed, so that the first two begin with the same centers.
    """

    mean_to_1: float  # mean of learned / KMeans with one start; below 1 the learned fit is better
    median_to_1: float
    lower: int  # fits in which the learned one has the lower inertia of these two
    same: int
    higher: int
    mean_to_10: float  # mean of learned / KMeans with ten starts
    median_to_10: float
    kmeans_1_to_10: float  # mean of KMeans with one start / KMeans with ten starts


def standardized(load: Callable[[], dict[str, np.ndarray]]) -> np.ndarray:
    """Return a table whose columns have different units with each at mean 0 and variance 1."""
    return StandardScaler().fit_transform(load()["data"])


def photo_patches(side: int = 4, n_patches: int = 1000) -> np.ndarray:
    """Return square patches of a photograph as rows of colors between 0 and 1, drawn with a fixed seed."""
    photo = load_sample_image("china.jpg") / 255.0
    return extract_patches_2d(photo, (side, side), max_patches=n_patches, random_state=0).reshape(
        n_patches, -1
    )


DATA: dict[str, Callable[[], np.ndarray]] = {
    "iris": lambda: standardized(load_iris),
    "wine": lambda: standardized(load_wine),
    "breast cancer": lambda: standardized(load_breast_cancer),
    "digits": lambda: load_digits().data,
    "photo patches": photo_patches,
}
ALL = "all of these"


@cache
def principal_components(name: str, n_features: int) -> np.ndarray | None:
    """Return a data set in its first principal components; None if it has fewer columns."""
    X = DATA[name]()
    if X.shape[1] < n_features:
        return None
    return PCA(n_features, svd_solver="full").fit_transform(X)


@cache
def kmeans_inertias(name: str, n_features: int, n_clusters: int, init: str, n_init: int) -> np.ndarray:
    """Return the final inertia of KMeans for each seed: shape (n_seeds,)."""
    X = principal_components(name, n_features)
    return np.array(
        [KMeans(n_clusters, init=init, n_init=n_init, random_state=seed).fit(X).inertia_ for seed in SEEDS]
    )


def learned_inertias(info: CheckpointInfo, X: np.ndarray, init: str) -> np.ndarray:
    """Return the final inertia of the learned fit for each seed: shape (n_seeds,)."""
    learned = TransformerKMeans(
        info.model.n_clusters,
        init=init,
        n_init=1,
        weights=info.name,
        embedding=info.model.embedding,
        device="cpu",
    )
    return np.array([learned.set_params(random_state=seed).fit(X).inertia_ for seed in SEEDS])


def compare(learned: np.ndarray, one: np.ndarray, ten: np.ndarray) -> Comparison:
    """Compare final inertias, each of shape (n_fits,)."""
    to_one, to_ten = learned / one, learned / ten
    return Comparison(
        float(to_one.mean()),
        float(np.median(to_one)),
        int((to_one < 1 - SAME).sum()),
        int((abs(to_one - 1) <= SAME).sum()),
        int((to_one > 1 + SAME).sum()),
        float(to_ten.mean()),
        float(np.median(to_ten)),
        float((one / ten).mean()),
    )


def evaluate(info: CheckpointInfo, init: str) -> Iterator[tuple[str, int, Comparison]]:
    """Compare one checkpoint with KMeans on every data set that has enough columns, then on all of them.

    Yields
    ------
    data : str
        Name of the data set, or `ALL`.
    n_samples : int
    comparison : Comparison
    """
    d, k = info.model.n_features, info.model.n_clusters
    fits, n_samples = [], 0
    for name in DATA:
        X = principal_components(name, d)
        if X is None:
            continue
        inertias = (learned_inertias(info, X, init), *(kmeans_inertias(name, d, k, init, n) for n in (1, 10)))
        fits.append(inertias)
        n_samples += len(X)
        yield name, len(X), compare(*inertias)
    yield ALL, n_samples, compare(*map(np.concatenate, zip(*fits, strict=True)))


def rows() -> Iterator[dict[str, Any]]:
    """Yield the lines of the table: all bundled checkpoints that have a code of the clusters."""
    origin = {"seeds": f"{SEEDS[0]} to {SEEDS[-1]}", "made_with": made_with()}
    for info, init in product(list_checkpoints("dense"), INITS):
        if info.model.embedding == "none":
            continue
        for data, n_samples, comparison in evaluate(info, init):
            numbers = {
                name: round(value, 4) if isinstance(value, float) else value
                for name, value in asdict(comparison).items()
            }
            where = {"checkpoint": info.name, "init": init, "data": data, "n_samples": n_samples}
            yield where | numbers | origin


def main(arguments: Sequence[str]) -> None:
    """Write the table to the CSV file named."""
    (path,) = arguments
    warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer: csv.DictWriter[str] | None = None
        for row in rows():
            if writer is None:
                writer = csv.DictWriter(file, list(row))
                writer.writeheader()
            writer.writerow(row)
            print(row, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
