import csv
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from sktransclust.checkpoint import list_checkpoints, load_checkpoint
from sktransclust.evaluation import checkpoints
from sktransclust.evaluation.checkpoints import Row, evaluate, held_out_tasks, iterate
from sktransclust.training import lloyd_step

TABLE = Path(__file__).parents[1] / "docs" / "checkpoints.csv"


def table():
    with open(TABLE, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_iterated_lloyd_steps_follow_scikit_learn():
    ((samples, centers),) = held_out_tasks(3, 4, "normal", 60, n_tasks=3)
    samples, centers = samples.double(), centers.double()
    objectives = iterate(lloyd_step, samples, centers, n_steps=3)
    for task, start, objective in zip(samples.numpy(), centers.numpy(), objectives.T, strict=True):
        for n_iterations in (1, 2, 3):
            model = KMeans(4, init=start, n_init=1, max_iter=n_iterations, tol=0).fit(task)
            np.testing.assert_allclose(objective[n_iterations], model.inertia_, rtol=1e-9)


def test_lloyds_own_row_is_one_and_ends_where_lloyd_does(monkeypatch):
    monkeypatch.setattr(checkpoints, "CASES", [("laplace", 30)])
    (row,) = evaluate({"lloyd": lloyd_step}, 2, 3, n_tasks=5)
    assert row.relative_inertia == 1
    assert row.log_inertia == row.log_inertia_lloyd
    assert (row.checkpoint, row.family, row.n_samples) == ("lloyd", "laplace", 30)


def test_held_out_tasks_are_the_same_at_every_call_and_as_many_as_asked_for():
    first, second = (held_out_tasks(2, 3, "gumbel", 20, n_tasks=70) for _ in range(2))
    assert [len(samples) for samples, _ in first] == [64, 6]
    assert all(
        torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) for a, b in zip(first, second, strict=True)
    )


def test_the_table_has_a_row_for_every_bundled_checkpoint_and_case():
    rows = table()
    assert list(rows[0]) == [field.name for field in fields(Row)]
    found = {(row["checkpoint"], row["family"], int(row["n_samples"])) for row in rows}
    assert found == {(info.name, *case) for info in list_checkpoints("dense") for case in checkpoints.CASES}
    assert len(rows) == len(found)


@pytest.mark.parametrize("name", ["binary-l2-d2-k4", "none-l2-d4-k6"])
def test_the_table_is_what_its_command_computes(name, monkeypatch):
    (info,) = (info for info in list_checkpoints() if info.name == name)
    monkeypatch.setattr(checkpoints, "CASES", [("lognormal", 128)])
    monkeypatch.setattr(checkpoints, "N_STEPS", 1)
    (row,) = checkpoints.evaluate_bundled([info])
    (written,) = (r for r in table() if (r["checkpoint"], r["family"]) == (name, "lognormal"))
    assert float(written["relative_inertia"]) == pytest.approx(row.relative_inertia, abs=2e-4)


# With two features the table tells: the promise is for four and more.
@pytest.mark.parametrize(
    "info",
    [info for info in list_checkpoints("dense") if info.model.n_features >= 4],
    ids=lambda info: info.name,
)
def test_a_bundled_network_beats_one_lloyd_iteration_unless_it_has_no_codes(info):
    d, k = info.model.n_features, info.model.n_clusters
    ((samples, centers),) = held_out_tasks(d, k, "normal", 128, n_tasks=64)
    lloyd = iterate(lloyd_step, samples, centers, n_steps=1)
    learned = iterate(load_checkpoint(info.name).step, samples, centers, n_steps=1)
    ratio = float((learned[1] / lloyd[1]).mean())
    assert ratio > 1 if info.model.embedding == "none" else ratio < 1
