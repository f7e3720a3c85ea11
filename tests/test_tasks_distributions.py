import numpy as np
import pytest
import torch
from scipy import stats

from sktransclust.tasks.distributions import FAMILIES, exponential

LOCATION, SCALE, N_DRAWS = 0.3, 0.1, 40_000
ORACLES = {
    "normal": stats.norm(LOCATION, SCALE),
    "cauchy": stats.cauchy(LOCATION, SCALE),
    "gumbel": stats.gumbel_r(LOCATION, SCALE),
    "laplace": stats.laplace(LOCATION, SCALE),
    "lognormal": stats.lognorm(s=SCALE, scale=np.exp(LOCATION)),
}


def draws(family, dtype=torch.float64, location=LOCATION, scale=SCALE):
    generator = torch.Generator().manual_seed(0)
    shape = (N_DRAWS,)
    return FAMILIES[family](
        torch.full(shape, location, dtype=dtype), torch.full(shape, scale, dtype=dtype), generator
    )


def test_families_are_the_five_of_the_paper():
    assert list(FAMILIES) == list(ORACLES)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("family", FAMILIES)
def test_draws_follow_scipys_distribution_function(family, dtype):
    assert stats.kstest(draws(family, dtype).double().numpy(), ORACLES[family].cdf).pvalue > 0.01


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_tails_hold_as_many_draws_as_their_probability_says(family, upper):
    probability = 1e-3
    x = draws(family).numpy()
    beyond = x > ORACLES[family].isf(probability) if upper else x < ORACLES[family].ppf(probability)
    assert stats.binomtest(int(beyond.sum()), N_DRAWS, probability).pvalue > 0.01


@pytest.mark.parametrize("family", ["normal", "cauchy", "gumbel", "laplace"])
def test_location_and_scale_move_and_stretch_the_same_draws(family):
    standard = draws(family, location=0.0, scale=1.0)
    torch.testing.assert_close(draws(family, location=-2.0, scale=3.0), 3 * standard - 2)


def test_lognormal_is_the_exponential_of_the_normal():
    torch.testing.assert_close(draws("lognormal"), draws("normal").exp())


@pytest.mark.parametrize("family", FAMILIES)
def test_each_draw_uses_its_own_location_and_scale(family):
    location, scale = torch.tensor([0.0, 5.0]), torch.tensor([0.0, 0.0])
    expected = location.exp() if family == "lognormal" else location
    torch.testing.assert_close(FAMILIES[family](location, scale, torch.Generator()), expected)


def test_exponential_is_positive_and_follows_scipy():
    x = exponential(torch.empty(N_DRAWS), torch.Generator().manual_seed(1))
    assert x.min() > 0
    assert x.isfinite().all()
    assert stats.kstest(x.numpy(), stats.expon.cdf).pvalue > 0.01
