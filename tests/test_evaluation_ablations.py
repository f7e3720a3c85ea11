import csv

import numpy as np
import pytest
import torch

from sktransclust import TransformerKMeans
from sktransclust.checkpoint import load_checkpoint
from sktransclust.evaluation import universal, universal_ablations
from sktransclust.tasks.mixed import lloyd_iterations


def test_exact_iterations_end_below_the_best_of_the_steps_and_where_they_would_without_any():
    samples = torch.randn(3, 40, 2, generator=torch.Generator().manual_seed(0))
    centers = samples[:, :4]
    by_hand = [
        TransformerKMeans(4, init=start, n_init=1, tol=0, device="cpu").fit(X).inertia_
        for X, start in zip(samples.double().numpy(), centers.double().numpy(), strict=True)
    ]
    np.testing.assert_allclose(universal_ablations.ends([(samples, centers)]), by_hand)
    for step in (
        lambda x, c: lloyd_iterations(x, c, 1),  # the same way, to the same ends
        lambda x, c: c + np.nan,  # of no use
    ):
        np.testing.assert_allclose(universal_ablations.ends([(samples, centers)], step), by_hand, rtol=1e-5)


def test_the_table_trains_what_is_asked_and_leaves_empty_what_a_network_is_not_for(tmp_path, monkeypatch):
    trained = []

    def train(features, n_unrolled):
        trained.append((features, n_unrolled))
        return universal_ablations.Trained(load_checkpoint("universal"), 2000, 3.4)

    monkeypatch.setattr(universal_ablations, "train", train)
    monkeypatch.setattr(universal_ablations, "N_TASKS", 8)
    monkeypatch.setattr(universal_ablations, "N_STEPS", 2)
    monkeypatch.setattr(universal_ablations, "VARIANTS", {"without mass": (("error", "gap"), 5)})
    X = np.random.default_rng(0).normal(size=(60, 2))
    monkeypatch.setattr(universal_ablations, "problems", lambda: iter([("noise", X, 6)]))
    universal.main(["ablations", str(tmp_path / "table.csv")])
    with open(tmp_path / "table.csv", newline="", encoding="utf-8") as file:
        rows = {row["network"]: row for row in csv.DictReader(file)}
    assert list(rows) == ["binary-l2-d4-k6", "binary-l2-d32-k10", "universal", "without mass"]
    assert trained == [(("error", "gap"), 5)]
    assert rows["binary-l2-d4-k6"]["(32, 10), random"] == rows["binary-l2-d4-k6"]["moves, real data"] == ""
    assert rows["binary-l2-d4-k6"]["(4, 6), random"] != ""
    assert rows["without mass"]["training, s"] == "3"
    same = [name for name in rows["universal"] if name.startswith(("(", "mixtures", "moves"))]
    assert [rows["universal"][name] for name in same] == [rows["without mass"][name] for name in same]


def test_training_takes_the_features_and_the_steps_of_the_variant(monkeypatch):
    recipes = []

    class Trainer:
        finished = True

        def __init__(self, given):
            recipes.extend(given)

        def network(self):
            return load_checkpoint("universal")

    monkeypatch.setattr(universal_ablations, "UnrolledTrainer", Trainer)
    trained = universal_ablations.train(("gap",), 3)
    (recipe,) = recipes
    assert (recipe.model.features, recipe.training.n_unrolled) == (("gap",), 3)
    assert trained.n_steps == recipe.training.n_steps == pytest.approx(2000)
