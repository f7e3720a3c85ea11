"""``sktransclust train``: train a network from a recipe."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # imported where used, so that --help is fast
    from ..training.config import Recipe, UnrolledRecipe
    from ..training.trainer import Record

INTERRUPTED = 130  # exit status of a program stopped by Ctrl-C


def add_train(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    train = commands.add_parser("train", help="train a network from a recipe")
    train.add_argument(
        "recipe", metavar="RECIPE", help="TOML file with the sections [model], [tasks], [training]"
    )
    train.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        type=Path,
        help="the checkpoint, a .safetensors file; FILE.csv is the history, FILE.state serves to resume",
    )
    train.add_argument(
        "--seeds",
        nargs="+",
        type=int,
        metavar="SEED",
        help="train one model per seed, all at once, in place of the recipe's; FILE's stem gets -seed0, ...",
    )
    train.add_argument(
        "--resume", action="store_true", help="continue an interrupted run, to the same weights"
    )
    train.add_argument("--device", default="cpu", help="cpu (the default), cuda, cuda:1, ...")
    train.set_defaults(run=_train)


def _train(options: argparse.Namespace) -> int:
    from .._device import resolve_device
    from ..checkpoint import SUFFIX
    from ..training.config import read_recipe
    from ..training.run import train

    if options.out.suffix != SUFFIX:
        raise ValueError(f"`--out` should end in {SUFFIX}, got {options.out}.")
    recipes, paths = _runs(read_recipe(options.recipe), options.out, options.seeds)
    try:
        train(
            recipes,
            paths,
            resume=options.resume,
            device=resolve_device(options.device),
            on_validation=_progress(recipes[0].training.n_steps),
        )
    except KeyboardInterrupt:
        print("\nStopped. The same command with --resume continues.", file=sys.stderr)
        return INTERRUPTED
    return 0


def _runs(
    recipe: "Recipe | UnrolledRecipe", out: Path, seeds: Sequence[int] | None
) -> tuple[list["Recipe"] | list["UnrolledRecipe"], list[Path]]:
    """Pair the recipe with each seed and its own file."""
    from ..training.config import Recipe

    if not isinstance(recipe, Recipe):
        if seeds is not None:
            raise ValueError("A network with scalar projections trains alone: set `seed` in its recipe.")
        return [recipe], [out]
    if seeds is None:
        return [recipe], [out]
    recipes = [replace(recipe, training=replace(recipe.training, seed=seed)) for seed in seeds]
    return recipes, [out.with_stem(f"{out.stem}-seed{seed}") for seed in seeds]


def _progress(n_steps: int) -> Callable[[Sequence["Record"]], None]:
    """Show progress as a bar if tqdm is installed, else as one line a validation."""
    started = time.monotonic()

    def line(records: Sequence["Record"]) -> None:
        step = max(record.step for record in records)
        print(
            f"{step}/{n_steps} steps  {_summary(records)}  {time.monotonic() - started:.0f} s",
            file=sys.stderr,
        )

    try:
        from tqdm import tqdm
    except ImportError:  # the extra `train`
        return line
    bar = tqdm(total=n_steps, unit="step")

    def advance(records: Sequence["Record"]) -> None:
        bar.set_postfix_str(_summary(records), refresh=False)
        bar.update(max(record.step for record in records) - bar.n)

    return advance


def _summary(records: Sequence["Record"]) -> str:
    """Median over the models."""
    middle = len(records) // 2
    loss, ratio = (
        sorted(getattr(record, name) for record in records)[middle] for name in ("loss", "relative_inertia")
    )
    return f"loss {loss:.4g}, Eq. 20 {ratio:.4f}"
