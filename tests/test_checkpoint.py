import json
import pickle
import struct

import pytest
import safetensors.torch
import torch

import sktransclust
from sktransclust import checkpoint
from sktransclust.checkpoint import (
    CheckpointError,
    checkpoint_info,
    list_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from sktransclust.model import LloydConfig, LloydTransformer

CONFIG = LloydConfig(2, 3, "onehot")


def network(dtype=torch.float32):
    return LloydTransformer(CONFIG, generator=torch.Generator().manual_seed(0), dtype=dtype)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    save_checkpoint(
        path, network(), training={"tau": 0.1}, tasks={"n_samples": 8}, seed=3, step=7, validation=0.5
    )
    return path


def rewrite(path, about=None, tensors=None, drop=()):
    """Change fields of the metadata and tensors of a checkpoint; drop some of either."""
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    fields = json.loads(header["__metadata__"]["sktransclust"]) | (about or {})
    arrays = safetensors.torch.load(content) | (tensors or {})
    fields, arrays = ({k: v for k, v in part.items() if k not in drop} for part in (fields, arrays))
    path.write_bytes(safetensors.torch.save(arrays, metadata={"sktransclust": json.dumps(fields)}))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_saved_network_loads_with_the_same_bits(tmp_path, dtype):
    saved = network(dtype)
    save_checkpoint(tmp_path / "model.safetensors", saved)
    loaded = load_checkpoint(tmp_path / "model.safetensors")
    assert loaded.config == CONFIG
    for name, weight in saved.named_parameters():
        assert torch.equal(loaded.get_parameter(name), weight)
        assert loaded.get_parameter(name).dtype == dtype


def test_an_exact_network_survives_with_its_attention_maps(tmp_path):
    exact = LloydTransformer.exact(2, 3)
    save_checkpoint(tmp_path / "exact.safetensors", exact)
    assert load_checkpoint(tmp_path / "exact.safetensors").config == exact.config


def test_info_is_what_was_saved(path):
    info = checkpoint_info(path)
    assert info.name == str(path)
    assert info.model == CONFIG
    assert (info.training, info.tasks) == ({"tau": 0.1}, {"n_samples": 8})
    assert (info.seed, info.step, info.validation) == (3, 7, 0.5)
    assert info.versions["sktransclust"] == sktransclust.__version__
    assert set(info.versions) == {"sktransclust", "torch", "numpy", "python"}


def test_saving_replaces_the_file_as_a_whole(path, monkeypatch):
    before = path.read_bytes()

    def fail(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(checkpoint.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save_checkpoint(path, network(torch.float64))
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["model.safetensors"]


def test_a_truncated_file_is_named_so_at_every_length(path):
    content = path.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    for length in (0, 5, 8, 9, header // 2, header - 1, header, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(CheckpointError, match=r"model\.safetensors is truncated"):
            load_checkpoint(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"about": {"colour": "red"}}, "has an unknown field 'colour'"),
        ({"drop": ("seed",)}, "lacks the field 'seed'"),
        ({"about": {"format_version": 99}}, r"has format version 99; this package .* reads 1"),
        ({"drop": ("format_version",)}, "has format version None"),
        ({"about": {"model": {"n_features": 2}}}, r"field 'model'.*n_clusters"),
        ({"about": {"model": {"n_features": 2, "n_clusters": 3, "depth": 1}}}, "unknown field `depth`"),
        ({"about": {"model": {"n_features": 2, "n_clusters": "3"}}}, "`n_clusters` in its field 'model'"),
        ({"drop": ("assign.key",)}, r"lacks the tensor 'assign\.key'"),
        ({"tensors": {"extra": torch.zeros(2)}}, "has an unknown tensor 'extra'"),
        (
            {"tensors": {"update.value": torch.zeros(4, 5)}},
            r"'update.value' should have shape \(5, 5\), got \(4, 5\)",
        ),
        ({"tensors": {"update.value": torch.zeros(5, 5, dtype=torch.int32)}}, "should be float32 or float64"),
        (
            {"tensors": {"update.value": torch.full((5, 5), torch.nan)}},
            "'update.value' has values that are not finite",
        ),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_refused_by_name(path, change, message):
    rewrite(path, **change)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(path)


SECTION = [3, "text", [], {"a": {}}, {"a": [[1]]}, {"a": [{}]}]
WRONG_TYPES = {
    "format_version": [True, 1.0, "1", [], {}, [1]],
    "training": SECTION,
    "tasks": SECTION,
    "seed": [True, 1.5, "3", [], {}],
    "step": [None, True, 1.0, -1, "3", [], {}],
    "validation": [True, "0.5", [], {}],
    "versions": [None, 1, "1.0", [], {"torch": 2}, {"torch": None}, {"torch": ["2"]}],
}


@pytest.mark.parametrize("field", WRONG_TYPES)
@pytest.mark.parametrize("load", [load_checkpoint, checkpoint_info])
def test_a_field_of_another_type_is_refused_by_name(path, field, load):
    for value in WRONG_TYPES[field]:
        rewrite(path, about={field: value})
        with pytest.raises(CheckpointError, match=f"model.safetensors.*{field.replace('_', '.')}"):
            load(path)


def test_fields_may_be_missing_knowledge(path):
    unknown = {"training": None, "tasks": None, "seed": None, "validation": None, "versions": {}}
    rewrite(path, about=unknown)
    info = checkpoint_info(path)
    assert {field: getattr(info, field) for field in unknown} == unknown


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("a checkpoint was unpickled",)


@pytest.mark.parametrize(
    "save", [lambda x, path: torch.save(x, path), lambda x, path: path.write_bytes(pickle.dumps(x))]
)
def test_a_pickle_in_disguise_is_refused_and_never_run(path, save):
    save({"weights": Bomb()}, path)
    with pytest.raises(CheckpointError, match=r"is a pickle .*never loaded"):
        load_checkpoint(path)


def test_a_header_beyond_any_reason_is_refused_before_it_is_read(path):
    path.write_bytes(struct.pack("<Q", 1 << 40) + b"{" + bytes(100))
    with pytest.raises(CheckpointError, match="has a header of 1099511627776 bytes; at most 1048576"):
        load_checkpoint(path)


@pytest.mark.parametrize("content", [b"hello, world", b"\x89HDF\r\n\x1a\n and more"])
def test_any_other_file_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="is not a safetensors file"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    "metadata", [None, {"format": "pt"}, {"sktransclust": "not json"}, {"sktransclust": "[]"}]
)
def test_a_safetensors_file_of_another_program_is_refused(path, metadata):
    path.write_bytes(safetensors.torch.save({"a": torch.zeros(3)}, metadata=metadata))
    with pytest.raises(CheckpointError, match="metadata of sktransclust"):
        load_checkpoint(path)


def test_a_directory_is_refused(tmp_path):
    (tmp_path / "folder.safetensors").mkdir()
    with pytest.raises(CheckpointError, match="is a directory"):
        load_checkpoint(tmp_path / "folder.safetensors")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"none.safetensors cannot be read: No such file"):
        load_checkpoint(str(tmp_path / "none.safetensors"))


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "a\udcffb\ud800"])
def test_a_name_that_no_file_can_have_is_refused(name):
    with pytest.raises(CheckpointError, match=r"cannot be read|No file"):
        load_checkpoint(f"{name}.safetensors")


