"""A claim of the paper as a named predicate over our tables."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..tables import read_table

LEARNING = ("OH:NE", "OH:L2", "BN:NE", "BN:L2")
FAMILIES_WITHOUT_CAUCHY = ("gumbel", "laplace", "lognormal", "normal")


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in our tables, and the number behind it."""

    holds: bool
    ours: str


@dataclass(frozen=True)
class Claim:
    """Something that the paper reports."""

    name: str
    table: str  # the experiment whose table decides
    statement: str
    paper: str  # the paper's value
    check: Callable[[pd.DataFrame], Verdict]


CLAIMS: list[Claim] = []


def claim(
    table: str, statement: str, paper: str = "", name: str | None = None
) -> Callable[[Callable[[pd.DataFrame], Verdict]], Callable[[pd.DataFrame], Verdict]]:
    """Register a predicate, named after its function where no name is given."""

    def register(check: Callable[[pd.DataFrame], Verdict]) -> Callable[[pd.DataFrame], Verdict]:
        own_name = name or check.__name__.replace("_", "-")
        CLAIMS.append(Claim(own_name, table, statement, paper, check))
        return check

    return register


def verdicts(folder: Path) -> Iterator[tuple[Claim, Verdict | None, dict[str, Any]]]:
    """Yield every claim with its verdict and the origin of its table; no verdict where there is no table."""

    @cache
    def table(name: str) -> pd.DataFrame | None:
        path = folder / f"{name}.csv"
        return read_table(path) if path.exists() else None

    for found in CLAIMS:
        rows = table(found.table)
        if rows is None:
            yield found, None, {}
        else:
            yield found, found.check(rows), rows.attrs


def where(table: pd.DataFrame, **columns: Any) -> pd.DataFrame:
    """Rows whose columns have these values."""
    for column, value in columns.items():
        table = table[table[column] == value]
    return table


def at_the_end(rows: pd.DataFrame, metric: str = "relative_inertia") -> float:
    """Median over the seeds of the mean over the last tenth of the validations."""
    return _part(rows[rows.metric == metric], lambda last: last["step"] > 0.9 * last["step"].max())


def at_the_start(rows: pd.DataFrame, metric: str = "relative_inertia") -> float:
    """Median over the seeds of the first validation."""
    return _part(rows[rows.metric == metric], lambda first: first["step"] == first["step"].min())


def on_the_way(rows: pd.DataFrame, metric: str = "relative_inertia") -> float:
    """Median over the seeds of the mean over all validations: the lower, the sooner it fell."""
    return _part(rows[rows.metric == metric], lambda all_: all_["step"] >= 0)


def _part(rows: pd.DataFrame, choose: Callable[[pd.DataFrame], pd.Series]) -> float:
    means = [seed[choose(seed)]["value"].mean() for _, seed in rows.groupby("seed")]
    return float(np.median(means)) if means else math.nan


def ends(table: pd.DataFrame, curves: tuple[str, ...], by: tuple[str, ...] = ()) -> dict[str, float]:
    """Eq. 20 at the end, by curve and panel."""
    rows = table[table["model"].isin(curves)]
    return {
        " ".join(map(_text, key)): at_the_end(group)
        for key, group in rows.groupby([*by, "model"], sort=False)
    }


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def all_below(values: dict[str, float], bound: float = 1.0) -> Verdict:
    """Whether all values are below a bound."""
    worst = max(values, key=lambda name: _or(values[name], math.inf))
    return Verdict(all(value < bound for value in values.values()), _many(values, worst, "largest"))


def all_above(values: dict[str, float], bound: float = 1.0) -> Verdict:
    """Whether all values are above a bound; what is not finite is above."""
    worst = min(values, key=lambda name: _or(values[name], math.inf))
    holds = all(value > bound or math.isnan(value) for value in values.values())
    return Verdict(holds, _many(values, worst, "smallest"))


def _or(value: float, other: float) -> float:
    return other if math.isnan(value) else value


def _many(values: dict[str, float], name: str, which: str) -> str:
    if len(values) == 1:
        return f"{values[name]:.3g}"
    return f"{which} of {len(values)}: {values[name]:.3g} ({name})"
