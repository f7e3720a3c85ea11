import csv
import math
from dataclasses import replace

import pytest
import torch

from sktransclust.checkpoint import checkpoint_info, load_checkpoint
from sktransclust.model import LloydConfig
from sktransclust.tasks import MixedDistribution
from sktransclust.training import (
    UnrolledConfig,
    UnrolledRecipe,
    UnrolledTrainer,
    format_recipe,
    read_recipe,
    train,
)

MODEL = LloydConfig(0, 0, "onehot", projection="scalar", features=("mass", "error", "gap"))
TASKS = MixedDistribution(n_features=(2, 4), n_clusters=(2, 5), n_samples=(20, 40))
RECIPE = UnrolledRecipe(
    MODEL,
    TASKS,
    UnrolledConfig(n_steps=40, validate_every=10, n_validation_batches=3, batch_size=4, n_unrolled=2),
)


def history(path):
    with open(f"{path}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_training_lowers_the_inertia_of_tasks_it_has_not_seen():
    trainer = UnrolledTrainer([RECIPE])
    before = trainer.validate()
    records = [trainer.advance()[0] for _ in range(4)]
    assert trainer.finished
    assert [record.step for record in records] == [10, 20, 30, 40]
    assert trainer.best_metric == min(record.relative_inertia for record in records) < before


def test_validation_of_softened_lloyd_in_its_limit_is_1():
    trainer = UnrolledTrainer([replace(RECIPE, training=replace(RECIPE.training, dtype="float64"))])
    hard = {
        "assign.query": (1e3, 0), "assign.key": (1e3, 0), "assign.value": (0, 1),
        "update.query": (0, 30), "update.key": (0, 30), "update.value": (1, 0),
        "erase_centers.query": (0, 30), "erase_centers.key": (0, 30), "erase_centers.value": (-1, 0),
    }  # fmt: skip
    flat = [torch.tensor(hard.get(name, (0, 0, 0)), dtype=torch.float64) for name in MODEL.parameter_shapes()]
    trainer.parameters = torch.cat(flat)[None]
    # But for empty clusters, whose center leaps to the mean of all samples instead of staying.
    assert trainer.validate() == pytest.approx(1, abs=0.02)


def test_the_loss_is_the_mean_log_of_the_smoothed_inertia():
    trainer = UnrolledTrainer([replace(RECIPE, training=replace(RECIPE.training, dtype="float64"))])
    samples, centers = trainer._draw(torch.Generator().manual_seed(0))
    network = trainer.network()
    with torch.no_grad():
        moved = network.step(samples, network.step(samples, centers))
        squared = torch.cdist(samples, moved) ** 2
        tau = 0.1 * squared.amin(2).mean(1)[:, None, None]
        smoothed = (torch.softmax(-squared / tau, 2) * squared).sum((1, 2))
    assert trainer._train_step(samples, centers) == pytest.approx(float(smoothed.log().mean()), rel=1e-9)


def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path):
    whole, parts = tmp_path / "whole.safetensors", tmp_path / "parts.safetensors"
    train([RECIPE], [whole])

    def stop(records):
        if records[0].step == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train([RECIPE], [parts], on_validation=stop)
    train([RECIPE], [parts], resume=True)
    for name, weight in load_checkpoint(whole).named_parameters():
        assert torch.equal(weight, load_checkpoint(parts).get_parameter(name)), name
    assert history(whole) == history(parts)


def test_the_checkpoint_is_the_best_validated_network_and_says_so(tmp_path):
    path = tmp_path / "net.safetensors"
    train([RECIPE], [path])
    best = min(history(path), key=lambda row: float(row["relative_inertia"]))
    info = checkpoint_info(path)
    assert info.step == int(best["step"])
    assert info.validation == float(best["relative_inertia"])
    assert info.model == MODEL
    assert info.tasks["n_features"] == [2, 4]


def test_a_recipe_survives_its_file(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(format_recipe(RECIPE), encoding="utf-8")
    assert read_recipe(path) == RECIPE


def test_two_recipes_at_once_and_the_wrong_kind_of_network_are_refused():
    with pytest.raises(ValueError, match="trains alone, got 2"):
        UnrolledTrainer([RECIPE, RECIPE])
    with pytest.raises(ValueError, match="`projection` should be 'scalar'"):
        UnrolledRecipe(LloydConfig(2, 3))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_unrolled", 0),
        ("tau", 0.0),
        ("smoothing", "l1"),
        ("seed", -1),
        ("n_steps", 150),
        ("clip_norm", -math.inf),
    ],
)
def test_a_wrong_setting_is_named(field, value):
    with pytest.raises(ValueError, match=f"`{field}` should"):
        UnrolledConfig(**{field: value})
