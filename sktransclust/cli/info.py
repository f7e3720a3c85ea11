"""``sktransclust info``: the backends and checkpoints of this installation, or one checkpoint."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # imported where used, so that --help is fast
    from ..checkpoint import CheckpointInfo


_RATIO = """
The ratio is what the network's steps leave of the inertia, divided by what as many Lloyd iterations leave,
on problems like those of its training: after one step (Eq. 20), or after several ("universal")."""


def add_info(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    info = commands.add_parser("info", help="list backends and checkpoints, or describe a checkpoint")
    info.add_argument(
        "checkpoint", nargs="?", metavar="NAME-or-FILE", help="a bundled checkpoint or a .safetensors file"
    )
    info.set_defaults(run=_info)


def _info(options: argparse.Namespace) -> int:
    from ..checkpoint import checkpoint_info, list_checkpoints

    if options.checkpoint is None:
        print(*_backends(), "", sep="\n")
        infos = list_checkpoints()
        width = max([len(info.name) for info in infos], default=0)
        print(f"{'name':{width}}   d   k   ratio    steps")
        for info in infos:
            d, k = info.model.n_features or "any", info.model.n_clusters or "any"
            shape = f"{d:>3} {k:>3}"
            print(f"{info.name:{width}} {shape}   {info.validation:6.4f}  {info.step:6}")
        print(_RATIO)
    else:
        print(_description(checkpoint_info(options.checkpoint)), end="")
    return 0


def _backends() -> list[str]:
    """Say which backends can run here; the last instruction set is the one that is used."""
    from ..core.library import instruction_sets

    sets = ", ".join(instruction_sets())
    compiled = (
        f"on the CPU, with {sets}" if sets else "not built: the package was installed without a compiler"
    )
    return [
        f"backend compiled  {compiled}",
        "backend streamed  on the CPU and on CUDA",
        "backend dense     on the CPU and on CUDA",
    ]


def _description(info: "CheckpointInfo") -> str:
    """Write the metadata as TOML, so that the sections of the recipe can be trained again."""
    from .._configs import config_to_mapping
    from ..training.config import format_sections

    facts = {"name": info.name, "step": info.step, "validation": info.validation, "seed": info.seed}
    sections = {"checkpoint": facts, "versions": info.versions, "model": config_to_mapping(info.model)}
    recipe = {"tasks": info.tasks, "training": info.training}
    return format_sections(sections | {name: part for name, part in recipe.items() if part is not None})
