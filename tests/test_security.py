"""No code runs and no path is followed out of a checkpoint or a recipe, and no size in one is believed."""

import ast
import json
import os
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import safetensors.torch
import torch

from sktransclust import TransformerKMeans
from sktransclust.checkpoint import CheckpointError, checkpoint_info, load_checkpoint, save_checkpoint
from sktransclust.model import LloydConfig, LloydTransformer
from sktransclust.training.config import read_recipe

PACKAGE = Path(find_spec("sktransclust").origin).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))

# Names by which Python runs text or bytes that it is given, or starts another program.
MODULES = {
    "pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal", "yaml", "joblib", "runpy",
    "code", "subprocess", "imp", "pty",
}  # fmt: skip
BUILTINS = {"eval", "exec", "compile", "__import__", "execfile"}
# Attribute -> the names it is one of, any if None.
ATTRIBUTES = {
    "load": {"torch", "np", "numpy", "joblib", "pickle"},
    "jit": {"torch"},
    "hub": {"torch"},
    "literal_eval": None,
    "read_pickle": None,
    "system": {"os"},
    "popen": None,
    "__reduce__": None,
    "__setstate__": None,
    "allow_pickle": None,
}


def offences(tree):
    """Names in a module that could run what a file holds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module.split(".")[0] in MODULES:
            yield node.module
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BUILTINS:
            yield node.func.id
        elif isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
            owners = ATTRIBUTES[node.attr]
            if owners is None or (isinstance(node.value, ast.Name) and node.value.id in owners):
                yield ast.unparse(node)
        elif isinstance(node, ast.keyword) and node.arg in ATTRIBUTES:
            yield node.arg


def test_the_scan_finds_what_it_is_for():
    bad = "import pickle\nfrom joblib import load\ntorch.load(f)\neval('1')\nos.system('x')\n"
    bad += "np.load(f, allow_pickle=1)"
    assert list(offences(ast.parse(bad))) == [
        "pickle", "joblib", "eval", "torch.load", "os.system", "np.load", "allow_pickle",
    ]  # fmt: skip


# Measures memory in a fresh process of this interpreter, which reads nothing but its arguments.
STARTS_ITSELF = PACKAGE / "evaluation" / "paper" / "costs.py"


@pytest.mark.parametrize("path", SOURCES, ids=[str(path.relative_to(PACKAGE)) for path in SOURCES])
def test_no_module_can_unpickle_or_evaluate_or_start_a_program(path):
    expected = ["subprocess"] if path == STARTS_ITSELF else []
    assert list(offences(ast.parse(path.read_text(encoding="utf-8")))) == expected


# What a file holds stays text and numbers.


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    network = LloydTransformer(LloydConfig(2, 3), generator=torch.Generator().manual_seed(0))
    save_checkpoint(path, network, training={"tau": 0.1}, tasks={"n_samples": 8})
    return path


def with_metadata(path, **fields):
    """Change fields of a checkpoint's metadata."""
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    about = json.loads(header["__metadata__"]["sktransclust"]) | fields
    tensors = safetensors.torch.load(content)
    path.write_bytes(safetensors.torch.save(tensors, metadata={"sktransclust": json.dumps(about)}))


LISTEN = """
import sys
import numpy as np
from sktransclust import TransformerKMeans
from sktransclust.checkpoint import checkpoint_info, load_checkpoint
from sktransclust.training.config import read_recipe
load_checkpoint("binary-l2-d4-k6")  # so that all is imported
opened, ran = [], []
def listen(event, arguments):
    if event == "open":
        opened.append(str(arguments[0]))
    elif event.startswith(("exec", "compile", "import", "pickle", "os.", "subprocess", "socket")):
        ran.append((event, arguments))
try:
    read_recipe(sys.argv[2])
except ValueError:
    pass
sys.addaudithook(listen)
for read in (load_checkpoint, checkpoint_info):
    read(sys.argv[1])
try:
    read_recipe(sys.argv[2])
except ValueError:
    pass
print(*sorted(set(opened)), sep="\\n")
assert ran == [], ran
"""


def test_reading_opens_the_file_itself_and_no_other_and_runs_nothing(path, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("n_features = 2")
    nasty = {"path": str(secret), "include": f"file://{secret}", "code": "__import__('os').system('id')"}
    with_metadata(path, training=nasty, tasks=nasty, versions=nasty)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f'[model]\nn_features = 2\nn_clusters = 3\nembedding = "{secret}"\n')
    done = subprocess.run(
        [sys.executable, "-P", "-c", LISTEN, str(path), str(recipe)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == sorted([str(path), str(recipe)])


@pytest.mark.parametrize(
    "name", ["../binary-l2-d4-k6", "..", "binary-l2/../../secret", "a\0b", "/etc/passwd", "~"]
)
def test_a_name_never_becomes_a_path_among_the_bundled_files(name):
    with pytest.raises(CheckpointError):
        load_checkpoint(name)
    with pytest.raises(CheckpointError):
        TransformerKMeans(2, weights=name).fit([[0.0], [1.0]])


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("prefix", [b"", b"\x10\0\0\0\0\0\0\0{"], ids=["plain", "behind a header"])
def test_a_pickle_of_any_protocol_is_never_run(path, tmp_path, protocol, prefix):
    target = tmp_path / "unpickled"
    path.write_bytes(prefix + pickle.dumps(Bomb(target), protocol))
    for read in (load_checkpoint, checkpoint_info):
        with pytest.raises(CheckpointError):
            read(path)
    with pytest.raises(CheckpointError):
        TransformerKMeans(2, weights=str(path)).fit([[0.0], [1.0]])
    assert not target.exists()


@pytest.mark.parametrize("length", [2**20 + 1, 2**31, 2**63, 2**64 - 1])
def test_a_header_of_any_length_beyond_the_bound_is_refused_unread(path, length):
    path.write_bytes(length.to_bytes(8, "little") + b"{" + bytes(16))
    with pytest.raises(CheckpointError, match=f"has a header of {length} bytes; at most 1048576 are read"):
        load_checkpoint(path)


@pytest.mark.parametrize("n_features", [10**6, 10**12, 2**62])
def test_a_size_in_the_metadata_allocates_nothing(path, n_features):
    with_metadata(path, model={"n_features": n_features, "n_clusters": 3})
    with pytest.raises(CheckpointError, match="should have shape"):
        load_checkpoint(path)


@pytest.mark.parametrize("end", [2**40, 2**63])
def test_a_tensor_that_claims_more_bytes_than_the_file_has_is_refused(path, end):
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["update.value"]["data_offsets"][1] = end
    changed = json.dumps(header).encode()
    path.write_bytes(len(changed).to_bytes(8, "little") + changed + content[8 + size :])
    with pytest.raises(CheckpointError, match="truncated or damaged"):
        load_checkpoint(path)


@pytest.mark.parametrize("text", ["a = [" + "[" * 5000, "a = " + "9" * 5000, "a.b" + ".c" * 3000 + " = 1"])
def test_a_recipe_that_would_exhaust_the_parser_is_refused_by_name(tmp_path, text):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(text)
    with pytest.raises(ValueError, match=r"recipe\.toml"):
        read_recipe(recipe)