def test_a_checkpoint_of_another_shape_is_refused(path):
    with pytest.raises(CheckpointError, match=r"is for \(n_features, n_clusters\) = \(2, 3\), got \(2, 4\)"):
        load_checkpoint(path, shape=(2, 4))


def test_older_formats_are_upgraded_one_version_at_a_time(path, monkeypatch):
    rewrite(path, about={"format_version": -1}, drop=("seed",))
    upgrades = {
        -1: lambda about: about | {"format_version": 0, "seed": 11},
        0: lambda about: about | {"format_version": 1, "step": 12},
    }
    monkeypatch.setattr(checkpoint, "UPGRADES", upgrades)
    info = checkpoint_info(path)
    assert (info.seed, info.step) == (11, 12)


def test_the_bundled_checkpoint_for_any_problem_loads_with_any_shape():
    (info,) = list_checkpoints("scalar")
    assert info.name == "universal"
    for name, weight in load_checkpoint("universal").named_parameters():
        assert torch.equal(weight, load_checkpoint("universal", (5, 7)).get_parameter(name))


def test_bundled_checkpoints_load_by_name_and_by_family_and_shape():
    infos = list_checkpoints("dense")
    assert infos
    for info in infos:
        config = info.model
        shape = (config.n_features, config.n_clusters)
        family = info.name.removesuffix(f"-d{shape[0]}-k{shape[1]}")
        assert info.name == f"{config.embedding}-l2-d{shape[0]}-k{shape[1]}"
        by_name, by_family = load_checkpoint(info.name), load_checkpoint(family, shape)
        for name, weight in by_name.named_parameters():
            assert torch.equal(weight, by_family.get_parameter(name))


def test_an_unknown_name_lists_the_bundled_ones():
    with pytest.raises(
        CheckpointError, match=r"No bundled checkpoint is called 'ternary-l2'.*binary-l2-d4-k6"
    ):
        load_checkpoint("ternary-l2")


def test_a_family_without_this_shape_lists_its_members():
    with pytest.raises(
        CheckpointError, match=r"has no \(n_features, n_clusters\) = \(5, 7\).*binary-l2-d4-k6"
    ):
        load_checkpoint("binary-l2", (5, 7))


def test_a_family_alone_needs_a_shape():
    with pytest.raises(CheckpointError, match="The family 'binary-l2' needs a shape"):
        load_checkpoint("binary-l2")
