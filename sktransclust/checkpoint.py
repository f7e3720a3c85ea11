"""A trained network as one safetensors file, and the files that come with the package.

Tensors: the weights. Metadata: one JSON object, the fields of `CheckpointInfo`. Nothing is ever
unpickled.
"""

import json
import os
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from . import __version__
from ._configs import config_from_mapping, config_to_mapping
from .model.config import LloydConfig
from .model.transformer import LloydTransformer

FORMAT_VERSION = 1
#: From an older format's version to the function that rewrites its metadata as the next version's.
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}

SUFFIX = ".safetensors"
_KEY = "sktransclust"  # of the JSON object in the file's metadata
_MAX_HEADER = 1 << 20  # bytes; ours take about 2000
_BUNDLED = Path(__file__).parent / "checkpoints"
_FIELDS = ("format_version", "model", "training", "tasks", "seed", "step", "validation", "versions")


class CheckpointError(ValueError):
    """A checkpoint that does not exist or is not what it should be; the message says what and where."""


@dataclass(frozen=True)
class CheckpointInfo:
    """What a checkpoint says about its network."""

    name: str  # the bundled name, or the path
    model: LloydConfig  # the network
    training: Mapping[str, Any] | None  # section [training] of the recipe, if it was trained from one
    tasks: Mapping[str, Any] | None  # section [tasks] of the recipe
    seed: int | None  # of the training
    step: int  # training steps taken
    validation: float | None  # Eq. 20 on the validation tasks at that step
    versions: Mapping[str, str]  # of sktransclust, torch, numpy and Python, when written


