"""What is true of every fit, on data that hypothesis searches for a counterexample.

Three kinds of problem. *Wild* ones have coordinates of any size, for what is true without exception.
*Exact* ones are small integers on both sides of 0, so that no sum is rounded: whatever the order of the
sums, results have the same bits, ties included. *Generic* ones have no tie within reach of rounding.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from sktransclust import LloydTransformer, TransformerKMeans
from sktransclust.model import LloydConfig

from . import oracle
from .backends import available_backends
from .cases import EPS, as_float64, smallest_gap, squared_scale

pytestmark = pytest.mark.filterwarnings("ignore:Number of distinct clusters")
# Exact attentions with each backend, and learned steps before those of the one that "auto" chooses.
WAYS = [(backend, "exact") for backend in available_backends()] + [("auto", "learned")]
ways = pytest.mark.parametrize(
    ("backend", "weights"), WAYS, ids=[f"{backend}-{weights}" for backend, weights in WAYS]
)
LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "CSR": sp.csr_array,
}


@dataclass(frozen=True)
class Problem:
    """Samples, their weights or None, and initial centers."""

    X: np.ndarray
    weights: np.ndarray | None
    init: np.ndarray

    def fit(self, backend="auto", weights="exact", data=None, **parameters):
        """Fit to `data`, the samples in another layout, from the initial centers."""
        network = weights
        if weights == "learned":
            config = LloydConfig(self.init.shape[1], len(self.init))
            generator = torch.Generator().manual_seed(0)
            network = LloydTransformer(config, generator=generator, dtype=torch.float64)
        defaults = {"n_steps": 3, "n_init": 1, "device": "cpu"} | parameters
        m = TransformerKMeans(len(self.init), init=self.init, weights=network, backend=backend, **defaults)
        return m.fit(self.X if data is None else data, sample_weight=self.weights)

    def counted(self):
        """The samples that have a weight."""
        return self.X if self.weights is None else self.X[self.weights > 0]

    def total_weight(self):
        return float(len(self.X) if self.weights is None else self.weights.sum())


def storage(X, layout, backend, weights):
    """The samples in a layout, dense where there is no other way."""
    dense_alone = backend == "compiled" or weights == "learned"
    return LAYOUTS["C" if layout == "CSR" and dense_alone else layout](X)


@st.composite
def shapes(draw):
    n_samples, n_features = draw(st.integers(1, 24)), draw(st.integers(1, 5))
    return n_samples, n_features, draw(st.integers(1, min(n_samples, 7)))


@st.composite
def sample_weights(draw, n_samples, smallest=0.0):
    kind = draw(st.sampled_from(["none", "counts", "any"]))
    if kind == "none":
        return None
    entries = st.integers(0, 3) if kind == "counts" else or_zero(st.floats(0, 1e6), smallest)
    weights = draw(hnp.arrays(np.float64, n_samples, elements=entries))
    assume(weights.max() > 0)
    return weights


def or_zero(numbers, smallest):
    """Replace numbers below the smallest by 0."""
    return numbers.map(lambda x: x if abs(x) >= smallest else 0.0)


@st.composite
def wild(draw, largest=None, smallest=0.0):
    """Coordinates up to the ends of either type, or near each other and far away, with duplicates.

    Neither coordinates nor weights are below the smallest, other than 0.
    """
    n_samples, n_features, n_clusters = draw(shapes())
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    top = float(np.finfo(dtype).max) / 2**20
    size = draw(st.sampled_from([1.0, 1e3, top if largest is None else min(top, largest)]))
    number = or_zero(st.floats(-size, size, width=np.dtype(dtype).itemsize * 8), smallest)
    X = draw(hnp.arrays(dtype, (n_samples, n_features), elements=number))
    if size == 1.0:
        offset = draw(st.sampled_from([0.0, 1.0, 1e4, 1e7, -1e12]))
        X = X + np.asarray(offset, dtype=dtype)
    if draw(st.booleans()):
        X = X[draw(hnp.arrays(np.int64, n_samples, elements=st.integers(0, n_samples - 1)))]
    rows = draw(hnp.arrays(np.int64, n_clusters, elements=st.integers(0, n_samples - 1)))
    init = X[rows]
    if draw(st.booleans()):
        init = draw(hnp.arrays(dtype, init.shape, elements=number))
    return Problem(X, draw(sample_weights(n_samples, smallest)), init)


@st.composite
def exact(draw):
    """Integers, with a row of -9 and one of 9: the mean is so near 0 that no feature is shifted."""
    n_samples, n_features, n_clusters = draw(shapes())
    X = draw(hnp.arrays(np.float64, (n_samples, n_features), elements=st.integers(-9, 9)))
    X = np.vstack([np.full(n_features, -9.0), X, np.full(n_features, 9.0)])
    counts = draw(hnp.arrays(np.float64, len(X), elements=st.integers(1, 3)))
    rows = draw(st.permutations(range(len(X))))[:n_clusters]
    problem = Problem(X, counts, X[rows])
    assume(not is_ever_empty(problem))
    return problem


@st.composite
def generic(draw):
    """Normal numbers from a seed, away from the origin or not, as far from ties as these are."""
    n_samples, n_features, n_clusters = draw(shapes())
    r = np.random.RandomState(draw(st.integers(0, 2**32 - 1)))
    X = r.randn(n_samples, n_features) + draw(st.sampled_from([0.0, 1.0, -30.0])) * r.randn(n_features)
    weights = draw(st.sampled_from([None, r.randint(1, 4, n_samples).astype(float)]))
    problem = Problem(X, weights, X[r.permutation(n_samples)[:n_clusters]])
    assume(not is_ever_empty(problem))
    # Centers that are means at the start end the fit at once if their sums are not rounded, else one later.
    assume(abs(oracle.lloyd(X, problem.init, 1, weights)[0][1] - problem.init).max() > 1e-9)
    assume(smallest_gap(X, problem.init, weights, 30) > 1e-9 * squared_scale(X))
    return problem


def is_ever_empty(problem):
    """Whether a cluster loses all its samples on Lloyd's path, and so would be relocated."""
    path = oracle.lloyd(problem.X, problem.init, 40, problem.weights)
    return any(len(np.unique(labels)) < len(problem.init) for labels, _ in path)


