"""What the paper says of training (Fig. 2, 4, 10, 11, 13 to 16)."""

import math
from itertools import pairwise

import pandas as pd

from .base import (
    FAMILIES_WITHOUT_CAUCHY,
    LEARNING,
    Verdict,
    all_above,
    all_below,
    at_the_end,
    at_the_start,
    claim,
    ends,
    on_the_way,
    where,
)

NE = ("OH:NE", "BN:NE", "NA:NE")
L2 = ("OH:L2", "BN:L2", "NA:L2")
NA = ("NA:NE", "NA:L2")
L2_CODED = ("OH:L2", "BN:L2")


def _gaps(table: pd.DataFrame, pairs: tuple[tuple[str, str], ...], by: str) -> dict[float, float]:
    """Mean over pairs of curves of the relative difference of Eq. 20 over the training, by panel."""
    return {
        value: sum(
            abs(math.log(on_the_way(where(rows, model=a)) / on_the_way(where(rows, model=b))))
            for a, b in pairs
        )
        / len(pairs)
        for value, rows in table.groupby(by)
    }


CODE_PAIRS = (("OH:NE", "BN:NE"), ("OH:L2", "BN:L2"))
SMOOTHING_PAIRS = (("OH:NE", "OH:L2"), ("BN:NE", "BN:L2"))


def _vanishes(gaps: dict[float, float]) -> Verdict:
    """Whether the gap at the largest value is less than half of that at the smallest."""
    first, last = min(gaps), max(gaps)
    text = ", ".join(f"d = {value:g}: {gap:.1%}" for value, gap in gaps.items())
    return Verdict(gaps[last] < gaps[first] / 2, text)


@claim("fig2", "The loss with L2 is below that with NE, for every code, tau and d", "always")
def l2_loss_is_lower(table: pd.DataFrame) -> Verdict:
    ratios = {}
    for (d, tau), rows in table.groupby(["d", "tau"], sort=False):
        for code in ("OH", "BN", "NA"):
            l2, ne = (at_the_end(where(rows, model=f"{code}:{s}"), "loss") for s in ("L2", "NE"))
            ratios[f"d = {d}, tau = {tau:g}, {code}"] = l2 / ne
    return all_below(ratios)


@claim("fig2", "d = 4, tau = 1: NE's Eq. 20 rises in training", "for all codes")
def ne_gets_worse_at_tau_1(table: pd.DataFrame) -> Verdict:
    rows = where(table, d=4, tau=1.0)
    return all_above({m: at_the_end(where(rows, model=m)) / at_the_start(where(rows, model=m)) for m in NE})


@claim("fig2", "d = 4, tau = 1: L2's Eq. 20 falls in training", "for OH and BN")
def l2_gets_better_at_tau_1(table: pd.DataFrame) -> Verdict:
    rows = where(table, d=4, tau=1.0)
    return all_below(
        {m: at_the_end(where(rows, model=m)) / at_the_start(where(rows, model=m)) for m in L2_CODED}
    )


@claim("fig2", "d = 4, tau = 1: L2 does not match Lloyd", "at least 1")
def l2_stays_above_1_at_tau_1(table: pd.DataFrame) -> Verdict:
    return all_above(ends(where(table, d=4, tau=1.0), L2))


@claim("fig2", "d = 4, tau = 0.1: OH and BN beat one Lloyd iteration, NE and L2", "below 1")
def codes_beat_lloyd_at_d_4(table: pd.DataFrame) -> Verdict:
    return all_below(ends(where(table, d=4, tau=0.1), LEARNING))


@claim("fig2", "d = 4, tau = 0.1: without a code Lloyd is not matched", "above 1")
def no_code_does_not_match_lloyd(table: pd.DataFrame) -> Verdict:
    return all_above(ends(where(table, d=4, tau=0.1), NA))


@claim("fig2", "d = 4, tau = 0.1: OH converges before BN", "NE and L2")
def oh_converges_before_bn(table: pd.DataFrame) -> Verdict:
    rows = where(table, d=4, tau=0.1)
    means = {m: on_the_way(where(rows, model=m)) for m in LEARNING}
    text = ", ".join(f"{m} {value:.3f}" for m, value in means.items())
    return Verdict(all(means[a] < means[b] for a, b in CODE_PAIRS), f"mean Eq. 20 on the way: {text}")


