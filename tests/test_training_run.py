import csv
import math
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch

from sktransclust.checkpoint import checkpoint_info, load_checkpoint
from sktransclust.model import LloydConfig
from sktransclust.tasks import TaskDistribution
from sktransclust.training import Recipe, Trainer, TrainingConfig, format_recipe, train

TRAINING = TrainingConfig(n_steps=20, batch_size=2, validate_every=5, n_validation_batches=1, patience=0)
RECIPE = Recipe(LloydConfig(2, 3), TaskDistribution(n_samples=8), TRAINING)
RECIPES = [RECIPE, replace(RECIPE, training=replace(TRAINING, seed=1))]


class Interruption(Exception):
    pass


def interrupt_after(n_validations):
    """Make a callback that raises after so many validations."""
    calls = []

    def on_validation(records):
        calls.append(records)
        if len(calls) == n_validations:
            raise Interruption

    return on_validation


def weights(path):
    return dict(load_checkpoint(path).named_parameters())


def assert_equal_weights(path, other):
    for name, weight in weights(path).items():
        assert torch.equal(weight, weights(other)[name])


def history(path):
    with open(f"{path}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def paths(tmp_path):
    return [tmp_path / "zero.safetensors", tmp_path / "one.safetensors"]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    paths = [folder / "zero.safetensors", folder / "one.safetensors"]
    train(RECIPES, paths)
    return paths


def test_checkpoints_hold_the_trained_networks_and_say_where_they_come_from(uninterrupted):
    trainer = Trainer(RECIPES)
    while not trainer.finished:
        records = trainer.advance()
    for index, path in enumerate(uninterrupted):
        for name, weight in trainer.network(index).named_parameters():
            assert torch.equal(weight, weights(path)[name])
        info = checkpoint_info(path)
        assert (info.seed, info.step, info.model) == (index, 20, RECIPE.model)
        assert info.validation == records[index].relative_inertia
        assert info.training["seed"] == index
        assert info.tasks["n_samples"] == 8


def test_history_has_a_line_per_model_and_validation(uninterrupted):
    rows = history(uninterrupted[0])
    assert [(int(row["step"]), int(row["model"]), int(row["seed"])) for row in rows] == [
        (step, model, model) for step in (5, 10, 15, 20) for model in (0, 1)
    ]
    assert all(math.isfinite(float(row["loss"])) for row in rows)


@pytest.mark.parametrize("n_validations", [1, 2, 3])
def test_an_interrupted_run_resumes_to_the_same_weights_and_history(paths, uninterrupted, n_validations):
    with pytest.raises(Interruption):
        train(RECIPES, paths, on_validation=interrupt_after(n_validations))
    assert checkpoint_info(paths[1]).step == 5 * n_validations
    train(RECIPES, paths, resume=True)
    for path, other in zip(paths, uninterrupted, strict=True):
        assert_equal_weights(path, other)
    assert history(paths[0]) == history(uninterrupted[0])


def test_lines_written_after_the_last_state_are_dropped(paths, uninterrupted):
    with pytest.raises(Interruption):
        train(RECIPES, paths, on_validation=interrupt_after(1))
    with open(f"{paths[0]}.csv", "a", encoding="utf-8") as file:
        file.write("0,0,10,1.0,1.0,0.01,False\n1,1,10")  # killed while writing the next validation
    train(RECIPES, paths, resume=True)
    assert history(paths[0]) == history(uninterrupted[0])


def test_a_run_killed_at_any_moment_resumes_to_the_same_weights(tmp_path, uninterrupted):
    recipe, out = tmp_path / "recipe.toml", tmp_path / "killed.safetensors"
    long = replace(RECIPE, training=replace(TRAINING, n_steps=300))
    recipe.write_text(format_recipe(long), encoding="utf-8")
    command = [sys.executable, "-m", "sktransclust.cli", "train", str(recipe), "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    state = tmp_path / "killed.safetensors.state"
    while not state.exists():
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.01)
    process.kill()  # SIGKILL: no handler runs, no file is closed
    assert process.wait() != 0
    assert checkpoint_info(out).step < 300

    # The rest in this process, to the end that the kill prevented.
    whole = tmp_path / "whole.safetensors"
    train([long], [out], resume=True)
    train([long], [whole])
    assert_equal_weights(out, whole)
    assert history(out) == history(whole)


def test_a_finished_run_stays_as_it_is(paths):
    train(RECIPES, paths)
    before = paths[0].read_bytes()
    train(RECIPES, paths, resume=True)
    assert paths[0].read_bytes() == before


def test_resuming_without_a_state_starts_at_the_beginning(paths, uninterrupted):
    train(RECIPES, paths, resume=True)
    assert_equal_weights(paths[0], uninterrupted[0])


def test_a_state_is_not_overwritten_by_mistake(paths):
    train(RECIPES, paths)
    with pytest.raises(FileExistsError, match="resume that run, or delete the file"):
        train(RECIPES, paths)


def test_a_state_of_other_recipes_is_refused(paths):
    train(RECIPES, paths)
    with pytest.raises(ValueError, match="the state of a run with other recipes"):
        train([RECIPE, replace(RECIPE, training=replace(TRAINING, seed=2))], paths, resume=True)


@pytest.mark.parametrize("content", [b"", b"\x80\x04nonsense", bytes(100)])
def test_a_damaged_state_is_named(paths, content):
    state = paths[0].with_name(f"{paths[0].name}.state")
    state.write_bytes(content)
    with pytest.raises(ValueError, match=r"zero.safetensors.state is not the state of a training run"):
        train(RECIPES, paths, resume=True)


def test_a_divergence_warns_once_and_its_checkpoint_is_the_last_good_one(paths, uninterrupted):
    wild = replace(RECIPE, training=replace(TRAINING, learning_rate=1e30))
    with pytest.warns(RuntimeWarning, match="The model of seed 0 diverged") as caught:
        train([wild, RECIPES[1]], paths)
    assert len(caught) == 1
    assert checkpoint_info(paths[0]).step == 0
    assert_equal_weights(paths[1], uninterrupted[1])
    seeds = [(row["seed"], row["diverged"]) for row in history(paths[0])]
    assert seeds == [("0", "True"), ("1", "False")] + [("1", "False")] * 3