def exact_squared_distances(X, centers):
    """Squared distances as fractions: rows of X by centers."""
    rows, keys = (
        [list(map(Fraction, row)) for row in as_float64(points).tolist()] for points in (X, centers)
    )
    return [[sum((a - b) ** 2 for a, b in zip(row, key, strict=True)) for key in keys] for row in rows]


@ways
@given(problem=wild(), layout=st.sampled_from(list(LAYOUTS)), max_iter=st.sampled_from([1, 2, 300]))
@example(problem=Problem(np.array([[16.0, 5e-324]]), None, np.zeros((1, 2))), layout="C", max_iter=1)
def test_labels_are_the_nearest_centers(backend, weights, problem, layout, max_iter):
    data = storage(problem.X, layout, backend, weights)
    m = problem.fit(backend, weights, data, max_iter=max_iter, tol=0)
    assert np.isfinite(m.cluster_centers_).all()
    # Direct differences in float64 are off by less than this share, whatever their size, until their
    # squares vanish beside the largest coordinate's.
    share = Fraction(4 * (problem.X.shape[1] + 3) * EPS)
    largest = Fraction(float(max(abs(m.cluster_centers_).max(), abs(problem.X).max())))
    floor = problem.X.shape[1] * largest**2 * Fraction(2) ** -1000
    for label, squared in zip(m.labels_, exact_squared_distances(problem.X, m.cluster_centers_), strict=True):
        assert squared[label] <= min(squared) * (1 + share) + floor


@ways
@given(problem=wild(), layout=st.sampled_from(list(LAYOUTS)))
@example(
    problem=Problem(np.array([[3.3e99], [0.0], [2.4e257]]), np.array([0.0, 1.0, 0.0]), np.zeros((1, 1))),
    layout="C",
)
def test_labels_are_those_of_predict_for_all_rows_and_for_each_alone(backend, weights, problem, layout):
    data = storage(problem.X, layout, backend, weights)
    m = problem.fit(backend, weights, data)
    assert m.labels_.dtype == np.int32
    assert_array_equal(m.predict(data), m.labels_)
    distances = m.transform(data)
    for i in range(0, len(problem.X), 4):
        row = data[[i]] if sp.issparse(data) else data[i : i + 1]
        assert_array_equal(m.predict(row), m.labels_[[i]])
        assert_array_equal(m.transform(row), distances[[i]])


