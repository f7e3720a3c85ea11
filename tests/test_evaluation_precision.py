"""The table of precision counts what is wrong, and shows nothing wrong with ours."""

import csv
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sktransclust import TransformerKMeans
from sktransclust.evaluation import precision

X = np.array([[0.0], [1.0], [10.0]])


def answer(labels=(0, 0, 1), predicted=(0, 0, 1), inertia=0.5):
    """A stand-in for a fitted estimator with centers 0.5 and 10, whose exact inertia is 0.5."""
    labels, predicted = np.array(labels), np.array(predicted)
    centers = np.array([[0.5], [10.0]])
    return SimpleNamespace(
        cluster_centers_=centers, labels_=labels, inertia_=inertia, predict=lambda data: predicted
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (0, 0, 0, 0.0)),
        ({"labels": (0, 1, 1)}, (0, 1, 0, 0.0)),
        ({"labels": (0, 0, 0)}, (1, 1, 0, 0.0)),
        ({"predicted": (1, 1, 0)}, (0, 0, 3, 0.0)),
        ({"inertia": 0.75}, (0, 0, 0, 0.5)),
        ({"inertia": np.inf}, (0, 0, 0, np.inf)),
    ],
)
def test_errors_counted_by_hand(given, expected):
    found = precision.errors(answer(**given), X)
    assert (found.missing, found.labels, found.predicted, found.inertia) == expected


def test_fractions_hold_squares_that_floats_cannot():
    (row,) = precision.exact_squared_distances(np.array([[1e200, 0.0]]), np.zeros((1, 2)))
    assert row == [Fraction(1e200) ** 2]
    assert precision.nearest_float(row[0]) == np.inf


@pytest.mark.parametrize(
    ("dtype", "offset", "scale"),
    [("float64", 1e12, 1.0), ("float64", 0.0, 1e-200), ("float64", 0.0, 1e200), ("float32", 1e5, 1.0)],
)
def test_ours_have_no_wrong_label_and_float64_digits_of_inertia(monkeypatch, dtype, offset, scale):
    monkeypatch.setattr(precision, "SEEDS", range(1))
    found = precision.worst(TransformerKMeans, dtype, offset, scale)
    assert (found.missing, found.labels, found.predicted) == (0, 0, 0)
    assert_allclose(found.inertia, 0.0, atol=1e-14)


def test_the_documented_table_shows_nothing_wrong_with_ours():
    table = Path(__file__).parent.parent / "docs" / "precision.csv"
    with open(table, newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == sum(map(len, (*precision.OFFSETS.values(), *precision.SCALES.values())))
    for line in lines:
        assert {line[f"{kind}_ours"] for kind in ("missing", "labels", "predicted")} == {"0"}
        assert float(line["inertia_ours"]) <= 1e-14
        assert "scikit-learn" in line["made_with"]
