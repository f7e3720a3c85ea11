"""The documentation's page: every figure with the claims that its table decides."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .claims import Claim, Verdict, verdicts
from .experiments import EXPERIMENTS
from .findings import FINDINGS
from .notes import INTRODUCTION, NOTES

COMMAND = "sktransclust reproduce {name} --profile {profile} --out docs/reproduction --resume"
Judged = tuple[Claim, Verdict | None, dict[str, Any]]


def verdict_word(verdict: Verdict | None) -> str:
    """Say in a word or two what became of a claim."""
    return "not measured" if verdict is None else "holds" if verdict.holds else "fails"


def write_page(folder: Path, page: Path) -> None:
    """Write the page about a folder of tables; links are relative to the page."""
    page.write_text("\n".join(_lines(folder, page)) + "\n", encoding="utf-8")


def _lines(folder: Path, page: Path) -> Iterator[str]:
    judged = list(verdicts(folder))
    yield from ("Reproduction", "============", "", INTRODUCTION.strip(), "")
    yield from _summary(judged)
    for name, experiment in EXPERIMENTS.items():
        own = [found for found in judged if found[0].table == name]
        title = ". ".join(filter(None, [_number(name), experiment.title]))
        yield from (f".. _{name}:", "", title, "-" * len(title), "")
        if (folder / f"{name}.csv").exists():
            yield from _figure(folder.relative_to(page.parent), name, title, _origin(folder, name))
        else:
            yield "Not measured yet. This computes it::"
            yield from ("", f"    {COMMAND.format(name=name, profile='laptop')}", "")
        if name in NOTES:
            yield from (NOTES[name].strip(), "")
        yield from _claims(own)


def _number(name: str) -> str:
    """Say "Figure 2" for "fig2", and nothing for what is not in the paper."""
    kinds = {"fig": "Figure", "tab": "Table"}
    return f"{kinds[name[:3]]} {name[3:]}" if name[:3] in kinds else ""


def _origin(folder: Path, name: str) -> Mapping[str, Any]:
    from .tables import read_origin

    return read_origin(folder / f"{name}.csv")


def _figure(relative: Path, name: str, title: str, origin: Mapping[str, Any]) -> Iterator[str]:
    yield from (f".. image:: {(relative / name).as_posix()}.png", f"   :alt: {title}", "")
    profile = origin["profile"]
    seeds = len(origin["seeds"])
    versions = ", ".join(f"{what} {version}" for what, version in origin["versions"].items())
    yield (
        f"Profile *{profile['name']}* with {seeds} {'seed' if seeds == 1 else 'seeds'}; {versions}; "
        f"{origin['machine']}. Table: :download:`{name}.csv <{(relative / name).as_posix()}.csv>`."
    )
    yield ""


def _summary(judged: list[Judged]) -> Iterator[str]:
    counts = {word: 0 for word in ("holds", "fails", "not measured")}
    for _, verdict, _ in judged:
        counts[verdict_word(verdict)] += 1
    yield (
        f"Of {len(judged)} claims, {counts['holds']} hold in our tables, {counts['fails']} fail, and "
        f"{counts['not measured']} are not measured yet."
    )
    yield ""
    failing = [claim for claim, verdict, _ in judged if verdict is not None and not verdict.holds]
    if failing:
        yield from ("Those that fail:", "")
        yield from (
            f"- :ref:`{_number(c.table)} <{c.table}>`: {c.statement} (paper: {c.paper})." for c in failing
        )
        yield ""


def _claims(judged: list[Judged]) -> Iterator[str]:
    if not judged:
        return
    yield from (".. list-table::", "   :header-rows: 1", "   :widths: 40 20 28 12", "")
    for row in [("Claim", "Paper", "Here", ""), *map(_row, judged)]:
        for column, cell in enumerate(row):
            bullet = "*" if column == 0 else " "
            yield f"   {bullet} - {cell}".rstrip()
    yield ""
    for claim, verdict, _ in judged:
        if verdict is not None and not verdict.holds and claim.name in FINDINGS:
            yield from (f"*{claim.statement}*, why not: {FINDINGS[claim.name].strip()}", "")


def _row(found: Judged) -> tuple[str, str, str, str]:
    claim, verdict, _ = found
    word = verdict_word(verdict)
    return claim.statement, claim.paper, "" if verdict is None else verdict.ours, f"**{word}**"
