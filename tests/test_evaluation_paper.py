import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from sktransclust.evaluation.checkpoints import iterate
from sktransclust.evaluation.paper import store as store_module
from sktransclust.evaluation.paper.bounds import Terms, log_key, log_keys, log_query, log_value
from sktransclust.evaluation.paper.cauchy import middle_range
from sktransclust.evaluation.paper.claims.base import all_above, all_below, at_the_end, on_the_way
from sktransclust.evaluation.paper.claims.theory import _minima
from sktransclust.evaluation.paper.dissimilarity import earth_movers_distances
from sktransclust.evaluation.paper.experiments import EXPERIMENTS
from sktransclust.evaluation.paper.multistep import eq4_iterated, references
from sktransclust.evaluation.paper.peak_memory import peak_memory
from sktransclust.evaluation.paper.profiles import PAPER, SMOKE
from sktransclust.evaluation.paper.reproduce import _duration, chosen
from sktransclust.evaluation.paper.scalings import far_shares, margins
from sktransclust.evaluation.paper.settings import CURVES, Setting, recipe, vary
from sktransclust.evaluation.paper.store import ModelStore
from sktransclust.evaluation.paper.surfaces import losses, row_normalized
from sktransclust.model import PROJECTION_NAMES, LloydTransformer
from sktransclust.training import Trainer, lloyd_step

CPU = torch.device("cpu")
SMALL = Setting(n_features=2, n_clusters=3)


def draw(n_tasks, n, d, k, seed=0):
    generator = torch.Generator().manual_seed(seed)
    samples = torch.rand(n_tasks, n, d, generator=generator, dtype=torch.float64)
    return samples, samples[:, :k]


# --- the registry


def test_the_paper_profile_trains_the_papers_models_ten_seeds_each():
    settings = {
        recipe for experiment in EXPERIMENTS.values() for recipe in experiment.measurement.recipes(PAPER)
    }
    one = next(iter(settings)).training
    assert (one.n_steps, one.batch_size) in {(10_000, 32), (5_000, 32)}
    assert {recipe.training.seed for recipe in settings} == set(range(10))
    # The paper speaks of 300 configurations; ours are those, the clipped ones and those beyond the paper.
    assert 300 <= len({replace(r, training=replace(r.training, seed=0)) for r in settings}) <= 360


def test_figures_share_their_models():
    def of(name):
        return set(EXPERIMENTS[name].measurement.recipes(SMOKE))

    assert of("fig2") <= of("fig10") | of("fig14")
    assert of("fig4") <= of("fig16")
    assert of("fig6") | of("fig7") | of("fig12") | of("fig8") | of("fig5") <= of("fig4")
    assert of("fig18") == of("fig8")


def test_models_of_one_seed_see_the_same_tasks_whatever_their_code():
    tasks = [next(Trainer([recipe(SMOKE, SMALL, curve, seed=3)])._training_batches()) for curve in CURVES]
    assert all(torch.equal(samples, tasks[0][0]) for samples, _ in tasks)


def test_identifiers_are_checked_and_all_means_all():
    assert chosen(["fig3", "all", "fig3"]) == ["fig3", *(name for name in EXPERIMENTS if name != "fig3")]
    with pytest.raises(ValueError, match="got 'fig20'"):
        chosen(["fig20"])


def test_vary_takes_every_combination():
    settings = vary(SMALL, tau=[1.0, 0.1], family=["normal", "cauchy"])
    assert [(s.tau, s.family) for s in settings] == [
        (1.0, "normal"), (1.0, "cauchy"), (0.1, "normal"), (0.1, "cauchy"),
    ]  # fmt: skip


def test_durations_are_minutes_and_hours():
    assert (_duration(59), _duration(3600), _duration(5430)) == ("1 min", "1 h 0 min", "1 h 30 min")


# --- the store


class Interruption(Exception):
    pass


@pytest.fixture
def recipes():
    return [recipe(SMOKE, replace(SMALL, tau=tau), "BN:L2", seed=0) for tau in (1.0, 0.1)]


def test_a_model_is_trained_once_and_equals_one_trained_alone(tmp_path, recipes, monkeypatch):
    store = ModelStore(tmp_path, models_at_once=8)
    store.train([*recipes, recipes[0]])
    assert store.missing(recipes) == []
    for trained in recipes:
        alone = Trainer([trained])
        records = [alone.advance()[0] for _ in range(2)]
        points = store.history(trained)
        assert [point.step for point in points] == [2, 4]
        assert [point.loss for point in points] == pytest.approx([record.loss for record in records])
        for name, weights in alone.network(0).named_parameters():
            torch.testing.assert_close(store.network(trained).get_parameter(name), weights)
    monkeypatch.setattr(store_module, "train", lambda *a, **k: pytest.fail("trained again"))
    ModelStore(tmp_path, models_at_once=8).train(recipes)


def test_an_interrupted_training_goes_on_where_it_was(tmp_path, recipes):
    whole = ModelStore(tmp_path / "whole", models_at_once=8)
    whole.train(recipes)

    def interrupt(work):
        raise Interruption

    store = ModelStore(tmp_path / "stopped", models_at_once=8)
    with pytest.raises(Interruption):
        store.train(recipes, interrupt)
    assert store.missing(recipes) == recipes
    done = []
    store.train(recipes, done.append)
    assert len(done) == 1  # of the two validations
    for trained in recipes:
        assert store.history(trained) == whole.history(trained)
        for name, weights in whole.network(trained).named_parameters():
            assert torch.equal(store.network(trained).get_parameter(name), weights)
    assert not list((tmp_path / "stopped").glob("training-*"))