@claim("fig2", "A larger tau converges faster", "tau = 1 before 0.1, d = 4, L2")
def larger_tau_converges_faster(table: pd.DataFrame) -> Verdict:
    found = {}
    for tau in (1.0, 0.1):
        for model in L2_CODED:
            rows = where(table, d=4, tau=tau, model=model, metric="loss")
            median = rows.groupby("step")["value"].median()
            halfway = (median.iloc[0] + median.iloc[-1]) / 2
            found[model, tau] = median.index[(median <= halfway).argmax()]
    text = ", ".join(f"{model} tau = {tau:g}: {step}" for (model, tau), step in found.items())
    return Verdict(
        all(found[m, 1.0] <= found[m, 0.1] for m in L2_CODED), f"loss half-way down at step {text}"
    )


@claim("fig2", "tau = 0.25: the difference between OH and BN vanishes from d = 4 to 16", "vanishes")
def code_gap_vanishes_at_16(table: pd.DataFrame) -> Verdict:
    return _vanishes(_gaps(where(table, tau=0.25), CODE_PAIRS, "d"))


@claim("fig2", "tau = 0.25: the difference between NE and L2 vanishes from d = 4 to 16", "vanishes")
def smoothing_gap_vanishes_at_16(table: pd.DataFrame) -> Verdict:
    return _vanishes(_gaps(where(table, tau=0.25), SMOOTHING_PAIRS, "d"))


@claim("fig4", "Trained on Cauchy tasks, no model matches Lloyd on them", "above 1, significantly")
def cauchy_fails(table: pd.DataFrame) -> Verdict:
    return all_above(ends(where(table, family="cauchy"), NE + L2, ("tau",)))


@claim("fig4", "tau = 1: NE does not match Lloyd, for any family", "above 1")
def ne_fails_at_tau_1(table: pd.DataFrame) -> Verdict:
    return all_above(ends(where(table, tau=1.0), NE, ("family",)))


@claim("fig4", "tau = 1: L2 with OH and BN beats Lloyd, but for Cauchy", "below 1")
def l2_beats_lloyd_at_tau_1(table: pd.DataFrame) -> Verdict:
    rows = table[table.family.isin(FAMILIES_WITHOUT_CAUCHY)]
    return all_below(ends(where(rows, tau=1.0), L2_CODED, ("family",)))


@claim("fig4", "tau = 0.1: NE and L2 with OH and BN beat Lloyd, but for Cauchy", "below 1")
def codes_beat_lloyd_for_four_families(table: pd.DataFrame) -> Verdict:
    rows = table[table.family.isin(FAMILIES_WITHOUT_CAUCHY)]
    return all_below(ends(where(rows, tau=0.1), LEARNING, ("family",)))


@claim("fig10", "The smaller tau, the lower the loss at the end", "for OH and BN")
def smaller_tau_lowers_the_loss(table: pd.DataFrame) -> Verdict:
    ratios = {}
    for (d, model), rows in table[table["model"].isin(LEARNING)].groupby(["d", "model"], sort=False):
        losses = [at_the_end(where(rows, tau=tau), "loss") for tau in sorted(rows.tau.unique())]
        ratios[f"d = {d}, {model}"] = max(a / b for a, b in pairwise(losses))
    return all_below(ratios)


@claim("fig10", "d = 32 needs no small tau: L2 with OH and BN beats Lloyd at tau = 1 too", "below 1")
def large_d_needs_no_small_tau(table: pd.DataFrame) -> Verdict:
    return all_below(ends(where(table, d=32), L2_CODED, ("tau",)))


@claim("fig11", "A learning rate of 0.001 is slower than 0.01", "d = 4 and 32")
def small_learning_rate_is_slower(table: pd.DataFrame) -> Verdict:
    ratios = {
        f"d = {d}, {model}": on_the_way(where(rows, learning_rate=0.01))
        / on_the_way(where(rows, learning_rate=0.001))
        for (d, model), rows in table[table["model"].isin(LEARNING)].groupby(["d", "model"], sort=False)
    }
    return all_below(ratios)


@claim("fig11", "Learning rates of 0.1 and 1 do not generalize at d = 32", "above 1")
def large_learning_rates_fail_at_d_32(table: pd.DataFrame) -> Verdict:
    rows = where(table, d=32)
    return all_above(ends(rows[rows.learning_rate >= 0.1], LEARNING, ("learning_rate",)))


@claim("fig11", "A learning rate of 1 does not generalize at d = 4", "above 1")
def largest_learning_rate_fails_at_d_4(table: pd.DataFrame) -> Verdict:
    return all_above(ends(where(table, d=4, learning_rate=1.0), LEARNING))


@claim("fig13", "The number of samples does not affect training", "no significant effect")
def number_of_samples_does_not_matter(table: pd.DataFrame) -> Verdict:
    spreads = {}
    for (d, model), rows in table.groupby(["d", "model"], sort=False):
        finals = [at_the_end(group) for _, group in rows.groupby("n")]
        spreads[f"d = {d}, {model}"] = max(finals) / min(finals) - 1
    verdict = all_below(spreads, 0.1)
    return Verdict(verdict.holds, f"spread of Eq. 20 over n, {verdict.ours}")


