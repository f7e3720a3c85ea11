import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from sktransclust.model import PROJECTION_NAMES, LloydConfig, LloydTransformer
from sktransclust.tasks import TaskDistribution, TaskSampler
from sktransclust.training import Recipe, Trainer, TrainingConfig, inertia, lloyd_step, relative_inertia

MODEL = LloydConfig(2, 3, "onehot")
TASKS = TaskDistribution(n_samples=12)
TRAINING = TrainingConfig(
    n_steps=20,
    batch_size=4,
    validate_every=5,
    n_validation_batches=1,
    patience=0,
    clip_norm=3.0,
    dtype="float64",
)
#: Models that differ in everything in which models trained together may differ.
MIXED = [
    Recipe(MODEL, TASKS, TRAINING),
    Recipe(MODEL, TASKS, replace(TRAINING, seed=1, smoothing="ne", tau=0.3)),
    Recipe(MODEL, replace(TASKS, families=("laplace",)), replace(TRAINING, seed=2, learning_rate=0.05)),
    Recipe(
        MODEL,
        replace(TASKS, starts=("k-means++",)),
        replace(TRAINING, seed=1, clip_norm=math.inf, patience=5),
    ),
]


def trained(recipes):
    trainer = Trainer(recipes)
    records = []
    while not trainer.finished:
        records.append(trainer.advance())
    return trainer, records


def alone_by_torch(recipe):
    """Alg. 1 for one model by torch's module, optimizer, clipping and schedule, the loss as defined."""
    training = recipe.training
    seeds = np.random.SeedSequence(training.seed).generate_state(3, np.uint64)
    weights, validation, tasks = (torch.Generator().manual_seed(int(seed)) for seed in seeds)
    network = LloydTransformer(recipe.model, generator=weights, dtype=torch.float64)
    sampler = TaskSampler(recipe.tasks, 2, 3, torch.float64)
    held_out = sampler.draw(32, validation)
    optimizer = torch.optim.Adam(network.parameters(), lr=training.learning_rate)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=training.patience)
    metrics = []
    for step in range(training.n_steps):
        if step % training.validate_every == 0:
            drawn = sampler.draw(training.validate_every * training.batch_size, tasks)
            batches = zip(*(z.split(training.batch_size) for z in drawn), strict=True)
        samples, centers = next(batches)
        output = network.step(samples, centers)
        r = (samples[:, :, None] - output[:, None]).square().sum(dim=-1)  # (B, n, k)
        if training.smoothing == "ne":
            weight = torch.softmax(-r / training.tau, dim=-1)
        else:
            weight = simplex_projection(-r / training.tau)
        optimizer.zero_grad()
        (weight * r).sum(dim=(1, 2)).mean().backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), training.clip_norm)
        optimizer.step()
        if (step + 1) % training.validate_every == 0:
            with torch.no_grad():
                ratio = inertia(held_out[0], network.step(*held_out)) / inertia(
                    held_out[0], lloyd_step(*held_out)
                )
            metrics.append(float(ratio.mean()))
            schedule.step(metrics[-1])
    return dict(network.named_parameters()), metrics


def simplex_projection(scores):
    """Sparsemax by removing negative entries until none is left, differentiable as it stands."""
    support = torch.ones_like(scores, dtype=torch.bool)
    for _ in range(scores.shape[-1]):
        kept = scores.where(support, 0.0)
        threshold = (kept.sum(dim=-1, keepdim=True) - 1) / support.sum(dim=-1, keepdim=True)
        support = support & (scores > threshold)
    return (scores - threshold) * support


@pytest.fixture(scope="module")
def together():
    return trained(MIXED)


@pytest.mark.parametrize("index", range(len(MIXED)))
def test_models_trained_at_once_equal_each_trained_alone_by_torch(together, index):
    trainer, records = together
    weights, metrics = alone_by_torch(MIXED[index])
    for name, weight in trainer.network(index).named_parameters():
        # torch divides by the norm plus 1e-6 when it clips, hence the looser bound there.
        atol = 1e-10 if math.isinf(MIXED[index].training.clip_norm) else 1e-6
        torch.testing.assert_close(weight, weights[name], rtol=0, atol=atol)
    np.testing.assert_allclose([record[index].relative_inertia for record in records], metrics, rtol=1e-5)


@pytest.mark.parametrize("embedding", ["binary", "onehot", "none"])
def test_models_trained_at_once_equal_each_trained_alone_by_the_same_trainer(embedding):
    recipes = [replace(recipe, model=replace(MODEL, embedding=embedding)) for recipe in MIXED]
    both, _ = trained(recipes)
    for index, recipe in enumerate(recipes):
        one, _ = trained([recipe])
        torch.testing.assert_close(both.parameters[index], one.parameters[0], rtol=0, atol=1e-10)


