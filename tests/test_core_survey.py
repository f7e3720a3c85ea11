"""The extent of features: the compiled survey against NumPy's, and what a lack of a build leaves."""

import numpy as np
import pytest
import torch

from sktransclust.core.survey import extent_of, plain_extent_of

LAYOUTS = {
    "rows": lambda X: X,
    "columns": np.asfortranarray,
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "every other": lambda X: np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::2],
    "wider rows": lambda X: np.hstack([X, X])[:, : X.shape[1]],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (3, 300), (1000, 7), (2000, 256), (5000, 33)])
def test_extent_is_numpys(n, d, dtype, layout):
    X = (np.random.default_rng(0).standard_normal((n, d)) + 3).astype(dtype)
    mean, low, high = extent_of(LAYOUTS[layout](X))
    np.testing.assert_allclose(mean, X.mean(0, dtype=np.float64), rtol=1e-12)
    np.testing.assert_array_equal(low, X.min(0))
    np.testing.assert_array_equal(high, X.max(0))
    np.testing.assert_allclose(plain_extent_of(LAYOUTS[layout](X))[0], mean, rtol=1e-12)


def test_extent_has_the_same_bits_for_any_number_of_threads():
    X = np.random.default_rng(0).standard_normal((100_000, 5))
    before, found = torch.get_num_threads(), []
    try:
        for n_threads in (1, 2, 3):
            torch.set_num_threads(n_threads)
            found.append(np.array(extent_of(X)))
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_means_of_the_largest_floats_do_not_overflow():
    X = np.full((10, 2), np.finfo(np.float64).max) * [1, -1]
    mean, low, high = extent_of(X)
    np.testing.assert_allclose(mean, X[0], rtol=1e-12)
    np.testing.assert_array_equal([low, high], [X[0], X[0]])
