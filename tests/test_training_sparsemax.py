import math

import numpy as np
import pytest
import torch
from scipy.optimize import bisect

from sktransclust.training.sparsemax import sparsemax


def projection_by_bisection(scores):
    """Second algorithm: the threshold t at which sum max(scores - t, 0) is 1."""
    scores = np.asarray(scores, dtype=np.float64)
    finite = scores[np.isfinite(scores)]

    def excess(t):
        return np.maximum(scores - t, 0).sum() - 1

    return np.maximum(scores - bisect(excess, finite.max() - 1.5, finite.max(), xtol=1e-15, rtol=1e-15), 0)


def random_scores(*shape, spread=1.0, seed=0):
    return spread * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("spread", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("k", [1, 2, 3, 7, 33])
def test_projection_equals_bisection(k, spread):
    scores = random_scores(20, k, spread=spread)
    expected = np.stack([projection_by_bisection(row) for row in scores])
    np.testing.assert_allclose(sparsemax(scores).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.0, 0.0], [0.5, 0.5]),
        ([0.5, 0.0], [0.75, 0.25]),  # threshold -0.25
        ([1.0, 0.0], [1.0, 0.0]),  # exactly where the second leaves the support
        ([2.0, 1.7, 0.0], [0.65, 0.35, 0.0]),
        ([0.1, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]),
    ],
)
def test_projections_by_hand(scores, expected):
    torch.testing.assert_close(sparsemax(torch.tensor(scores)), torch.tensor(expected))


def test_a_point_of_the_simplex_is_its_own_projection():
    point = torch.softmax(random_scores(10, 5), dim=-1)
    torch.testing.assert_close(sparsemax(point), point)


def test_shifting_all_scores_changes_nothing():
    scores = random_scores(10, 6)
    torch.testing.assert_close(sparsemax(scores + 3.0), sparsemax(scores))


@pytest.mark.parametrize("shift", [1e6, -1e6])
def test_float32_scores_of_a_million_lose_nothing_but_their_own_rounding(shift):
    scores = torch.tensor([0.5, 0.25, -3.0]) + shift  # multiples of 1/16, exact near a million
    torch.testing.assert_close(sparsemax(scores), torch.tensor([0.625, 0.375, 0.0]), rtol=0, atol=0)


def test_scores_of_minus_infinity_get_probability_zero():
    scores = torch.tensor([0.5, -math.inf, 0.0, -math.inf], dtype=torch.float64, requires_grad=True)
    probabilities = sparsemax(scores)
    (gradient,) = torch.autograd.grad(probabilities[0], scores)
    assert probabilities.tolist() == [0.75, 0.0, 0.25, 0.0]
    assert gradient.tolist() == [0.5, 0.0, -0.5, 0.0]


def test_probabilities_sum_to_one_on_any_leading_dimensions():
    probabilities = sparsemax(random_scores(2, 3, 4, 9, spread=5.0))
    torch.testing.assert_close(probabilities.sum(dim=-1), torch.ones(2, 3, 4, dtype=torch.float64))
    assert (probabilities >= 0).all()


@pytest.mark.parametrize("k", [1, 2, 5, 11])
def test_derivative_passes_gradcheck(k):
    scores = random_scores(4, k, spread=0.5).requires_grad_()
    assert torch.autograd.gradcheck(sparsemax, scores)


def test_derivative_on_the_support_centers_the_gradient_and_is_zero_elsewhere():
    scores = torch.tensor([0.5, 0.25, -3.0], requires_grad=True)
    jacobian = torch.autograd.functional.jacobian(sparsemax, scores)
    assert jacobian.tolist() == [[0.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