def test_learning_rates_are_halved_for_each_model_on_its_own_plateau(together):
    _, records = together
    rates = np.array([[record.learning_rate for record in line] for line in records])
    start = [recipe.training.learning_rate for recipe in MIXED]
    assert (rates[0] == start).all()
    assert len({tuple(rates[:, i] / start[i]) for i in range(len(MIXED))}) > 1


def test_history_counts_steps_and_names_seeds(together):
    _, records = together
    assert [[record.step for record in line] for line in records] == [[5] * 4, [10] * 4, [15] * 4, [20] * 4]
    assert [record.seed for record in records[0]] == [0, 1, 2, 1]
    assert not any(record.diverged for line in records for record in line)


def test_training_lowers_the_relative_inertia():
    training = replace(TRAINING, n_steps=200, validate_every=50, patience=5, batch_size=8)
    _, records = trained([Recipe(MODEL, TASKS, replace(training, seed=seed)) for seed in range(3)])
    for first, last in zip(records[0], records[-1], strict=True):
        assert last.relative_inertia < first.relative_inertia
        assert last.loss < first.loss


def test_networks_of_the_trainer_compute_what_it_validated(together):
    trainer, records = together
    samples, centers = (z[0] for z in trainer._validation)
    for index, record in enumerate(records[-1]):
        with torch.no_grad():
            output = trainer.network(index).step(samples[index], centers[index])
        ratio = relative_inertia(
            samples[index], output, inertia(samples[index], lloyd_step(samples[index], centers[index]))
        )
        assert float(ratio) == pytest.approx(record.relative_inertia, rel=1e-12)


def test_a_divergence_stops_its_model_at_the_last_good_weights_and_no_other():
    wild = Recipe(MODEL, TASKS, replace(TRAINING, seed=5, learning_rate=1e300, clip_norm=math.inf))
    both, records = trained([wild, MIXED[0]])
    tame, tame_records = trained([MIXED[0]])
    assert [[record.diverged for record in line] for line in records] == [[True, False]] * 4
    # The first step, from the initial weights, was still finite; its result was not.
    assert [record.step for record in records[-1]] == [0, 20]
    initial = Trainer([wild]).parameters[0]
    assert torch.equal(both.parameters[0], initial)
    torch.testing.assert_close(both.parameters[1], tame.parameters[0], rtol=0, atol=1e-10)
    assert records[-1][1].relative_inertia == pytest.approx(tame_records[-1][0].relative_inertia, rel=1e-9)


def test_training_ends_early_when_no_model_is_left():
    wild = replace(TRAINING, learning_rate=1e300, clip_norm=math.inf)
    trainer, records = trained([Recipe(MODEL, TASKS, replace(wild, seed=seed)) for seed in (0, 1)])
    assert len(records) == 1
    assert not trainer.active.any()


def test_loading_a_state_continues_as_if_nothing_had_happened(together):
    uninterrupted, _ = together
    first = Trainer(MIXED)
    first.advance()
    first.advance()
    second = Trainer(MIXED)
    second.load_state({name: tensor.clone() for name, tensor in first.state().items()})
    first.advance()  # what goes on elsewhere must not matter
    while not second.finished:
        second.advance()
    assert torch.equal(second.parameters, uninterrupted.parameters)


def test_no_global_generator_is_touched():
    before = torch.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    trained(MIXED[:2])
    assert torch.equal(before[0], torch.get_rng_state())
    assert (before[1] == np.random.get_state()[1]).all()  # noqa: NPY002


def test_tasks_drawn_in_small_portions_make_no_difference_to_their_number(monkeypatch):
    monkeypatch.setattr("sktransclust.training.trainer.DRAW_AHEAD", 1)
    assert sum(1 for _ in Trainer(MIXED[:1])._training_batches()) == TRAINING.validate_every


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Recipe(LloydConfig(2, 3), TASKS, TRAINING), r"the same \[model\] section"),
        (Recipe(MODEL, replace(TASKS, n_samples=13), TRAINING), "the same `n_samples`"),
        (Recipe(MODEL, TASKS, replace(TRAINING, batch_size=5)), r"the same `batch_size`, got \(4, 5\)"),
        (Recipe(MODEL, TASKS, replace(TRAINING, dtype="float32")), "the same `dtype`"),
    ],
)
def test_recipes_of_different_shapes_are_refused(other, message):
    with pytest.raises(ValueError, match=message):
        Trainer([MIXED[0], other])


def test_projections_keep_their_names_in_the_network(together):
    trainer, _ = together
    network = trainer.network(2)
    for name, weight in zip(PROJECTION_NAMES, trainer.parameters[2], strict=True):
        assert torch.equal(network.get_parameter(name), weight)


@pytest.mark.gpu
def test_training_runs_on_cuda_and_returns_networks_on_the_cpu():
    trainer = Trainer(MIXED, "cuda")
    trainer.advance()
    assert trainer.parameters.device.type == "cuda"
    assert next(trainer.network(0).parameters()).device.type == "cpu"
