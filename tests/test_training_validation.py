import numpy as np
import pytest
import torch

from sktransclust.tasks import TaskDistribution, TaskSampler
from sktransclust.training import inertia, lloyd_step, relative_inertia

from .oracle import lloyd


@pytest.fixture(scope="module")
def tasks():
    sampler = TaskSampler(TaskDistribution(n_samples=40), 3, 5, torch.float64)
    return sampler.draw(6, torch.Generator().manual_seed(0))


def test_lloyd_step_equals_the_oracle_on_every_task(tasks):
    for samples, centers, moved in zip(*tasks, lloyd_step(*tasks), strict=True):
        ((_, expected),) = lloyd(samples.numpy(), centers.numpy(), 1)
        np.testing.assert_allclose(moved, expected, atol=1e-13)


def test_one_lloyd_iteration_relative_to_itself_is_one(tasks):
    samples, centers = tasks
    moved = lloyd_step(samples, centers)
    assert float(relative_inertia(samples, moved, inertia(samples, moved))) == 1


def test_relative_inertia_is_the_mean_of_the_ratios_and_not_the_ratio_of_the_means():
    samples = torch.tensor([[[0.0]], [[0.0]]])
    centers = torch.tensor([[[1.0]], [[3.0]]])  # objectives 1 and 9
    assert float(relative_inertia(samples, centers, torch.tensor([2.0, 3.0]))) == (1 / 2 + 9 / 3) / 2


def test_a_task_that_both_solve_without_any_rest_counts_as_one():
    samples = torch.full((1, 4, 2), 0.5)
    assert float(relative_inertia(samples, samples[:, :2], torch.zeros(1))) == 1
