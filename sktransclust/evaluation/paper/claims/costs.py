"""What the paper says of time and memory (Fig. 1, 17, Tab. 1)."""

import pandas as pd

from .base import Verdict, claim, where

TIMES = ("forward_train", "backward", "forward_eval")
#: A median time slower by less than this is within the noise of a machine that does other things too.
NOISE = 0.05


def _ratios(table: pd.DataFrame, metric: str, suffix: str = "") -> pd.Series:
    """Median of OH over median of BN in each cell, by d and k."""
    medians = table[table.metric == metric].groupby(["d", "k", "model"])["value"].median().unstack("model")
    return medians[f"OH{suffix}"] / medians[f"BN{suffix}"]


def _largest_k(table: pd.DataFrame, metric: str) -> float:
    return float(_ratios(table[table.k == table.k.max()], metric).iloc[0])


@claim("fig1", "BN needs less memory than OH for every d and k", "1 to 15 % less")
def bn_needs_less_memory(table: pd.DataFrame) -> Verdict:
    gain = 1 - 1 / _ratios(table, "memory")
    return Verdict(bool((gain > 0).all()), f"{gain.min():.1%} to {gain.max():.1%} less")


@claim("fig1", "BN saves more than half of a time where k is large", "over 50 % in some cases")
def bn_saves_half_of_the_time(table: pd.DataFrame) -> Verdict:
    gain = max((1 - 1 / _ratios(table, metric)).max() for metric in TIMES)
    return Verdict(bool(gain > 0.5), f"up to {gain:.1%}")


@claim("fig1", "BN is not always faster where k is small", "negative gains for small k")
def bn_can_be_slower_for_small_k(table: pd.DataFrame) -> Verdict:
    small = table[table.k <= 25]
    gain = min((1 - 1 / _ratios(small, metric)).min() for metric in TIMES)
    return Verdict(bool(gain < 0), f"least gain for k <= 25: {gain:.1%}")


@claim("tab1", "At k = 1000 the forward pass of BN is faster by", "12.14x")
def forward_speedup_at_1000(table: pd.DataFrame) -> Verdict:
    ratio = _largest_k(table, "forward_train")
    return Verdict(ratio >= 12.14, f"{ratio:.2f}x at k = {table.k.max()}")


@claim("tab1", "At k = 1000 the backward pass of BN is faster by", "9.54x")
def backward_speedup_at_1000(table: pd.DataFrame) -> Verdict:
    ratio = _largest_k(table, "backward")
    return Verdict(ratio >= 9.54, f"{ratio:.2f}x at k = {table.k.max()}")


@claim("tab1", "At k = 1000 BN saves memory", "69.3 %")
def memory_saved_at_1000(table: pd.DataFrame) -> Verdict:
    gain = 1 - 1 / _largest_k(table, "memory")
    return Verdict(gain >= 0.693, f"{gain:.1%} at k = {table.k.max()}")


@claim("tab1", "The larger k, the larger the gain in time and memory", "forward 0.88x to 12.14x")
def gains_grow_with_k(table: pd.DataFrame) -> Verdict:
    ratios = {metric: _ratios(table, metric) for metric in ("forward_train", "backward", "memory")}
    # Up to noise where k is so small that there is next to nothing to gain.
    grows = all((ratio.diff().dropna() > -NOISE).all() for ratio in ratios.values())
    forward = ratios["forward_train"]
    return Verdict(grows, f"forward {forward.iloc[0]:.2f}x to {forward.iloc[-1]:.2f}x")


@claim("tab1", "BN is at one place slower than OH; here it should be nowhere", "0.88x at k = 6")
def bn_is_never_slower(table: pd.DataFrame) -> Verdict:
    least = min(_ratios(table, metric).min() for metric in ("forward_train", "backward"))
    return Verdict(bool(least > 1 - NOISE), f"least ratio {least:.2f}x")


def _time_to(rows: pd.DataFrame, model: str, level: float) -> float:
    """Seconds until the median of Eq. 20 first falls to a level; infinite if it never does."""
    seconds = where(rows, metric="seconds_a_step", model=model)["value"].iloc[0]
    median = where(rows, metric="relative_inertia", model=model).groupby("step")["value"].median()
    reached = median[median <= level]
    return float(reached.index[0] * seconds) if len(reached) else float("inf")


def _race(table: pd.DataFrame, block: str) -> dict[int, tuple[float, float]]:
    """Time of OH and of BN, by n, until half-way from the first to the best value of the slower one."""
    found = {}
    for n, rows in table[table["block"].str.startswith(block)].groupby("n"):
        curves = where(rows, metric="relative_inertia")
        best = curves.groupby(["model", "step"])["value"].median().groupby("model").min().max()
        first = curves[curves.step == curves.step.min()]["value"].median()
        level = (best + first) / 2
        found[n] = (_time_to(rows, "OH:L2", level), _time_to(rows, "BN:L2", level))
    return found


def _times(race: dict[int, tuple[float, float]]) -> str:
    return "; ".join(f"n = {n}: OH {oh:.3g} s, BN {bn:.3g} s half-way down" for n, (oh, bn) in race.items())


@claim("fig17", "k = 16, d = 16: against time, BN converges slower than OH", "for all n")
def bn_is_slower_against_time_at_16(table: pd.DataFrame) -> Verdict:
    race = _race(table, "(a)")
    return Verdict(all(bn > oh for oh, bn in race.values()), _times(race))


@claim("fig17", "k = 25, d = 32: against time, BN is at first faster than OH", "for all n")
def bn_is_faster_against_time_at_25(table: pd.DataFrame) -> Verdict:
    race = _race(table, "(b)")
    return Verdict(all(bn < oh for oh, bn in race.values()), _times(race))
