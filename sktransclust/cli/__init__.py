"""The ``sktransclust`` command: one file per subcommand."""

import argparse
import sys
from collections.abc import Sequence

from .bench import add_bench
from .claims import add_claims
from .info import add_info
from .reproduce import add_reproduce
from .train import add_train


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        In place of those the program was called with.

    Returns
    -------
    int
        The exit status: 0, 1 after an error that has been printed, 130 after Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except (ValueError, OSError) as error:
        message = str(error)
    except ModuleNotFoundError as error:
        if error.name not in ("matplotlib", "pandas"):
            raise
        message = f'{error}: install the package with its extra "paper", as in pip install ".[paper]".'
    print(f"sktransclust: {message}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sktransclust", description="k-means clustering by a transformer, exact or learned."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_train(commands)
    add_info(commands)
    add_bench(commands)
    add_reproduce(commands)
    add_claims(commands)
    return parser
