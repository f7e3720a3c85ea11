import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from scipy.special import lambertw
from sklearn.cluster import KMeans

from sktransclust.training.loss import (
    SMOOTHINGS,
    inertia,
    smoothed_inertia,
    smoothed_minimum,
    squared_distances,
)

TAUS = [1.0, 0.25, 0.14, 0.1]  # the paper's


def distances(*shape, seed=0):
    """Squared distances r of many samples to k centers, spread over the scales at which tau matters."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, dtype=torch.float64, generator=generator) * torch.logspace(
        -3, 1, shape[0], dtype=torch.float64
    ).unsqueeze(-1)


def task(n=9, k=4, d=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(2, size, d, dtype=torch.float64, generator=generator) for size in (n, k))


def test_squared_distances_equal_scipys():
    samples, centers = task()
    for x, c, r in zip(samples, centers, squared_distances(samples, centers), strict=True):
        np.testing.assert_allclose(r, cdist(x, c, "sqeuclidean"), atol=1e-14)


def test_inertia_is_that_of_scikit_learn():
    samples, centers = task(n=50)
    for x, c, value in zip(samples.numpy(), centers.numpy(), inertia(samples, centers), strict=True):
        model = KMeans(4, init=c, n_init=1, max_iter=1).fit(c)  # puts its centers where c has them
        np.testing.assert_allclose(value, -model.score(x))


def test_inertia_of_samples_on_the_centers_is_zero_and_never_negative():
    samples = torch.rand(1000, 3, 2, generator=torch.Generator().manual_seed(0))
    assert (inertia(samples, samples) >= 0).all()
    torch.testing.assert_close(inertia(samples, samples), torch.zeros(1000), rtol=0, atol=1e-6)


@pytest.mark.parametrize("tau", TAUS)
def test_smoothed_minima_are_ordered_between_their_bounds(tau):
    # -tau logsumexp(-r / tau) <= min r <= L2 <= NE
    r = distances(2000, 6)
    least = r.amin(dim=-1)
    l2, ne = smoothed_minimum(r, "l2", tau), smoothed_minimum(r, "ne", tau)
    slack = 1e-12
    assert (-tau * torch.logsumexp(-r / tau, dim=-1) <= least + slack).all()
    assert (least <= l2 + slack).all()
    assert (l2 <= ne + slack).all()


@pytest.mark.parametrize("tau", TAUS)
def test_gap_of_l2_is_tau_times_the_largest_weight_less_the_squared_norm(tau):
    r = distances(2000, 6)
    weights = SMOOTHINGS["l2"](-r / tau)
    gap = smoothed_minimum(r, "l2", tau) - r.amin(dim=-1)
    torch.testing.assert_close(
        gap, tau * (weights.amax(dim=-1) - weights.square().sum(dim=-1)), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("tau", TAUS)
def test_gap_of_ne_is_tau_times_entropy_plus_log_of_the_largest_weight(tau):
    r = distances(2000, 6)
    weights = SMOOTHINGS["ne"](-r / tau)
    gap = smoothed_minimum(r, "ne", tau) - r.amin(dim=-1)
    expected = tau * (torch.special.entr(weights).sum(dim=-1) + weights.amax(dim=-1).log())
    torch.testing.assert_close(gap, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 6, 10])
@pytest.mark.parametrize("tau", TAUS)
def test_largest_gaps_are_those_of_the_closed_forms(tau, k):
    # One center at 0, the others at one distance t: the worst case of both, found on a fine grid of t.
    t = torch.linspace(0, 8 * tau, 200_001, dtype=torch.float64)
    r = torch.cat([torch.zeros(len(t), 1, dtype=torch.float64), t.unsqueeze(-1).expand(-1, k - 1)], dim=-1)
    largest = {name: float(smoothed_minimum(r, name, tau).max()) for name in SMOOTHINGS}
    assert largest["l2"] == pytest.approx(tau * (k - 1) / (4 * k), rel=1e-6)
    assert largest["ne"] == pytest.approx(tau * lambertw((k - 1) / math.e).real, rel=1e-6)


@pytest.mark.parametrize("tau", TAUS)
def test_no_gap_exceeds_the_closed_forms(tau):
    k = 6
    r = distances(20_000, k)
    gap = {name: (smoothed_minimum(r, name, tau) - r.amin(dim=-1)).max() for name in SMOOTHINGS}
    assert gap["l2"] <= tau * (k - 1) / (4 * k) + 1e-12
    assert gap["ne"] <= tau * lambertw((k - 1) / math.e).real + 1e-12


@pytest.mark.parametrize("n_minimisers", [1, 2, 3])
def test_l2_is_the_minimum_exactly_from_a_margin_of_tau_over_the_number_of_minimisers(n_minimisers):
    tau, margin = 0.25, 0.25 / n_minimisers

    def value(distance):
        r = torch.tensor([0.5] * n_minimisers + [0.5 + distance] * 2, dtype=torch.float64)
        return float(smoothed_minimum(r, "l2", tau))

    assert value(margin) == pytest.approx(0.5, abs=1e-15)
    assert value(2 * margin) == pytest.approx(0.5, abs=1e-15)
    assert value(0.99 * margin) > 0.5 + 1e-6


@pytest.mark.parametrize("tau", TAUS)
def test_derivative_of_ne_has_its_closed_form_and_pushes_far_centers_away(tau):
    r = distances(500, 5).requires_grad_()
    value = smoothed_minimum(r, "ne", tau)
    (gradient,) = torch.autograd.grad(value.sum(), r)
    weights = torch.softmax(-r / tau, dim=-1)
    torch.testing.assert_close(gradient, weights * (1 - (r - value.unsqueeze(-1)) / tau))
    far = r > value.unsqueeze(-1) + tau
    assert far.any()
    assert (gradient[far] <= 0).all()


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_smoothed_minimum_tends_to_the_minimum_as_tau_goes_to_zero(smoothing):
    r = distances(100, 5)
    torch.testing.assert_close(smoothed_minimum(r, smoothing, 1e-9), r.amin(dim=-1), rtol=0, atol=1e-8)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_derivative_with_respect_to_samples_and_centers_passes_gradcheck(smoothing):
    samples, centers = (z.requires_grad_() for z in task(n=3, k=3, d=2))
    assert torch.autograd.gradcheck(lambda x, c: smoothed_inertia(x, c, smoothing, 0.1), (samples, centers))


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_smoothed_inertia_is_the_sum_over_samples_and_bounds_the_inertia(smoothing):
    samples, centers = task()
    loss = smoothed_inertia(samples, centers, smoothing, 0.1)
    r = torch.tensor(np.stack([cdist(x, c, "sqeuclidean") for x, c in zip(samples, centers, strict=True)]))
    torch.testing.assert_close(loss, smoothed_minimum(r, smoothing, 0.1).sum(dim=-1))
    assert (loss >= inertia(samples, centers)).all()


def test_tau_may_differ_between_tasks():
    samples, centers = task()
    taus = torch.tensor([0.1, 1.0], dtype=torch.float64)
    together = smoothed_inertia(samples, centers, "ne", taus[:, None, None])
    alone = [smoothed_inertia(samples[i], centers[i], "ne", float(taus[i])) for i in range(2)]
    torch.testing.assert_close(together, torch.stack(alone))
