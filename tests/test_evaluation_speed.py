"""The benchmark: its arithmetic by hand, its data, and a run of it as a user would start one."""

import csv
import math

import numpy as np
import pytest
import scipy.sparse as sp

from sktransclust.cli import main
from sktransclust.evaluation.speed import measure, peers, report
from sktransclust.evaluation.speed.cells import CELLS, GROWTH, QUICK, Cell, given_centers, make_data
from sktransclust.evaluation.speed.limits import Limits, measure_limits
from sktransclust.evaluation.speed.measure import Settings, Timing, time_cell


def row(peer, seconds, task="fit", data="blobs"):
    timing = Timing(Cell(data, 100, 2, 3), task, peer, seconds, 5, 3, 1.0, 0.5)
    return report.as_row(timing, "here")


def test_factors_and_shares_by_hand():
    rows = [row("sktransclust", 2.0), row("lloyd", 8.0), row("faiss", 6.0)]
    (line,) = report.compare(rows)
    assert (line["best"], line["factor"], line["lloyd"], line["share"]) == ("faiss", 3.0, 8.0, 0.25)
    rows += [row("sktransclust", 1.0, data="uniform"), row("lloyd", 12.0, data="uniform")]
    (text,) = report.summary(report.compare(rows))
    assert "6.00 times as fast" in text  # the geometric mean of 3 and 12
    assert "3.00 at least" in text


def test_exponents_of_powers_are_exact():
    sizes = np.array([3.0, 10.0, 40.0])
    assert report.exponent(sizes, 7 * sizes**1.5) == pytest.approx(1.5, rel=1e-12)


def test_the_limit_is_the_slower_of_arithmetic_and_memory():
    limits = Limits({"float32": 1e9}, 1e9)
    X = np.zeros((1000, 10), np.float32)
    assert limits.seconds_per_iteration(X, 50) == 2 * 1000 * 10 * 50 / 1e9
    assert limits.seconds_per_iteration(X, 1) == 1000 * 10 * 4 / 1e9
    assert limits.seconds_per_iteration(sp.csr_array(np.eye(4, dtype="f4")), 1) == 4 * 4 / 1e9


def test_rates_are_work_over_the_time_of_the_clock():
    ticks = iter(range(100))
    limits = measure_limits(lambda: next(ticks), repeat=0)  # everything takes one second
    assert limits == Limits({"float32": 2.0 * 1536**3, "float64": 2.0 * 1024**3}, 2.0**28)


@pytest.mark.parametrize("cell", [cell for cell in (*CELLS, *QUICK) if cell.n_samples <= 20_000], ids=str)
def test_data_have_the_size_that_the_cell_says_and_centers_are_different_samples(cell):
    X = make_data(cell, 0)
    assert X.shape == (cell.n_samples, cell.n_features)
    assert X.dtype == cell.dtype
    centers = given_centers(X, cell.n_clusters, 0)
    assert centers.dtype == X.dtype
    rows = {row.tobytes() for row in (X.toarray() if sp.issparse(X) else X)}
    assert len({center.tobytes() for center in centers} & rows) == cell.n_clusters


def test_sparse_data_have_at_most_100_entries_a_row_and_nearly_as_many():
    lengths = np.diff(make_data(CELLS[13], 0).indptr)
    assert lengths.max() <= 100
    assert lengths.mean() > 90


def test_growth_spans_two_decades():
    for size, cells in GROWTH.items():
        assert getattr(cells[-1], size) / getattr(cells[0], size) == 100


class Idle:
    """A peer that takes no time, and gives every sample the label 0."""

    name = "idle"
    cluster_centers_ = labels_ = None

    def can(self, problem):
        return problem.init is not None

    def fit(self, problem, n_iter):
        self.labels_, self.n_iter_ = np.zeros(len(problem.X), np.int32), n_iter
        return self

    def predict(self, fitted, X):
        return fitted.labels_


