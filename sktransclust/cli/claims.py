"""``sktransclust claims``: which of the paper's claims hold in a folder of tables."""

import argparse
from pathlib import Path


def add_claims(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "claims",
        help="check the paper's claims on tables that reproduce made",
        description="Print what the paper claims, its value and ours, and whether the claim holds.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="where reproduce wrote its tables")
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="write the documentation's page, reStructuredText, too"
    )
    parser.set_defaults(run=_claims)


def _claims(options: argparse.Namespace) -> int:
    from ..evaluation.paper.claims import verdicts
    from ..evaluation.paper.page import verdict_word, write_page

    if not options.folder.is_dir():
        raise ValueError(f"`DIR` should be a folder of tables, got {options.folder}.")
    for claim, verdict, origin in verdicts(options.folder):
        if verdict is not None:
            profile = origin["profile"]["name"]
            print(f"{verdict_word(verdict):13} {claim.table:5} {claim.statement} [{profile}]")
            print(f"{'':19} paper: {claim.paper}; here: {verdict.ours}")
        else:
            print(f"{verdict_word(verdict):13} {claim.table:5} {claim.statement}")
    if options.page is not None:
        write_page(options.folder, options.page)
    return 0