# --- what is measured


def test_earth_movers_distances_are_scipys():
    values = np.random.default_rng(0).random((4, 30))
    expected = [[stats.wasserstein_distance(a, b) for b in values] for a in values]
    np.testing.assert_allclose(earth_movers_distances(values), expected, atol=1e-12)


def test_eq4_iterated_with_the_exact_weights_is_lloyd():
    tasks = draw(5, 20, 2, 3)
    network = LloydTransformer.exact(2, 3)
    torch.testing.assert_close(eq4_iterated(network, *tasks, 4), iterate(lloyd_step, *tasks, 4))


def test_references_are_constant_but_for_lloyds_iterations():
    tasks = draw(3, 30, 2, 3)
    found = references(*tasks, 5, torch.Generator().manual_seed(0), 0)
    for name in ("KMeans, n_init=1", "KMeans, n_init=10"):
        assert torch.equal(found[name][0], found[name][5])
    assert (found["KMeans, n_init=10"] <= found["KMeans, n_init=1"] + 1e-9).all()


def test_directions_have_the_row_norms_of_the_weights():
    weights = torch.rand(12, 5, 5)
    direction = row_normalized(weights, torch.Generator().manual_seed(0))
    torch.testing.assert_close(direction.norm(dim=-1), weights.norm(dim=-1))


def test_the_loss_in_the_middle_of_a_surface_is_the_trainers():
    trained = recipe(SMOKE, SMALL, "BN:NE", seed=0)
    trainer = Trainer([trained])
    samples, centers = next(trainer._training_batches())
    (smoothed,), (true,) = losses(trainer.parameters, (samples[0], centers[0]), trained)
    assert smoothed == pytest.approx(trainer._train_step(samples, centers).item(), rel=1e-5)
    assert true <= smoothed
    assert trainer.parameters.shape[1] == len(PROJECTION_NAMES)


def test_constants_are_those_of_a_hand_computed_case():
    # gamma / sqrt(d_emb) = 1/2, delta = 1/2 * 4 * 9 = 18
    terms = Terms(3, 4, 1.0, 2.0, gamma_1=2.0, gamma_2=5.0, inverse_temperature=1.0, token_width=4)
    assert math.exp(log_value(terms)) == pytest.approx(6)
    assert log_query(terms) - 18 == pytest.approx(math.log(2 * 0.5 * 3 * 1 * 2 * 3 * 2 * 5))
    assert log_key(terms) - 18 == pytest.approx(math.log(2 * 0.5 * 3 * 4 * 3 * 2 * 5))
    assert log_keys(terms) - 18 == pytest.approx(math.log(3 * 5 / 4 * (1 + 2 * 0.5 * 4 * 2 * 3)))


def test_peak_memory_counts_what_lives_at_once_and_leaves_out_what_it_is_told():
    def call():
        first = torch.ones(1000)  # 4000 bytes
        second = torch.ones(2000)  # 8000 bytes
        del first, second
        torch.ones(2500)  # 10000 bytes, alone

    assert peak_memory(call, CPU) == 12_000
    assert peak_memory(call, CPU, leave_out=8000) == 10_000


def test_the_middle_range_of_uniform_samples_is_nine_tenths_and_small_in_a_corner():
    samples = torch.linspace(0, 1, 101)[None, :, None]
    assert middle_range(samples) == pytest.approx(0.9)
    assert middle_range(torch.cat([samples / 10, torch.ones(1, 1, 1)], dim=1)) < 0.1


def test_margins_and_far_shares_of_hand_computed_samples():
    samples = torch.tensor([[[0.0], [0.1], [0.9], [1.0]]])
    centers = torch.tensor([[[0.0], [1.0]]])
    # squared distances to the other center less those to the own one: 1, 0.8, 0.8, 1; the lower median
    torch.testing.assert_close(margins(samples, centers), torch.tensor([0.8 / 0.1]))
    # objective 2 * 0.1 ** 2, of which one sample of four is the farthest
    torch.testing.assert_close(far_shares(samples, centers), torch.tensor([0.5]))


# --- claims


def curve(values):
    steps = [100 * (i + 1) for i in range(len(values))]
    return pd.DataFrame({"seed": 0, "step": steps, "metric": "relative_inertia", "value": values})


def test_the_end_of_a_curve_is_its_last_tenth_and_the_median_is_over_seeds():
    rows = curve([9.0] * 18 + [2.0, 4.0])
    assert at_the_end(rows) == 3.0
    assert on_the_way(rows) == pytest.approx((9 * 18 + 6) / 20)
    others = [rows.assign(seed=seed, value=value) for seed, value in ((1, 5.0), (2, 100.0))]
    assert at_the_end(pd.concat([rows, *others])) == 5.0


def test_bounds_on_many_values_name_the_worst_one():
    assert all_below({"a": 0.5, "b": 0.75}) == all_below({"a": 0.5, "b": 0.75}, 1)
    assert "0.75 (b)" in all_below({"a": 0.5, "b": 0.75}).ours
    assert not all_below({"a": 0.5, "b": 1.5}).holds
    assert all_above({"a": 1.5, "b": math.nan}).holds  # a diverged model is above everything
    assert not all_below({"a": 0.5, "b": math.nan}).holds
    assert not all_above({"a": 1.5, "b": 0.5}).holds


def test_minima_of_surfaces_are_counted():
    axis = np.linspace(-1, 1, 9)
    a, b = np.meshgrid(axis, axis)
    assert _minima(a**2 + b**2) == 1
    assert _minima(np.minimum((a - 0.5) ** 2, (a + 0.5) ** 2) + b**2) == 2