@ways
@given(problem=wild(), layout=st.sampled_from(list(LAYOUTS)))
def test_inertia_is_minus_the_score_and_the_sum_of_squares(backend, weights, problem, layout):
    data = storage(problem.X, layout, backend, weights)
    m = problem.fit(backend, weights, data)
    assert -m.score(data, sample_weight=problem.weights) == m.inertia_ == m.inertia_history_[-1]
    squared = exact_squared_distances(problem.X, m.cluster_centers_)
    w = [1] * len(squared) if problem.weights is None else map(Fraction, problem.weights.tolist())
    truth = sum(weight * min(row) for weight, row in zip(w, squared, strict=True))
    assert_is_rounding_of(m.inertia_, truth, problem)


def assert_is_rounding_of(inertia, truth, problem):
    """Compare with a fraction, which may be beyond the range of floats; sums of n * d terms are rounded."""
    share = Fraction(4 * (problem.X.size + 3) * EPS)
    top = Fraction(np.finfo(np.float64).max)
    if math.isinf(inertia):
        assert truth * (1 + share) > top
        return
    largest = Fraction(float(max(abs(problem.X).max(), abs(problem.init).max())))
    # Squares, and products with weights, below the least float.
    floor = Fraction(problem.total_weight() + 1) * problem.X.size * max(largest**2, 1) * Fraction(2) ** -1000
    assert abs(Fraction(inertia) - truth) <= share * truth + floor


@ways
@given(problem=wild(largest=1e140), layout=st.sampled_from(list(LAYOUTS)))
def test_inertia_never_rises_in_exact_iterations(backend, weights, problem, layout):
    data = storage(problem.X, layout, backend, weights)
    m = problem.fit(backend, weights, data, tol=0)
    history = m.inertia_history_[-m.n_iter_ - 1 :]
    assert len(history) == m.n_iter_ + 1
    before, after = history[:-1], history[1:]
    assert (
        after - before <= rounding_of_inertia(problem, data, before) + rounding_of_centers(problem, m)
    ).all()


def rounding_of_inertia(problem, data, inertia):
    """Bound on the rounding of an inertia that is a difference of sums of squares around a point.

    That point is within the data's extent of each sample, times 3, but 0 for sparse data. The sums have no
    more than n * d terms of that size, of the size of the inertia, or k * d of their sum.
    """
    X = as_float64(problem.X)
    spread = (X**2).sum(axis=1).max() if sp.issparse(data) else 9 * (np.ptp(X, axis=0) ** 2).sum()
    n_terms = X.size + problem.init.size + 8
    return 8 * n_terms * EPS * (problem.total_weight() * spread + inertia)


def rounding_of_centers(problem, m):
    """Most that the last inertia gains by storing the centers in the data's type.

    Around its mean, a cluster's inertia grows by its weight times the squared move.
    """
    move = np.spacing(np.abs(m.cluster_centers_)).astype(float)
    gain = np.zeros(m.n_iter_)
    gain[-1] = problem.total_weight() * (move**2).sum(axis=1).max()
    return gain


@ways
@given(
    problem=wild(largest=2.0**20, smallest=2.0**-20),
    layout=st.sampled_from(list(LAYOUTS)),
    power=st.integers(-900, 900),
)
def test_a_power_of_two_as_factor_changes_the_scale_alone(backend, weights, problem, layout, power):
    assume(np.ptp(problem.counted(), axis=0).any())  # Data of no extent have no scale of their own.
    if problem.X.dtype == np.float32:
        power = power // 12
    scaled = replace(problem, X=np.ldexp(problem.X, power), init=np.ldexp(problem.init, power))
    one, other = (p.fit(backend, weights, storage(p.X, layout, backend, weights)) for p in (problem, scaled))
    assert_array_equal(other.labels_, one.labels_)
    assert other.n_iter_ == one.n_iter_
    assert_array_equal(other.cluster_centers_, np.ldexp(one.cluster_centers_, power))
    with np.errstate(over="ignore", under="ignore"):
        assert_array_equal(other.inertia_history_, np.ldexp(one.inertia_history_, 2 * power))
        assert_array_equal(other.transform(scaled.X), np.ldexp(one.transform(problem.X), power))


