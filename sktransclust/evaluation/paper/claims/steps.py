"""What the paper says of many steps (Fig. 6, 7, 8, 12, 18)."""

import math
from functools import partial

import pandas as pd

from .base import FAMILIES_WITHOUT_CAUCHY, LEARNING, Verdict, all_above, all_below, claim, where

LLOYD = "Lloyd"
L2_CODED = ("OH:L2", "BN:L2")


def _at(rows: pd.DataFrame, model: str, step: int | None = None) -> float:
    """Median over the seeds of the mean log objective at a step, or at the last one."""
    chosen = where(rows, model=model)
    chosen = chosen[chosen.step == (chosen.step.max() if step is None else step)]
    return float(chosen["value"].fillna(math.inf).median())


def _less_lloyd(rows: pd.DataFrame, models: tuple[str, ...], step: int | None = None) -> dict[str, float]:
    """Difference of the log objective to Lloyd's after as many iterations; below 0 the models are better."""
    return {model: _at(rows, model, step) - _at(rows, LLOYD, step) for model in models}


def _by_panel(table: pd.DataFrame, models: tuple[str, ...], columns: tuple[str, ...]) -> dict[str, float]:
    return {
        f"{' -> '.join(map(str, key))} {model}": value
        for key, rows in table.groupby(list(columns), sort=False)
        for model, value in _less_lloyd(rows, models).items()
    }


@claim("fig6", "Eq. 4 iterated diverges after the first step, for all models", "diverges")
def iterated_steps_diverge(table: pd.DataFrame) -> Verdict:
    rows = where(table, stepping="Eq. 4 iterated")
    models = (*LEARNING, "NA:NE", "NA:L2")
    return all_above({model: _at(rows, model) - _at(rows, model, 1) for model in models}, 0)


@claim("fig6", "Re-embedded, OH and BN end below Lloyd", "below")
def reembedded_steps_beat_lloyd(table: pd.DataFrame) -> Verdict:
    return all_below(_less_lloyd(where(table, stepping="re-embedded"), LEARNING), 0)


@claim("fig6", "Re-embedded, models without a code end above Lloyd", "above")
def no_code_underperforms_lloyd(table: pd.DataFrame) -> Verdict:
    return all_above(_less_lloyd(where(table, stepping="re-embedded"), ("NA:NE", "NA:L2")), 0)


@claim("fig6", "Re-embedded, models without a code improve with the steps", "improve")
def no_code_improves(table: pd.DataFrame) -> Verdict:
    rows = where(table, stepping="re-embedded")
    return all_below({m: _at(rows, m) - _at(rows, m, 1) for m in ("NA:NE", "NA:L2")}, 0)


def _ends_below_lloyd(table: pd.DataFrame, test: str) -> Verdict:
    return all_below(_less_lloyd(where(table, test=test), L2_CODED), 0)


for _name, _words, _test in (
    ("unequal-weights", "Unequal weights", "unequal weights"),
    ("anisotropic", "Anisotropic components", "anisotropic"),
    ("half-the-scale", "Half the scale", "scale 0.05"),
    ("twice-the-scale", "Twice the scale", "scale 0.2"),
):
    claim("fig7", f"{_words}: OH and BN end below Lloyd", "below", name=_name)(
        partial(_ends_below_lloyd, test=_test)
    )


@claim("fig7", "Twice the scale: at first, OH and BN are above Lloyd", "above at the first steps")
def twice_the_scale_at_first(table: pd.DataFrame) -> Verdict:
    return all_above(_less_lloyd(where(table, test="scale 0.2"), L2_CODED, step=1), 0)


@claim("fig8", "Models trained on Cauchy tasks diverge on all families", "diverge")
def cauchy_trained_models_diverge(table: pd.DataFrame) -> Verdict:
    rows = where(table, trained_on="cauchy")
    growth = {
        f"{test} {model}": _at(group, model) - _at(group, model, 0)
        for test, group in rows.groupby("test", sort=False)
        for model in L2_CODED
    }
    return all_above(growth, 0)


@claim("fig8", "On Cauchy tasks, OH and BN end above Lloyd", "not competitive")
def not_competitive_on_cauchy_tasks(table: pd.DataFrame) -> Verdict:
    rows = where(table, test="cauchy")
    rows = rows[rows.trained_on.isin(FAMILIES_WITHOUT_CAUCHY)]
    return all_above(_by_panel(rows, L2_CODED, ("trained_on", "test")), 0)


@claim("fig8", "On Cauchy tasks, OH and BN do not diverge", "do not diverge")
def no_divergence_on_cauchy_tasks(table: pd.DataFrame) -> Verdict:
    rows = where(table, test="cauchy")
    rows = rows[rows.trained_on.isin(FAMILIES_WITHOUT_CAUCHY)]
    growth = {
        f"{trained} {model}": _at(group, model) - _at(group, model, 0)
        for trained, group in rows.groupby("trained_on", sort=False)
        for model in L2_CODED
    }
    return all_below(growth, 0)


@claim("fig8", "But for Cauchy, every family's OH and BN end below Lloyd on every family", "4 x 4 below")
def families_transfer(table: pd.DataFrame) -> Verdict:
    rows = table[table.test.isin(FAMILIES_WITHOUT_CAUCHY) & table.trained_on.isin(FAMILIES_WITHOUT_CAUCHY)]
    return all_below(_by_panel(rows, L2_CODED, ("trained_on", "test")), 0)


@claim("fig12", "OH and BN end below Lloyd for every number of samples", "n = 128 to 2048")
def other_numbers_of_samples(table: pd.DataFrame) -> Verdict:
    return all_below(_by_panel(table, L2_CODED, ("test",)), 0)