def save_checkpoint(
    path: str | os.PathLike[str],
    network: LloydTransformer,
    *,
    training: Mapping[str, Any] | None = None,
    tasks: Mapping[str, Any] | None = None,
    seed: int | None = None,
    step: int = 0,
    validation: float | None = None,
) -> None:
    """Write a network to a file, which is replaced as a whole or not at all.

    Parameters
    ----------
    path : str or path-like
        The file, by custom with the suffix ``.safetensors``.
    network : LloydTransformer
        Its configuration and weights are kept.
    training, tasks : mapping, optional
        Sections of the recipe, as JSON can hold them.
    seed, step, validation : optional
        See `CheckpointInfo`.
    """
    about = {
        "format_version": FORMAT_VERSION,
        "model": config_to_mapping(network.config),
        "training": training,
        "tasks": tasks,
        "seed": seed,
        "step": step,
        "validation": validation,
        "versions": {
            "sktransclust": __version__,
            "torch": str(torch.__version__),
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in network.named_parameters()}
    write_atomically(path, safetensors.torch.save(tensors, metadata={_KEY: json.dumps(about)}))


def load_checkpoint(source: str | os.PathLike[str], shape: tuple[int, int] | None = None) -> LloydTransformer:
    """Load a network, on the CPU.

    Parameters
    ----------
    source : str or path-like
        A bundled name such as ``"binary-l2-d4-k6"``, a family such as ``"binary-l2"`` together with `shape`,
        or the path of a ``.safetensors`` file.
    shape : tuple of (n_features, n_clusters), optional
        Which model of the family. A checkpoint of another shape is refused; one with scalar projections
        is for any.

    Returns
    -------
    LloydTransformer
        With the dtype it was saved in.

    Raises
    ------
    CheckpointError
        If there is no such checkpoint, or the file is not one.
    """
    path = _find(source, shape)
    content = _read(path)
    config = _parse_info(content, path, str(source)).model
    if shape is not None and config.projection == "dense" and shape != (config.n_features, config.n_clusters):
        raise CheckpointError(
            f"{path} is for (n_features, n_clusters) = {(config.n_features, config.n_clusters)}, got {shape}."
        )
    try:
        tensors = safetensors.torch.load(content)
    except SafetensorError as error:
        raise CheckpointError(f"{path} is truncated or damaged: {error}") from error
    _check_tensors(tensors, config, path)
    return LloydTransformer(config, tensors)


def checkpoint_info(source: str | os.PathLike[str], shape: tuple[int, int] | None = None) -> CheckpointInfo:
    """Read what a checkpoint says about its network; `source` and `shape` as for `load_checkpoint`."""
    path = _find(source, shape)
    return _parse_info(_read(path), path, path.stem if path.parent == _BUNDLED else str(path))


def list_checkpoints(projection: str | None = None) -> list[CheckpointInfo]:
    """Describe the checkpoints that come with the package, sorted by family and shape.

    Parameters
    ----------
    projection : {"dense", "scalar"}, optional
        Only those for one problem, or only those for any.

    Returns
    -------
    list of CheckpointInfo
    """
    infos = [checkpoint_info(path) for path in _BUNDLED.glob(f"*{SUFFIX}")]
    infos = [info for info in infos if projection in (None, info.model.projection)]
    return sorted(infos, key=lambda info: (_family(info.name), info.model.n_features, info.model.n_clusters))


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace a file by new content in one step, so that an interruption leaves the old or the new one."""
    target = Path(path)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _family(name: str) -> str:
    return re.sub(r"-d\d+-k\d+$", "", name)


def _find(source: str | os.PathLike[str], shape: tuple[int, int] | None) -> Path:
    """Return the path of a bundled name, a family's member, or a file."""
    name = os.fspath(source)
    if "\0" in name:
        raise CheckpointError(f"No file can be called {name!r}.")
    if name.endswith(SUFFIX) or os.path.basename(name) != name or not isinstance(source, str):
        return Path(name)
    bundled = sorted(path.stem for path in _BUNDLED.glob(f"*{SUFFIX}"))
    if name in bundled:
        return _BUNDLED / f"{name}{SUFFIX}"
    members = [other for other in bundled if _family(other) == name]
    if shape is not None and f"{name}-d{shape[0]}-k{shape[1]}" in members:
        return _BUNDLED / f"{name}-d{shape[0]}-k{shape[1]}{SUFFIX}"
    if members:
        wanted = "needs a shape" if shape is None else f"has no (n_features, n_clusters) = {shape}"
        raise CheckpointError(f"The family {name!r} {wanted}; bundled: {', '.join(members)}.")
    raise CheckpointError(
        f"No bundled checkpoint is called {name!r}, and a path should end in {SUFFIX}; "
        f"bundled: {', '.join(bundled)}."
    )


def _read(path: Path) -> bytes:
    """Return the file's bytes after a look at its first ones."""
    try:
        if path.is_dir():
            raise CheckpointError(f"{path} is a directory, not a checkpoint file.")
        with open(path, "rb") as file:
            start = file.read(9)
            _check_start(start, path)
            return start + file.read()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CheckpointError(f"{path} cannot be read: {reason}.") from error


def _check_start(start: bytes, path: Path) -> None:
    """Tell a safetensors file (length of the header, then JSON) from what people take for one."""
    if len(start) == 9 and start[8:] == b"{":
        length = int.from_bytes(start[:8], "little")
        if length > _MAX_HEADER:
            raise CheckpointError(f"{path} has a header of {length} bytes; at most {_MAX_HEADER} are read.")
        return
    if start[:2] == b"PK" or (start[:1] == b"\x80" and start[1:2] <= b"\x05"):
        raise CheckpointError(f"{path} is a pickle (torch.save), which is never loaded; it may run any code.")
    kind = "truncated" if len(start) < 9 else "not a safetensors file"
    raise CheckpointError(f"{path} is {kind}.")


def _parse_info(content: bytes, path: Path, name: str) -> CheckpointInfo:
    """Check and return the metadata in a file's header."""
    about = _metadata(content, path)
    version = about.get("format_version")
    while _is_number(version, (int,)) and version in UPGRADES:
        about = UPGRADES[version](about)
        version = about["format_version"]
    if not _is_number(version, (int,)) or version != FORMAT_VERSION:
        raise CheckpointError(
            f"{path} has format version {version!r}; this package ({__version__}) reads {FORMAT_VERSION}."
        )
    for field in sorted(set(about) ^ set(_FIELDS)):
        raise CheckpointError(
            f"{path} {'has an unknown' if field in about else 'lacks the'} field {field!r}."
        )
    try:
        model = config_from_mapping(LloydConfig, about["model"], "its field 'model'")
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from error
    known = {field: about[field] for field in _FIELDS if field not in ("format_version", "model")}
    for field, value in known.items():
        is_right, words = _KINDS[field]
        if not is_right(value):
            raise CheckpointError(f"{path}: its field {field!r} should be {words}, got {value!r:.100}.")
    return CheckpointInfo(name=name, model=model, **known)


def _is_number(value: Any, kinds: tuple[type, ...] = (int, float)) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


def _is_section(value: Any) -> bool:
    """Tell whether a value is a section of a recipe: numbers, strings, booleans or lists of these by name."""
    if not isinstance(value, dict):
        return False
    entries = [entry for part in value.values() for entry in (part if isinstance(part, list) else [part])]
    return all(isinstance(entry, (bool, int, float, str, type(None))) for entry in entries)


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


# Field -> whether a value read from JSON is of its type, and what that is called.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "training": (lambda value: value is None or _is_section(value), "a section of a recipe or null"),
    "tasks": (lambda value: value is None or _is_section(value), "a section of a recipe or null"),
    "seed": (lambda value: value is None or _is_number(value, (int,)), "an integer or null"),
    "step": (lambda value: _is_number(value, (int,)) and value >= 0, "an integer >= 0"),
    "validation": (lambda value: value is None or _is_number(value), "a number or null"),
    "versions": (_is_texts, "an object of strings"),
}


def _metadata(content: bytes, path: Path) -> dict[str, Any]:
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 + length:
        raise CheckpointError(f"{path} is truncated: its header alone should be {length} bytes.")
    try:
        about = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][_KEY])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(
            f"{path} holds no metadata of sktransclust: not one of its checkpoints."
        ) from error
    if not isinstance(about, dict):
        raise CheckpointError(f"{path} holds metadata of sktransclust that are not a JSON object.")
    return about


def _check_tensors(tensors: Mapping[str, Tensor], config: LloydConfig, path: Path) -> None:
    """Refuse tensors that are missing, unknown, of another shape or dtype, or not finite."""
    expected = config.parameter_shapes()
    for name in sorted(set(tensors) ^ set(expected)):
        raise CheckpointError(
            f"{path} {'has an unknown' if name in tensors else 'lacks the'} tensor {name!r}."
        )
    for name, tensor in tensors.items():
        if tuple(tensor.shape) != expected[name]:
            raise CheckpointError(
                f"{path}: tensor {name!r} should have shape {expected[name]}, got {tuple(tensor.shape)}."
            )
        if tensor.dtype not in (torch.float32, torch.float64):
            raise CheckpointError(
                f"{path}: tensor {name!r} should be float32 or float64, got {tensor.dtype}."
            )
        if not bool(tensor.isfinite().all()):
            raise CheckpointError(f"{path}: tensor {name!r} has values that are not finite.")
