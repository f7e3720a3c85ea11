import csv

import numpy as np
import pytest
from sklearn.cluster import KMeans

from sktransclust.evaluation import universal

X = np.random.default_rng(0).normal(size=(60, 2))


def constant(value):
    return lambda X, k, seed: value * (seed + 1)


def test_ratios_are_geometric_means_to_the_first_fit():
    fits = {
        "base": constant(1.0),
        "half": constant(0.5),
        "by seed": lambda X, k, seed: float((seed + 1) ** 2),
    }
    row = universal.measure(fits, X, 3, [0, 3])
    assert row["half"] == pytest.approx(0.5)
    assert row["by seed"] == pytest.approx(2.0)  # of 1 and 4
    assert row["by seed, largest"] == pytest.approx(4.0)


def test_summary_is_the_geometric_mean_and_the_largest():
    rows = [{"a": 1.0, "a, largest": 1.5, "k": 3}, {"a": 4.0, "a, largest": 1.2, "k": 4}]
    assert universal.summary(rows) == pytest.approx({"a": 2.0, "a, largest": 1.5})


def test_the_table_of_real_data_is_relative_to_one_start_of_kmeans(tmp_path, monkeypatch):
    monkeypatch.setattr(universal, "problems", lambda: iter([("noise", X, 4)]))
    monkeypatch.setattr(universal, "SEEDS", range(2))
    path = tmp_path / "table.csv"
    universal.main(["real", str(path)])
    with open(path, newline="", encoding="utf-8") as file:
        row, total = csv.DictReader(file)
    one, ten = ([KMeans(4, n_init=n, random_state=s).fit(X).inertia_ for s in range(2)] for n in (1, 10))
    assert float(row["10 starts"]) == pytest.approx(np.exp(np.mean(np.log(ten) - np.log(one))), abs=1e-4)
    assert float(row["exact"]) == pytest.approx(1.0, abs=1e-4)
    assert float(row["universal, largest"]) <= 1.0
    assert (row["data"], total["data"], total["10 starts"]) == ("noise", "all", row["10 starts"])


def test_a_move_without_any_step_is_not_the_networks(tmp_path, monkeypatch):
    monkeypatch.setattr(universal, "problems", lambda: iter([("noise", X, 8)]))
    (row,) = universal.moves()
    assert {"network", "Lloyd in its place", "neither"} <= set(row)
    assert max(row[f"{name}, largest"] for name in ("network", "Lloyd in its place", "neither")) <= 1 + 1e-9
