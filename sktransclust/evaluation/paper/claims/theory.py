"""What the paper says of surfaces, dissimilarities and bounds (Fig. 3, 5, 9, 19, Tab. 2, 3)."""

import numpy as np
import pandas as pd
from scipy.ndimage import minimum_filter

from .base import Verdict, all_below, claim, where

LARGEST_NORMAL_GAP, LEAST_CAUCHY_GAP = 0.5, 5.0


def _surface(rows: pd.DataFrame, metric: str = "smoothed") -> np.ndarray:
    return where(rows, metric=metric).pivot(index="a", columns="b", values="value").to_numpy()


def _minima(surface: np.ndarray) -> int:
    """How many points are lower than or equal to all their neighbours."""
    return int((surface == minimum_filter(surface, size=3, mode="nearest")).sum())


@claim("fig3", "The loss surfaces have a single minimum", "fairly unimodal")
def surfaces_are_unimodal(table: pd.DataFrame) -> Verdict:
    found = {
        f"d = {d} {model}": float(_minima(_surface(rows)))
        for (d, model), rows in table.groupby(["d", "model"], sort=False)
    }
    return all_below(found, 1.5)


@claim("fig3", "The surfaces of OH and BN differ at d = 4 more than at d = 32", "differ, look alike")
def surfaces_become_alike(table: pd.DataFrame) -> Verdict:
    gaps = {}
    for d, rows in table.groupby("d"):
        oh, bn = (np.log(_surface(where(rows, model=model))) for model in ("OH:L2", "BN:L2"))
        gaps[d] = float(np.abs(oh - bn).mean())
    text = ", ".join(f"d = {d}: {gap:.3f}" for d, gap in gaps.items())
    return Verdict(gaps[32] < gaps[4], f"mean difference of logarithms: {text}")


def _largest_gap(table: pd.DataFrame, family: str) -> float:
    rows = where(table, family=family)
    return float((_surface(rows) - _surface(rows, "true")).max())


@claim("fig5", "Normal tasks: the gap between smoothed and true loss is at most", "0.5")
def gap_is_small_for_normal(table: pd.DataFrame) -> Verdict:
    gap = _largest_gap(table, "normal")
    return Verdict(gap <= LARGEST_NORMAL_GAP, f"{gap:.3g}, summed over 512 samples")


@claim("fig5", "Cauchy tasks: the gap exceeds", "5")
def gap_is_large_for_cauchy(table: pd.DataFrame) -> Verdict:
    gap = _largest_gap(table, "cauchy")
    return Verdict(gap > LEAST_CAUCHY_GAP, f"{gap:.3g}, summed over 512 samples")


@claim("fig5", "The gap is an order of magnitude larger for Cauchy than for normal tasks", "10x")
def gap_grows_for_cauchy(table: pd.DataFrame) -> Verdict:
    ratio = _largest_gap(table, "cauchy") / _largest_gap(table, "normal")
    return Verdict(ratio > 10, f"{ratio:.3g}x")


def _means(table: pd.DataFrame) -> pd.DataFrame:
    """Mean distance of tasks of two families; a task's distance to itself is left out."""
    itself = (table.family == table.other_family) & (table.task == table.other_task)
    return table[~itself].groupby(["family", "other_family"])["value"].mean().unstack()


def _cauchy_is_far(table: pd.DataFrame) -> Verdict:
    means = _means(table)
    others = means.drop("cauchy").drop(columns="cauchy")
    nearest, farthest = float(means["cauchy"].drop("cauchy").min()), float(others.to_numpy().max())
    text = f"nearest to Cauchy {nearest:.3g}; farthest two of the others {farthest:.3g}"
    return Verdict(nearest > farthest, text)


@claim("fig9", "Cauchy tasks are farther from all others than these are from each other", "dissimilar")
def cauchy_is_far(table: pd.DataFrame) -> Verdict:
    return _cauchy_is_far(table)


@claim("fig19", "The same with 16 tasks a family", "dissimilar")
def cauchy_is_far_with_16_tasks(table: pd.DataFrame) -> Verdict:
    return _cauchy_is_far(table)


@claim("fig19", "Of the others, Laplace tasks are the nearest to Cauchy ones", "least dissimilar")
def laplace_is_nearest_to_cauchy(table: pd.DataFrame) -> Verdict:
    means = _means(table)["cauchy"].drop("cauchy").sort_values()
    text = ", ".join(f"{family} {value:.3g}" for family, value in means.items())
    return Verdict(means.index[0] == "laplace", text)


def _excess(table: pd.DataFrame) -> dict[str, float]:
    wide = table.pivot_table(
        index=["d", "model", "attention", "quantity"], columns="metric", values="value", sort=False
    )
    return {" ".join(map(str, index)): row.measured - row.bound for index, row in wide.iterrows()}


@claim("tab2", "Changes of the attentions stay below the stability constants", "Lemmas I.5 to I.8")
def stability_constants_hold(table: pd.DataFrame) -> Verdict:
    verdict = all_below(_excess(table), 1e-9)
    return Verdict(verdict.holds, f"log10 of the excess, {verdict.ours}")


@claim("tab3", "Norms of tokens and dispersions of scores stay below their bounds", "Lemmas I.1 and I.4")
def norms_stay_below_their_bounds(table: pd.DataFrame) -> Verdict:
    verdict = all_below(_excess(table), 1e-6)
    return Verdict(verdict.holds, f"measured less bound, {verdict.ours}")
