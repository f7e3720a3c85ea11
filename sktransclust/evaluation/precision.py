"""How far labels and inertia are from exact, beside scikit-learn's: the table of the documentation.

``python -m sktransclust.evaluation.precision FILE.csv`` computes it anew. What is exact is computed in
rational numbers: every float is one.
"""

import csv
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from .. import TransformerKMeans
from .provenance import made_with

N_SAMPLES, N_FEATURES, N_CLUSTERS = 300, 2, 4
SEEDS = range(3)
OFFSETS = {
    "float64": (0.0, 1.0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12),
    "float32": (0.0, 1.0, 1e2, 1e3, 1e4, 1e5, 1e6),  # past which the samples themselves are equal
}
SCALES = {
    "float64": (1e-200, 1e-150, 1e-100, 1e-50, 1e50, 1e100, 1e150, 1e200),
    "float32": (1e-30, 1e-20, 1e-10, 1e10, 1e20, 1e30),
}


@dataclass(frozen=True)
class Errors:
    """What is wrong with a fit, given its own centers; the worst of several."""

    missing: int  # clusters without samples
    labels: int  # of `labels_` that are not a nearest center
    predicted: int  # of what `predict` then says of the same samples
    inertia: float  # |inertia_ - exact| / exact, where floats can hold the exact value


def samples(dtype: str, offset: float, scale: float, seed: int) -> np.ndarray:
    """Draw normal samples of shape (n_samples, n_features), times `scale`, plus `offset`, in `dtype`."""
    unit = np.random.RandomState(seed).randn(N_SAMPLES, N_FEATURES)
    return (unit * scale + offset).astype(dtype)


def exact_squared_distances(X: np.ndarray, centers: np.ndarray) -> list[list[Fraction]]:
    """Return the squared distances of X (n_samples, n_features) to centers, as fractions."""
    rows, keys = ([[Fraction(x) for x in point] for point in points.tolist()] for points in (X, centers))
    return [[sum(((a - b) ** 2 for a, b in zip(r, c, strict=True)), Fraction(0)) for c in keys] for r in rows]


def nearest_float(value: Fraction) -> float:
    """Round to a float; infinite where that is what overflow gives."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def errors(estimator: Any, X: np.ndarray) -> Errors:
    """Compare a fitted estimator's answers with the exact ones for its centers.

    Parameters
    ----------
    estimator : KMeans or TransformerKMeans
        Fitted to `X`.
    X : ndarray of shape (n_samples, n_features)
    """
    squared = exact_squared_distances(X, estimator.cluster_centers_)

    def n_wrong(labels: np.ndarray) -> int:
        return sum(row[label] > min(row) for row, label in zip(squared, labels, strict=True))

    exact = nearest_float(sum(map(min, squared), Fraction(0)))
    inertia = float(estimator.inertia_)
    if inertia == exact:
        relative = 0.0
    elif exact == 0 or np.isinf(exact):
        relative = float("inf")
    else:
        relative = abs(inertia - exact) / exact
    missing = len(squared[0]) - len(np.unique(estimator.labels_))
    return Errors(missing, n_wrong(estimator.labels_), n_wrong(estimator.predict(X)), relative)


def worst(cls: type, dtype: str, offset: float, scale: float) -> Errors:
    """Fit an estimator's class to samples of several seeds; return the largest error of each kind."""
    found = []
    for seed in SEEDS:
        X = samples(dtype, offset, scale, seed)
        estimator = cls(N_CLUSTERS, init=X[:N_CLUSTERS], n_init=1, tol=0, max_iter=50)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # scikit-learn's, of overflow and of clusters it does not find
            found.append(errors(estimator.fit(X), X))
    return Errors(*(max(error) for error in zip(*(asdict(f).values() for f in found), strict=True)))


def rows() -> Iterator[dict[str, Any]]:
    """Yield the lines of the table: every offset at scale 1, then every scale without offset."""
    for dtype in ("float64", "float32"):
        settings = [(offset, 1.0) for offset in OFFSETS[dtype]] + [(0.0, scale) for scale in SCALES[dtype]]
        for offset, scale in settings:
            line: dict[str, Any] = {"dtype": dtype, "offset": f"{offset:g}", "scale": f"{scale:g}"}
            for name, cls in (("ours", TransformerKMeans), ("sklearn", KMeans)):
                error = asdict(worst(cls, dtype, offset, scale))
                error["inertia"] = f"{error['inertia']:.1e}"
                line |= {f"{kind}_{name}": value for kind, value in error.items()}
            yield line | {"seeds": f"{SEEDS[0]} to {SEEDS[-1]}", "made_with": made_with()}


def main(arguments: Sequence[str]) -> None:
    """Write the table to the CSV file named."""
    (path,) = arguments
    table = list(rows())
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    main(sys.argv[1:])
