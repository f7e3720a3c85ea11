import importlib.metadata
import math
import subprocess
import sys

import pytest
import torch

from sktransclust.checkpoint import checkpoint_info, list_checkpoints, load_checkpoint
from sktransclust.cli import main
from sktransclust.core import library
from sktransclust.core.library import instruction_sets
from sktransclust.model import LloydConfig
from sktransclust.tasks import TaskDistribution
from sktransclust.training import Recipe, TrainingConfig, format_recipe, read_recipe, train
from sktransclust.training import run as training_run

RECIPE = Recipe(
    LloydConfig(2, 3),
    TaskDistribution(n_samples=8),
    TrainingConfig(n_steps=10, batch_size=2, validate_every=5, n_validation_batches=1),
)


@pytest.fixture
def recipe_file(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(format_recipe(RECIPE), encoding="utf-8")
    return path


def test_the_command_is_installed_with_the_package():
    (entry,) = importlib.metadata.entry_points(group="console_scripts", name="sktransclust")
    assert entry.load() is main


def test_train_writes_what_train_in_python_does(recipe_file, tmp_path, capsys):
    out, other = tmp_path / "out.safetensors", tmp_path / "other.safetensors"
    assert main(["train", str(recipe_file), "--out", str(out)]) == 0
    train([RECIPE], [other])
    for name, weight in load_checkpoint(out).named_parameters():
        assert torch.equal(weight, load_checkpoint(other).get_parameter(name))
    assert "Eq. 20" in capsys.readouterr().err
    assert len((tmp_path / "out.safetensors.csv").read_text().splitlines()) == 3


def test_train_shows_its_progress_without_tqdm_too(recipe_file, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert main(["train", str(recipe_file), "--out", str(tmp_path / "out.safetensors")]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["5/10 steps", "10/10 steps"]


def test_seeds_are_trained_at_once_into_a_file_each(recipe_file, tmp_path):
    assert (
        main(["train", str(recipe_file), "--out", str(tmp_path / "m.safetensors"), "--seeds", "3", "5"]) == 0
    )
    assert [checkpoint_info(tmp_path / f"m-seed{seed}.safetensors").seed for seed in (3, 5)] == [3, 5]


def test_ctrl_c_leaves_a_run_that_resumes(recipe_file, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out.safetensors"
    advance = training_run.Trainer.advance

    def interrupt(trainer):
        if trainer.step == 5:
            raise KeyboardInterrupt
        return advance(trainer)

    with monkeypatch.context() as patch:
        patch.setattr(training_run.Trainer, "advance", interrupt)
        assert main(["train", str(recipe_file), "--out", str(out)]) == 130
    assert "--resume continues" in capsys.readouterr().err
    assert checkpoint_info(out).step == 5
    assert main(["train", str(recipe_file), "--out", str(out)]) == 1  # not overwritten by mistake
    assert main(["train", str(recipe_file), "--out", str(out), "--resume"]) == 0
    assert checkpoint_info(out).step == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "RECIPE", "--out", "model.pt"], "`--out` should end in .safetensors, got model.pt"),
        (["train", "missing.toml", "--out", "m.safetensors"], "missing.toml"),
        (["train", "RECIPE", "--out", "m.safetensors", "--device", "abacus"], "abacus"),
        (["info", "nothing-l2"], "No bundled checkpoint is called 'nothing-l2'"),
        (["info", "missing.safetensors"], "missing.safetensors cannot be read"),
    ],
)
def test_mistakes_end_in_one_line_and_status_1(recipe_file, capsys, arguments, message):
    assert main([str(recipe_file) if argument == "RECIPE" else argument for argument in arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("sktransclust: ")
    assert message in error
    assert error.count("\n") == 1


def test_a_mistake_in_a_recipe_names_file_section_and_field(recipe_file, tmp_path, capsys):
    recipe_file.write_text(format_recipe(RECIPE).replace("tau", "tua"), encoding="utf-8")
    assert main(["train", str(recipe_file), "--out", str(tmp_path / "m.safetensors")]) == 1
    assert "recipe.toml: [training] has an unknown field `tua`" in capsys.readouterr().err


def test_a_recipe_without_a_required_field_is_told_which(recipe_file, tmp_path, capsys):
    recipe_file.write_text("[model]\nn_features = 2\n[tasks]\n[training]\n", encoding="utf-8")
    assert main(["train", str(recipe_file), "--out", str(tmp_path / "m.safetensors")]) == 1
    assert "recipe.toml: [model] lacks the field `n_clusters`" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["claims", "."], ["reproduce", "tab2", "--out", "."]])
def test_without_pandas_the_papers_commands_name_the_extra_that_brings_it(arguments):
    program = (
        "import sys; sys.modules['pandas'] = None\n"
        f"from sktransclust.cli import main; sys.exit(main({arguments}))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("sktransclust: ")
    assert 'its extra "paper"' in done.stderr
    assert done.stderr.count("\n") == 1


def test_info_of_a_file_holds_the_recipe_that_made_it(recipe_file, tmp_path, capsys):
    out = tmp_path / "out.safetensors"
    main(["train", str(recipe_file), "--out", str(out)])
    capsys.readouterr()
    assert main(["info", str(out)]) == 0
    text = capsys.readouterr().out
    assert f"validation = {checkpoint_info(out).validation!r}" in text
    again = tmp_path / "again.toml"
    again.write_text(text[text.index("[model]") :], encoding="utf-8")
    assert read_recipe(again) == RECIPE
    assert read_recipe(again).training.clip_norm == math.inf


def test_info_alone_lists_the_backends_and_the_bundled_checkpoints(capsys, monkeypatch):
    assert main(["info"]) == 0
    backends, checkpoints, what_they_say = capsys.readouterr().out.split("\n\n")
    assert "as many Lloyd iterations" in what_they_say
    assert [line.split()[1] for line in backends.splitlines()] == ["compiled", "streamed", "dense"]
    assert all(name in backends for name in instruction_sets())
    names = [line.split()[0] for line in checkpoints.splitlines()[1:]]
    assert names == [info.name for info in list_checkpoints()]
    monkeypatch.setattr(library, "instruction_sets", dict)
    assert main(["info"]) == 0
    assert "without a compiler" in capsys.readouterr().out.splitlines()[0]


def test_help_needs_no_torch():
    program = (
        "import sys; from sktransclust.cli import main\n"
        "try: main(['--help'])\n"
        "finally: assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "train" in done.stdout