@pytest.mark.parametrize("backend", available_backends())
@given(problem=exact(), data=st.data())
def test_permuted_rows_have_permuted_labels_bit_for_bit_where_sums_are_exact(backend, problem, data):
    order = np.array(data.draw(st.permutations(range(len(problem.X)))))
    moved = replace(problem, X=problem.X[order], weights=problem.weights[order])
    one, other = (p.fit(backend, tol=0) for p in (problem, moved))
    assert_same_up_to_order_of_sums(one, other, order)


@pytest.mark.parametrize("backend", available_backends())
@given(problem=exact())
def test_weights_are_repetition_bit_for_bit_where_sums_are_exact(backend, problem):
    counts = problem.weights.astype(int)
    repeated = Problem(np.repeat(problem.X, counts, axis=0), None, problem.init)
    one, other = (p.fit(backend, tol=0) for p in (problem, repeated))
    assert_same_up_to_order_of_sums(one, other, np.repeat(np.arange(len(counts)), counts))


@pytest.mark.parametrize("backend", available_backends())
@given(problem=exact())
def test_sparse_is_dense_bit_for_bit_where_sums_are_exact(backend, problem):
    dense = problem.fit(backend, tol=0)
    sparse = problem.fit(tol=0, data=sp.csr_array(problem.X))
    assert_same_up_to_order_of_sums(dense, sparse, slice(None))


def assert_same_up_to_order_of_sums(one, other, order):
    """Row i of the other fit is row ``order[i]`` of the first; only inertia is a sum of rounded terms."""
    assert_array_equal(other.labels_, one.labels_[order])
    assert_array_equal(other.cluster_centers_, one.cluster_centers_)
    assert other.n_iter_ == one.n_iter_
    assert_allclose(other.inertia_history_, one.inertia_history_, rtol=1e-12)


@ways
@given(problem=generic(), data=st.data())
def test_permuted_rows_have_permuted_labels_where_there_are_no_ties(backend, weights, problem, data):
    order = np.array(data.draw(st.permutations(range(len(problem.X)))))
    moved = replace(
        problem,
        X=problem.X[order],
        weights=None if problem.weights is None else problem.weights[order],
    )
    one, other = (p.fit(backend, weights, tol=0) for p in (problem, moved))
    assert_same_but_for_rounding(one, other, order)


@ways
@given(problem=generic())
def test_weights_are_repetition_where_there_are_no_ties(backend, weights, problem):
    counts = np.ones(len(problem.X), int) if problem.weights is None else problem.weights.astype(int)
    repeated = Problem(np.repeat(problem.X, counts, axis=0), None, problem.init)
    one, other = (p.fit(backend, weights, tol=0) for p in (problem, repeated))
    assert_same_but_for_rounding(one, other, np.repeat(np.arange(len(counts)), counts))


@pytest.mark.parametrize("backend", available_backends())
@given(problem=generic())
def test_sparse_is_dense_where_there_are_no_ties(backend, problem):
    dense = problem.fit(backend, tol=0)
    sparse = problem.fit(tol=0, data=sp.csr_array(problem.X))
    assert_same_but_for_rounding(dense, sparse, slice(None))


def assert_same_but_for_rounding(one, other, order):
    assert_array_equal(other.labels_, one.labels_[order])
    assert_allclose(other.cluster_centers_, one.cluster_centers_, rtol=1e-9, atol=1e-9)
    assert other.n_iter_ == one.n_iter_
    assert_allclose(other.inertia_history_, one.inertia_history_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("backend", available_backends())
@given(problem=st.one_of(exact(), generic()), tol=st.floats(1e-12, 1e3))
def test_a_fit_from_converged_centers_with_a_tolerance_is_one_iteration(backend, problem, tol):
    converged = problem.fit(backend, tol=0)
    again = replace(problem, init=converged.cluster_centers_).fit(backend, tol=tol)
    assert again.n_iter_ == 1
    assert_array_equal(again.labels_, converged.labels_)
    assert_allclose(again.cluster_centers_, converged.cluster_centers_, rtol=1e-12, atol=1e-12)