def test_a_peer_is_timed_where_it_can_and_compared_with_the_references_labels():
    limits, settings = Limits({"float32": 1e9}, 1e9), Settings(repeat=2, max_iter=5)
    timings = list(
        time_cell(QUICK[0], ["fit", "k-means++"], [peers.OURS, peers.REFERENCE, Idle()], limits, settings)
    )
    assert [(t.task, t.peer) for t in timings] == [
        ("fit", "sktransclust"),
        ("fit", "lloyd"),
        ("fit", "idle"),
        ("k-means++", "sktransclust"),
        ("k-means++", "lloyd"),
    ]
    by_peer = {t.peer: t for t in timings[:3]}
    assert by_peer["sktransclust"].agreement == by_peer["lloyd"].agreement == 1.0
    reference = peers.REFERENCE.fit(
        peers.Problem(
            make_data(QUICK[0], 0), 3, given_centers(make_data(QUICK[0], 0), 3, 0), 1, 5, settings.tol, 0
        ),
        0,
    )
    assert by_peer["idle"].agreement == np.mean(reference.labels_ == 0)
    assert {t.n_iter for t in timings[:3]} == {reference.n_iter_}
    assert all(t.rounds == 2 for t in timings)


def test_short_calls_are_repeated_within_a_turn_and_timed_each(monkeypatch):
    now, calls = [0.0], {"short": 0, "long": 0}
    monkeypatch.setitem(measure.CLOCKS, "wall", lambda: now[0])

    def lasting(name, duration):
        def call():
            now[0] += duration
            calls[name] += 1

        return call

    works = {"short": lasting("short", 0.004), "long": lasting("long", 1.0)}
    times = measure._rounds(works, Settings(repeat=3))
    np.testing.assert_allclose(times["short"], [0.004] * 3, rtol=1e-9)
    np.testing.assert_allclose(times["long"], [1.0] * 3, rtol=1e-9)
    assert calls == {"short": 1 + 3 * 6, "long": 1 + 3}  # one to find out how many fill a turn of 0.02 s


def test_absent_peers_are_named(monkeypatch):
    monkeypatch.setitem(peers._OPTIONAL, "faiss", ("no_such_module_anywhere", peers.Faiss))
    found, absent = peers.find_peers(("faiss",))
    assert [peer.name for peer in found] == ["sktransclust", "lloyd"]
    assert "no_such_module_anywhere" in absent["faiss"]


def test_the_command_times_tiny_problems_writes_them_and_draws_them(tmp_path, capsys):
    table, picture = tmp_path / "speed.csv", tmp_path / "speed.png"
    chosen = ["--peers", "elkan", "--tasks", "fit", "predict", "--repeat", "1"]
    assert main(["bench", "--quick", *chosen, "--out", str(table)]) == 0
    printed = capsys.readouterr().out
    assert "fit: " in printed
    assert "GFLOP/s" in printed
    with open(table, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(QUICK) * 2 * 3
    assert {row["peer"] for row in rows} == {"sktransclust", "lloyd", "elkan"}
    assert all(float(row["seconds"]) > 0 for row in rows)
    assert all("scikit-learn" in row["made_with"] for row in rows)
    assert all(float(row["agreement"]) == 1.0 for row in rows if row["data"] != "sparse")
    assert main(["bench", "--chart", str(table), str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    again = capsys.readouterr().out.splitlines()
    assert len(again) == 1 + len(QUICK) * 2 + 2
    assert set(again) <= set(printed.splitlines())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--tasks", "sleep"], "`--tasks` should be of fit"),
        (["--peers", "nobody"], "`--peers` should be of lloyd"),
        (["--clock", "sun"], "`--clock` should be of wall"),
        (["--clock", "cpu", "--threads", "2"], "should go with `--threads 1`"),
    ],
)
def test_wrong_settings_are_named(wrong, message, capsys):
    assert main(["bench", "--quick", *wrong]) == 1
    assert message in capsys.readouterr().err


def test_agreement_is_not_a_number_where_starts_differ():
    assert math.isnan(
        float(report.as_row(Timing(QUICK[0], "k-means++", "faiss", 1, 1, 1, math.nan, 1), "")["agreement"])
    )
