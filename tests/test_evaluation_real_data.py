"""The table of the checkpoints on real data: its arithmetic by hand, and the data it is made of."""

import csv
from dataclasses import astuple
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine

from sktransclust.checkpoint import checkpoint_info, list_checkpoints
from sktransclust.evaluation import real_data
from sktransclust.evaluation.real_data import ALL, SEEDS, Comparison, compare, evaluate, principal_components

TABLE = Path(__file__).parents[1] / "docs" / "real_data.csv"
COUNTS = ("lower", "same", "higher")


def test_comparison_by_hand():
    learned, one, ten = np.array([9.0, 8.0, 12.0]), np.array([12.0, 8.0, 10.0]), np.array([8.0, 8.0, 10.0])
    by_hand = Comparison(
        mean_to_1=(0.75 + 1 + 1.2) / 3,
        median_to_1=1.0,
        lower=1,
        same=1,
        higher=1,
        mean_to_10=(1.125 + 1 + 1.2) / 3,
        median_to_10=1.125,
        kmeans_1_to_10=(1.5 + 1 + 1) / 3,
    )
    assert_allclose(astuple(compare(learned, one, ten)), astuple(by_hand), rtol=1e-15)


def test_variances_of_the_components_are_the_largest_eigenvalues_of_the_correlations():
    eigenvalues = np.linalg.eigvalsh(np.corrcoef(load_wine().data, rowvar=False))[::-1]
    assert_allclose(principal_components("wine", 4).var(axis=0), eigenvalues[:4], rtol=1e-9)


def test_data_with_too_few_columns_are_left_out():
    assert principal_components("iris", 4).shape == (150, 4)
    assert principal_components("iris", 8) is None


def test_a_line_compares_with_kmeans_from_the_same_seeds(monkeypatch):
    monkeypatch.setattr(real_data, "DATA", {"wine": real_data.DATA["wine"]})
    (_, n_samples, wine), (name, _, everything) = evaluate(checkpoint_info("binary-l2-d4-k6"), "random")
    assert (n_samples, name) == (178, ALL)
    assert everything == wine
    X = principal_components("wine", 4)
    one, ten = (
        np.array([KMeans(6, init="random", n_init=n, random_state=s).fit(X).inertia_ for s in SEEDS])
        for n in (1, 10)
    )
    assert wine.kmeans_1_to_10 == pytest.approx((one / ten).mean(), rel=1e-9)
    assert wine.lower + wine.same + wine.higher == len(SEEDS)


def test_documented_table_adds_up_and_names_bundled_checkpoints():
    with open(TABLE, newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert {row["checkpoint"] for row in table} <= {info.name for info in list_checkpoints()}
    for _, group in groupby(table, key=lambda row: (row["checkpoint"], row["init"])):
        *single, total = group
        assert total["data"] == ALL
        for column in ("n_samples", *COUNTS):
            assert int(total[column]) == sum(int(row[column]) for row in single)
        mean = np.mean([float(row["mean_to_1"]) for row in single])
        assert float(total["mean_to_1"]) == pytest.approx(mean, abs=1e-4)
