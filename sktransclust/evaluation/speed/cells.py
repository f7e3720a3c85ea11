"""The problems of the benchmark: sizes, and data of that size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_sample_image

_SPARSE_ENTRIES = 100  # of a row


@dataclass(frozen=True)
class Cell:
    """One problem of the benchmark."""

    data: str  # a key of `DATA`
    n_samples: int
    n_features: int
    n_clusters: int
    dtype: str = "float32"

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.data} {self.n_samples}x{self.n_features}, {self.n_clusters}"


def blobs(cell: Cell, rng: np.random.Generator) -> np.ndarray:
    """As many overlapping groups as clusters: normal places, and normal noise of the same variance."""
    places = rng.standard_normal((cell.n_clusters, cell.n_features))
    member = rng.integers(0, cell.n_clusters, cell.n_samples)
    return places[member] + rng.standard_normal((cell.n_samples, cell.n_features))


def sparse(cell: Cell, rng: np.random.Generator) -> sp.csr_array:
    """Rows of a few entries, most of them in columns that a row's group prefers."""
    entries = min(_SPARSE_ENTRIES, cell.n_features)
    places = rng.integers(0, cell.n_features, cell.n_clusters)
    member = rng.integers(0, cell.n_clusters, cell.n_samples)
    spread = rng.standard_normal((cell.n_samples, entries)) * (cell.n_features / 20)
    columns = (places[member][:, None] + spread).astype(np.int64) % cell.n_features
    row = np.repeat(np.arange(cell.n_samples), entries)
    values = rng.random(cell.n_samples * entries) + 0.1
    # Entries that meet add up, so that a few rows have fewer.
    matrix = sp.coo_array((values, (row, columns.ravel())), shape=(cell.n_samples, cell.n_features)).tocsr()
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return matrix


# How the data of a cell are made; each of shape (n_samples, n_features).
DATA: dict[str, Any] = {
    "iris": lambda cell, rng: load_iris().data,
    "digits": lambda cell, rng: load_digits().data,
    "photo": lambda cell, rng: load_sample_image("china.jpg").reshape(-1, 3) / 255,
    "blobs": blobs,
    "uniform": lambda cell, rng: rng.random((cell.n_samples, cell.n_features)),
    "sparse": sparse,
}

_SINGLE = (
    Cell("iris", 150, 4, 3),
    Cell("digits", 1797, 64, 10),
    Cell("blobs", 2000, 10, 5),
    Cell("blobs", 20_000, 16, 8),
    Cell("photo", 273_280, 3, 64),
    Cell("photo", 273_280, 3, 256),
    Cell("blobs", 100_000, 16, 64),
    Cell("uniform", 100_000, 32, 100),
    Cell("blobs", 100_000, 64, 256),
    Cell("blobs", 1_000_000, 16, 8),
    Cell("blobs", 1_000_000, 2, 20),
    Cell("blobs", 50_000, 128, 1000),
    Cell("blobs", 50_000, 256, 1000),
    Cell("sparse", 20_000, 10_000, 20),
)
CELLS = (*_SINGLE, *(replace(_SINGLE[i], dtype="float64") for i in (0, 1, 3, 6, 10)))
QUICK = (
    _SINGLE[0],
    Cell("blobs", 500, 8, 5),
    Cell("sparse", 300, 200, 4),
    replace(_SINGLE[0], dtype="float64"),
)

# Time against one size, over two decades; the others stay.
_TWO_DECADES = (4, 13, 40, 130, 400)
GROWTH = {
    "n_samples": tuple(Cell("blobs", 500 * size, 16, 16) for size in _TWO_DECADES),
    "n_features": tuple(Cell("blobs", 20_000, size, 16) for size in _TWO_DECADES),
    "n_clusters": tuple(Cell("blobs", 20_000, 16, size) for size in _TWO_DECADES),
}


def make_data(cell: Cell, seed: int) -> np.ndarray | sp.csr_array:
    """Return the samples of a cell, shape (n_samples, n_features), in its dtype."""
    X = DATA[cell.data](cell, np.random.default_rng(seed)).astype(cell.dtype)
    assert X.shape == (cell.n_samples, cell.n_features)
    return X


def given_centers(X: np.ndarray | sp.csr_array, n_clusters: int, seed: int) -> np.ndarray:
    """Return different samples as initial centers, shape (n_clusters, n_features), dense."""
    order = np.random.default_rng(seed).permutation(X.shape[0])[: 4 * n_clusters]
    rows = X[order] if isinstance(X, np.ndarray) else X[order].toarray()
    first = np.sort(np.unique(rows, axis=0, return_index=True)[1])[:n_clusters]
    return np.ascontiguousarray(rows[first])
