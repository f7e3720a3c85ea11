import math

import pytest

from sktransclust.model import LloydConfig
from sktransclust.tasks import TaskDistribution
from sktransclust.training.config import (
    Recipe,
    TrainingConfig,
    format_recipe,
    read_recipe,
    recipe_from_mapping,
)

FULL = Recipe(
    LloydConfig(3, 5, "onehot", inverse_temperature=2.0),
    TaskDistribution(families=("normal", "laplace"), scales=(0.05, 1.0), n_samples=64),
    TrainingConfig(smoothing="ne", tau=0.25, n_steps=300, clip_norm=1.5, seed=7, dtype="float64"),
)


def written(tmp_path, text):
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("recipe", [Recipe(LloydConfig(2, 3)), FULL])
def test_a_written_recipe_reads_back_equal(tmp_path, recipe):
    assert read_recipe(written(tmp_path, format_recipe(recipe))) == recipe


def test_fields_left_out_take_the_papers_values(tmp_path):
    recipe = read_recipe(written(tmp_path, "[model]\nn_features = 4\nn_clusters = 6\n"))
    assert recipe == Recipe(LloydConfig(4, 6))
    assert recipe.tasks == TaskDistribution(("normal",), (0.1,), ("isotropic",), ("equal",), n_samples=512)
    training = recipe.training
    assert (training.learning_rate, training.n_steps, training.batch_size) == (0.01, 10_000, 32)
    assert (training.validate_every, training.n_validation_batches, training.patience) == (50, 10, 5)
    assert training.clip_norm == math.inf


def test_whole_numbers_serve_as_floats(tmp_path):
    text = "[model]\nn_features = 4\nn_clusters = 6\n[training]\nclip_norm = 1\n[tasks]\nscales = [1]\n"
    recipe = read_recipe(written(tmp_path, text))
    assert recipe.training.clip_norm == 1.0
    assert recipe.tasks.scales == (1.0,)


MODEL = {"n_features": 4, "n_clusters": 6}


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"model": MODEL | {"n_layers": 2}}, r"`n_layers` should be 1 to train \(Alg\. 1\), got 2"),
        ({"model": MODEL, "trainign": {}}, "sections model, tasks, training; got `trainign`"),
        ({"tasks": {}}, r"should have a section \[model\]"),
        ({"model": {"n_features": 4}}, r"\[model\].*n_clusters"),
        (
            {"model": MODEL | {"embeding": "none"}},
            r"\[model\] has an unknown field `embeding`; known.*embedding",
        ),
        ({"model": MODEL | {"embedding": "gray"}}, "`embedding` should be one of"),
        ({"model": MODEL, "training": {"lr": 1.0}}, r"\[training\] has an unknown field `lr`"),
        (
            {"model": MODEL, "training": {"tau": "0.1"}},
            r"`tau` in \[training\] should be of type float, got '0.1'",
        ),
        ({"model": MODEL, "training": {"n_steps": 1e4}}, r"`n_steps` in \[training\] should be of type int"),
        ({"model": MODEL, "training": {"n_steps": True}}, r"`n_steps` in \[training\] should be of type int"),
        ({"model": MODEL, "training": {"tau": 0}}, "`tau` should be positive"),
        ({"model": MODEL, "training": {"tau": math.nan}}, "`tau` should be positive"),
        (
            {"model": MODEL, "training": {"n_steps": 120}},
            "`n_steps` should be a multiple of validate_every=50",
        ),
        ({"model": MODEL, "training": {"tau": 10**400}}, r"`tau` in \[training\] should be at most 1.79"),
        ({"model": MODEL, "training": {"batch_size": 0}}, "`batch_size` should be at least 1"),
        ({"model": MODEL, "training": {"seed": -1}}, "`seed` should not be negative"),
        ({"model": MODEL, "training": {"smoothing": "l1"}}, "`smoothing` should be ne or l2, got 'l1'"),
        ({"model": MODEL, "training": {"dtype": "float16"}}, "`dtype` should be float32 or float64"),
        ({"model": MODEL, "tasks": {"families": "normal"}}, r"`families` in \[tasks\] should be a list"),
        ({"model": MODEL, "tasks": {"families": ["t"]}}, "`families` should contain only"),
        ({"model": MODEL, "tasks": {"n_samples": 5}}, "`n_samples` should be at least n_clusters=6, got 5"),
        ({"model": 4}, r"\[model\] should be a table of fields, got 4"),
    ],
)
def test_mistakes_are_named(mapping, message):
    with pytest.raises(ValueError, match=message):
        recipe_from_mapping(mapping)


def test_a_file_that_is_not_toml_is_named(tmp_path):
    path = written(tmp_path, "[model\n")
    with pytest.raises(ValueError, match=r"recipe\.toml is not a TOML file"):
        read_recipe(path)


def test_a_mistake_in_a_file_names_the_file(tmp_path):
    path = written(tmp_path, "[model]\nn_features = 4\n")
    with pytest.raises(ValueError, match=r"recipe\.toml: "):
        read_recipe(path)