@claim("fig14", "The difference between OH and BN vanishes as d grows from 4 to 32", "tau = 0.25 and 0.1")
def code_gap_vanishes_with_d(table: pd.DataFrame) -> Verdict:
    return _both(table, CODE_PAIRS)


@claim("fig14", "The difference between NE and L2 vanishes as d grows from 4 to 32", "tau = 0.25 and 0.1")
def smoothing_gap_vanishes_with_d(table: pd.DataFrame) -> Verdict:
    return _both(table, SMOOTHING_PAIRS)


def _both(table: pd.DataFrame, pairs: tuple[tuple[str, str], ...]) -> Verdict:
    found = {tau: _vanishes(_gaps(rows, pairs, "d")) for tau, rows in table.groupby("tau", sort=False)}
    text = "; ".join(f"tau = {tau:g}: {verdict.ours}" for tau, verdict in found.items())
    return Verdict(all(verdict.holds for verdict in found.values()), text)


def _unclipped(table: pd.DataFrame) -> pd.DataFrame:
    return table[table.clip_norm.isin([math.inf])]


@claim("fig15", "d = 4, tau = 1: no k at which NE or L2 matches Lloyd", "above 1")
def nothing_matches_lloyd_at_d_4_tau_1(table: pd.DataFrame) -> Verdict:
    return all_above(ends(where(table, d=4, tau=1.0), LEARNING, ("k",)))


@claim("fig15", "d = 4, tau = 0.1: OH with L2 beats Lloyd for all k", "below 1")
def oh_beats_lloyd_at_d_4(table: pd.DataFrame) -> Verdict:
    return all_below(ends(where(table, d=4, tau=0.1), ("OH:L2",), ("k",)))


@claim("fig15", "d = 4, tau = 0.1: BN slows down as k grows, at last below NA", "worse than NA at k = 25")
def bn_slows_down_with_k(table: pd.DataFrame) -> Verdict:
    rows = where(table, d=4, tau=0.1, k=25)
    bn, na = (at_the_end(where(rows, model=f"{code}:L2")) for code in ("BN", "NA"))
    return Verdict(bn > na, f"k = 25: BN {bn:.3f}, NA {na:.3f}")


@claim("fig15", "d = 32, tau = 1: L2 with OH and BN beats Lloyd for all k", "below 1")
def l2_beats_lloyd_at_d_32_tau_1(table: pd.DataFrame) -> Verdict:
    return all_below(ends(where(_unclipped(table), d=32, tau=1.0), L2_CODED, ("k",)))


@claim("fig15", "d = 32, tau = 0.1: OH and BN beat Lloyd for all k, NE and L2", "below 1")
def codes_beat_lloyd_at_d_32(table: pd.DataFrame) -> Verdict:
    return all_below(ends(where(_unclipped(table), d=32, tau=0.1), LEARNING, ("k",)))


@claim("fig15", "d = 32, tau = 0.1, k = 25: with clipping all seeds of OH beat Lloyd", "cures 3 of 10 seeds")
def clipping_cures(table: pd.DataFrame) -> Verdict:
    rows = table[(table.clip_norm < math.inf) & table["model"].isin(["OH:NE", "OH:L2"])]
    return all_below(
        {f"{m} seed {seed}": at_the_end(group) for (m, seed), group in rows.groupby(["model", "seed"])}
    )


@claim("fig16", "tau = 0.1: OH and BN beat Lloyd but for Cauchy, also for k = 6", "below 1")
def codes_beat_lloyd_for_both_k(table: pd.DataFrame) -> Verdict:
    rows = table[table.family.isin(FAMILIES_WITHOUT_CAUCHY)]
    return all_below(ends(where(rows, tau=0.1), LEARNING, ("k", "family")))


@claim("fig16", "tau = 1: NE does not match Lloyd with Gumbel and Laplace tasks", "above 1")
def ne_fails_for_gumbel_and_laplace(table: pd.DataFrame) -> Verdict:
    rows = table[table.family.isin(["gumbel", "laplace"])]
    return all_above(ends(where(rows, tau=1.0), ("OH:NE", "BN:NE"), ("k", "family")))


@claim("fig16", "Cauchy fails for both k", "above 1")
def cauchy_fails_for_both_k(table: pd.DataFrame) -> Verdict:
    return all_above(ends(where(table, family="cauchy"), NE + L2, ("k", "tau")))
