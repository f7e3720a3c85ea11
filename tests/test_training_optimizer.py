import math

import pytest
import torch

from sktransclust.training.optimizer import AdamState, PlateauSchedule, adam_step, clip_per_model

RATES = torch.tensor([0.1, 0.003, 1.0], dtype=torch.float64)


def gradients(n_steps, scale=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(n_steps, len(RATES), 2, 4, dtype=torch.float64, generator=generator)


def test_adam_equals_torchs_for_each_model_with_its_own_rate():
    start = gradients(1, seed=1)[0]
    parameters, state = start, AdamState.zeros(start)
    alone = [start[i].clone().requires_grad_() for i in range(len(RATES))]
    optimizers = [torch.optim.Adam([p], lr=rate) for p, rate in zip(alone, RATES.tolist(), strict=True)]
    everyone = torch.ones(len(RATES), dtype=torch.bool)
    for gradient in gradients(30):
        parameters = adam_step(parameters, gradient, state, RATES, everyone)
        for i, optimizer in enumerate(optimizers):
            alone[i].grad = gradient[i].clone()
            optimizer.step()
    torch.testing.assert_close(parameters, torch.stack([p.detach() for p in alone]), rtol=1e-12, atol=1e-12)


def test_a_model_that_is_not_active_keeps_its_weights_and_moments_whatever_its_gradient():
    start = gradients(1)[0]
    state = AdamState.zeros(start)
    gradient = gradients(1, seed=2)[0]
    gradient[1] = math.nan
    active = torch.tensor([True, False, True])
    moved = adam_step(start, gradient, state, RATES, active)
    assert torch.equal(moved[1], start[1])
    assert torch.equal(state.first[1], torch.zeros_like(start[1]))
    assert torch.equal(state.second[1], torch.zeros_like(start[1]))
    assert (moved[[0, 2]] != start[[0, 2]]).all()


def test_clipping_equals_torchs_for_each_model_alone():
    gradient, bounds = gradients(1, scale=3.0)[0], torch.tensor([0.5, 1e3, math.inf], dtype=torch.float64)
    clipped, norms = clip_per_model(gradient, bounds)
    for i, bound in enumerate(bounds):
        alone = torch.nn.Parameter(torch.zeros_like(gradient[i]))
        alone.grad = gradient[i].clone()
        norm = torch.nn.utils.clip_grad_norm_([alone], float(bound))
        torch.testing.assert_close(norms[i], norm)
        torch.testing.assert_close(clipped[i], alone.grad, rtol=1e-5, atol=0)  # torch adds 1e-6 to the norm
    torch.testing.assert_close(clipped[0].norm(), bounds[0])


def test_clipping_leaves_a_zero_gradient_zero():
    clipped, norms = clip_per_model(torch.zeros(2, 3, 3), torch.tensor([1.0, math.inf]))
    assert (clipped == 0).all()
    assert (norms == 0).all()


@pytest.mark.parametrize("patience", [0, 2, 5])
def test_plateau_schedule_equals_torchs(patience):
    generator = torch.Generator().manual_seed(3)
    metrics = 1 + torch.randn(80, 2, dtype=torch.float64, generator=generator).cumsum(dim=0).abs() / 50
    schedule = PlateauSchedule.start(
        torch.tensor([0.01, 0.5], dtype=torch.float64), torch.tensor([patience, patience])
    )
    optimizers = [torch.optim.SGD([torch.zeros(1)], lr=rate) for rate in (0.01, 0.5)]
    oracles = [
        torch.optim.lr_scheduler.ReduceLROnPlateau(o, factor=0.5, patience=patience, threshold=1e-4, eps=0)
        for o in optimizers
    ]
    for metric in metrics:
        schedule.observe(metric)
        for oracle, value in zip(oracles, metric.tolist(), strict=True):
            oracle.step(value)
        rates = [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
        assert schedule.learning_rate.tolist() == rates
    assert min(rates) < 0.01


def test_a_metric_that_is_not_a_number_is_no_improvement():
    schedule = PlateauSchedule.start(torch.tensor([1.0]), torch.tensor([0]))
    schedule.observe(torch.tensor([2.0]))
    schedule.observe(torch.tensor([math.nan]))
    assert schedule.learning_rate.tolist() == [0.5]
    assert schedule.best.tolist() == [2.0]
