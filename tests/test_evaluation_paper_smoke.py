"""The whole reproduction at the smallest size: every table, every figure, every claim."""

import numpy as np
import pytest

from sktransclust.cli import main
from sktransclust.evaluation.paper.claims import CLAIMS, verdicts
from sktransclust.evaluation.paper.costs import VARIANTS
from sktransclust.evaluation.paper.experiments import EXPERIMENTS
from sktransclust.evaluation.paper.page import write_page
from sktransclust.evaluation.paper.profiles import SMOKE
from sktransclust.evaluation.paper.settings import CURVES
from sktransclust.evaluation.paper.tables import MEASUREMENT, read_origin, read_table
from sktransclust.tasks import FAMILIES


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("smoke") / "tables"
    assert main(["reproduce", "all", "--profile", "smoke", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def tables(folder):
    return {name: read_table(folder / f"{name}.csv") for name in EXPERIMENTS}


def test_every_table_is_tidy_and_says_where_it_comes_from(folder, tables):
    for name, table in tables.items():
        assert tuple(table.columns[-5:]) == MEASUREMENT, name
        assert len(table), name
        assert not table["metric"].isna().any()
        origin = read_origin(folder / f"{name}.csv")
        assert (origin["id"], origin["profile"]["name"], origin["seeds"]) == (name, "smoke", [0])
        assert {"sktransclust", "torch"} <= set(origin["versions"])


def test_every_figure_is_drawn(folder):
    for name in EXPERIMENTS:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG"), name
        assert "</svg>" in (folder / f"{name}.svg").read_text(encoding="utf-8"), name


def test_training_figures_have_every_curve_in_every_panel_up_to_the_last_step(tables):
    panels = {"fig2": 4, "fig4": 10, "fig10": 8, "fig11": 8, "fig13": 8, "fig14": 8, "fig15": 17, "fig16": 20}
    for name, count in panels.items():
        rows = tables[name]
        settings = rows.groupby(["block", "d", "k", "n", "tau", "family", "learning_rate", "clip_norm"])
        assert settings.ngroups == count, name
        last = SMOKE.n_steps // 2 if name == "fig11" else SMOKE.n_steps
        for _, panel in settings:
            assert set(panel["model"]) == set(CURVES)
            assert panel["step"].max() == last


def test_losses_of_l2_are_below_those_of_ne_where_both_start_from_the_same_weights_and_tasks(tables):
    rows = tables["fig2"][(tables["fig2"].metric == "loss") & (tables["fig2"].step == SMOKE.validate_every)]
    first = rows.set_index(["d", "tau", "model"])["value"]
    for code in ("OH", "BN", "NA"):
        l2, ne = (first.xs(f"{code}:{smoothing}", level="model") for smoothing in ("L2", "NE"))
        assert (l2 < ne).all()


def test_figures_that_share_models_agree(tables):
    shared = ["d", "k", "n", "tau", "family", "learning_rate", "model", "seed", "step", "metric"]
    small = tables["fig2"].set_index(shared)["value"].sort_index()
    large = {
        **tables["fig10"].set_index(shared)["value"].to_dict(),
        **tables["fig14"].set_index(shared)["value"].to_dict(),
    }
    np.testing.assert_array_equal(small, [large[index] for index in small.index])


def test_steps_begin_with_the_same_objective_for_all_but_other_starts(tables):
    for name in ("fig6", "fig7", "fig8", "fig12"):
        rows = tables[name]
        start = rows[(rows.step == 0) & ~rows["model"].str.contains("KMeans|k-means")]
        assert (start.groupby(["test", "trained_on", "stepping", "seed"])["value"].nunique() == 1).all(), name
        assert rows["step"].max() == SMOKE.n_iterations


def test_lloyds_objective_never_rises_and_ten_starts_of_kmeans_are_the_best(tables):
    rows = tables["fig6"][tables["fig6"].stepping == "re-embedded"].set_index(["model", "step"])["value"]
    for name in ("Lloyd", "Lloyd from k-means++"):
        assert (np.diff(rows[name]) <= 1e-9).all()
    assert rows["KMeans, n_init=10"].iloc[-1] <= rows["KMeans, n_init=1"].iloc[-1] + 1e-9


def test_families_meet_each_other_once(tables):
    rows = tables["fig8"]
    assert set(zip(rows.trained_on, rows.test, strict=True)) == {(a, b) for a in FAMILIES for b in FAMILIES}


def test_surfaces_have_the_trained_loss_in_the_middle_and_the_smoothed_one_on_top(tables):
    for name in ("fig3", "fig5"):
        wide = tables[name].pivot_table(
            index=["d", "family", "model", "a", "b"], columns="metric", values="value"
        )
        assert (wide["smoothed"] >= wide["true"] - 1e-3).all()
        assert len(wide.xs((0.0, 0.0), level=("a", "b"))) == wide.index.droplevel(["a", "b"]).nunique()


def test_dissimilarities_are_symmetric_with_zeros_on_the_diagonal(tables):
    for name, tasks in (("fig9", 4), ("fig19", 16)):
        matrix = tables[name]["value"].to_numpy().reshape(5 * tasks, 5 * tasks)
        np.testing.assert_allclose(matrix, matrix.T)
        assert (np.diag(matrix) == 0).all()


def test_costs_are_positive_and_a_fused_layer_needs_no_more_memory(tables):
    for name in ("fig1", "tab1"):
        rows = tables[name]
        assert set(rows["model"]) == set(VARIANTS)
        assert (rows["value"] > 0).all()
        repeated = rows[rows.metric == "backward"].groupby(["d", "k", "model"]).size()
        assert (repeated == SMOKE.repetitions).all()


def test_bounds_of_the_paper_hold_for_the_networks(tables):
    for name in ("tab2", "tab3"):
        wide = tables[name].pivot_table(
            index=["model", "attention", "quantity"], columns="metric", values="value"
        )
        assert len(wide) == 4 * (16 if name == "tab2" else 13)
        assert (wide["measured"] <= wide["bound"] + 1e-6).all()


def test_networks_that_come_with_the_package_go_down_from_the_common_start(tables):
    rows = tables["bundled"].query("test == 'normal'").set_index(["model", "step"])["value"]
    for model in ("OH:L2", "BN:L2", "Lloyd"):
        assert rows[model, SMOKE.n_iterations] < rows[model, 0] == rows["Lloyd", 0]


def test_cauchy_tasks_fill_a_small_corner_and_clipped_ones_do_not(tables):
    rows = tables["cauchy"]
    middle = rows[rows.metric == "middle_range"].groupby(["family", "scaling"])["value"].median()
    assert middle["cauchy", "per_dimension"] < middle["normal", "per_dimension"]
    # Quantiles are interpolated: of clipped samples they lie a little inside of where these were clipped.
    assert 0.9 < middle["cauchy", "clipped"] <= 1


def test_every_claim_has_a_verdict_and_a_number(folder):
    judged = list(verdicts(folder))
    assert [claim for claim, _, _ in judged] == CLAIMS
    for claim, verdict, origin in judged:
        assert verdict is not None, claim.name
        assert isinstance(verdict.holds, bool), claim.name
        assert any(character.isdigit() for character in verdict.ours), claim.name
        assert origin["id"] == claim.table


def test_the_command_prints_all_claims_and_writes_the_page(folder, capsys):
    page = folder.parent / "page.rst"  # links are relative to it
    assert main(["claims", str(folder), "--page", str(page)]) == 0
    printed = capsys.readouterr().out
    assert all(claim.statement in printed for claim in CLAIMS)
    text = page.read_text(encoding="utf-8")
    assert all(f".. _{name}:" in text for name in EXPERIMENTS)
    assert "Not measured yet" not in text


def test_a_finished_run_is_not_computed_again(folder, monkeypatch):
    before = {path: path.read_bytes() for path in folder.glob("*.csv")}
    monkeypatch.setattr("sktransclust.evaluation.paper.store.train", lambda *a, **k: pytest.fail("trained"))
    assert main(["reproduce", "fig2", "tab1", "--out", str(folder), "--resume"]) == 0
    assert {path: path.read_bytes() for path in folder.glob("*.csv")} == before


def test_without_resume_a_folder_with_models_is_refused(folder, capsys):
    assert main(["reproduce", "fig9", "--out", str(folder)]) == 1
    assert "--resume" in capsys.readouterr().err


def test_a_page_about_an_empty_folder_says_how_to_fill_it(tmp_path):
    (tmp_path / "tables").mkdir()
    write_page(tmp_path / "tables", tmp_path / "page.rst")
    text = (tmp_path / "page.rst").read_text(encoding="utf-8")
    assert text.count("Not measured yet") == len(EXPERIMENTS)
    assert "sktransclust reproduce fig2 --profile laptop" in text


def test_there_are_at_least_thirty_claims_about_most_figures():
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS) >= 30
    # Fig. 18 is a larger Fig. 8.
    assert {claim.table for claim in CLAIMS} == set(EXPERIMENTS) - {"fig18", "cauchy", "scalings", "bundled"}
