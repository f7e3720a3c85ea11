"""``sktransclust reproduce``: make the paper's figures and tables anew."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from .train import INTERRUPTED


def add_reproduce(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "reproduce",
        help="make the paper's figures and tables",
        description="Train what a figure needs, write its table (ID.csv), and draw it from the table.",
    )
    parser.add_argument(
        "ids", nargs="+", metavar="ID", help="fig1 to fig19, tab1 to tab3, cauchy, scalings, bundled, or all"
    )
    parser.add_argument(
        "--profile",
        default="smoke",
        help="smoke (minutes, proves nothing), laptop (hours), or paper (the paper's own settings)",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="where everything goes")
    parser.add_argument("--resume", action="store_true", help="go on with the models and tables in DIR")
    parser.add_argument("--seeds", type=int, metavar="N", help="train N models a curve, not the profile's")
    parser.add_argument("--device", default="cpu", help="cpu (the default), cuda, cuda:1, ...")
    parser.set_defaults(run=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    from .._device import resolve_device
    from ..evaluation.paper.profiles import PROFILES
    from ..evaluation.paper.reproduce import chosen, reproduce

    if options.profile not in PROFILES:
        raise ValueError(f"`--profile` should be one of {', '.join(PROFILES)}, got {options.profile!r}.")
    profile = PROFILES[options.profile]
    if options.seeds is not None:
        if options.seeds < 1:
            raise ValueError(f"`--seeds` should be at least 1, got {options.seeds}.")
        profile = replace(profile, n_seeds=options.seeds)
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        reproduce(
            chosen(options.ids),
            profile,
            options.out,
            resume=options.resume,
            device=resolve_device(options.device),
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )
    except KeyboardInterrupt:
        print("\nStopped. The same command with --resume continues.", file=sys.stderr)
        return INTERRUPTED
    return 0
