"""scikit-learn 1.9's callbacks: one task a start, one an iteration, and a stop that is honoured."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sktransclust import TransformerKMeans

from .cases import gaussians, true_inertia

callback = pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")

X = gaussians(seed=1, std=4.0)
ITERATION = 2  # Depth of an iteration's task: fit, start, iteration.


def depth(context):
    return 0 if context.parent is None else 1 + depth(context.parent)


class Recorder:
    """Notes (event, depth, task name, copy of the centers) and asks to stop after `stop_after` iterations."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.events = []
        self.life = []

    def setup(self, estimator, context):
        self.life.append("setup")

    def teardown(self, estimator, context):
        self.life.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.events.append(("begin", depth(context), context.task_name, X))

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.events.append(("end", depth(context), context.task_name, fitted_estimator))
        return self.stop_after is not None and context.task_id + 1 >= self.stop_after

    def at(self, event, level):
        return [entry for entry in self.events if entry[:2] == (event, level)]


def fit_with(*callbacks, **parameters):
    estimator = TransformerKMeans(**{"n_clusters": 5, "random_state": 0, **parameters})
    return estimator.set_callbacks(*callbacks).fit(X)


def test_there_is_one_task_a_fit_a_start_and_an_iteration():
    recorder = Recorder()
    estimator = fit_with(recorder, n_init=3)
    assert recorder.life == ["setup", "teardown"]
    for event in ("begin", "end"):
        assert len(recorder.at(event, 0)) == 1
        assert len(recorder.at(event, 1)) == 3
    assert len(recorder.at("begin", ITERATION)) == len(recorder.at("end", ITERATION)) >= estimator.n_iter_


def test_iterations_are_as_many_as_n_iter_and_hold_estimators_that_predict():
    recorder = Recorder()
    estimator = fit_with(recorder, n_init=1)
    steps = [entry[3] for entry in recorder.at("end", ITERATION)]
    assert len(steps) == estimator.n_iter_
    scores = [-step.score(X) for step in steps]
    assert_allclose(scores, [true_inertia(X, step.cluster_centers_) for step in steps], rtol=1e-9)
    assert scores == sorted(scores, reverse=True)
    assert_array_equal(steps[-1].predict(X), estimator.labels_)
    assert steps[-1].transform(X).shape == (len(X), 5)


def test_callbacks_see_the_data_but_cannot_change_the_result():
    recorder = Recorder()
    estimator = fit_with(recorder)
    assert_array_equal(np.asarray(recorder.at("begin", 0)[0][3]), X)
    alone = TransformerKMeans(5, random_state=0).fit(X)
    assert_array_equal(estimator.labels_, alone.labels_)
    assert_array_equal(estimator.cluster_centers_, alone.cluster_centers_)
    assert estimator.inertia_ == alone.inertia_


@pytest.mark.parametrize("stop_after", [1, 2])
def test_a_stop_ends_the_iterations_and_leaves_consistent_results(stop_after):
    class StopIterations(Recorder):
        def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
            return depth(context) == ITERATION and context.task_id + 1 >= stop_after

    estimator = fit_with(StopIterations(), n_init=1)
    reference = TransformerKMeans(5, random_state=0, n_init=1, max_iter=stop_after).fit(X)
    assert estimator.n_iter_ == stop_after
    assert_array_equal(estimator.cluster_centers_, reference.cluster_centers_)
    assert_array_equal(estimator.labels_, estimator.predict(X))
    assert_allclose(estimator.inertia_, -estimator.score(X), rtol=1e-12)


def test_a_stop_at_the_end_of_a_start_makes_no_further_start():
    class StopStarts(Recorder):
        def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
            self.events.append(("end", depth(context), context.task_name, None))
            return depth(context) == 1 and context.task_id == 1

    recorder = StopStarts()
    fit_with(recorder, n_init=6)
    assert len(recorder.at("end", 1)) == 2


def test_a_scoring_monitor_logs_one_falling_inertia_an_iteration():
    monitor = callback.ScoringMonitor(scoring=lambda estimator, X, y: {"inertia": -estimator.score(X)})
    estimator = fit_with(monitor, n_init=1)
    rows = [row for row in monitor.get_logs().data if len(row["task_id_path"]) == ITERATION + 1]
    logged = [row["inertia"] for row in rows]
    assert len(logged) == estimator.n_iter_
    assert logged == sorted(logged, reverse=True)
    assert_allclose(logged[-1], estimator.inertia_, rtol=1e-3)


def test_a_scoring_monitor_takes_the_estimators_own_score():
    monitor = callback.ScoringMonitor(scoring={"own": lambda estimator, X, y: estimator.score(X, y)})
    estimator = fit_with(monitor, n_init=2)
    assert len(monitor.get_logs().data_as_pandas["own"].dropna()) >= estimator.n_iter_


def test_a_progress_bar_reaches_its_end(capsys):
    pytest.importorskip("rich", reason="the progress bar is drawn by rich")
    fit_with(callback.ProgressBar(), n_init=2)
    shown = capsys.readouterr().out
    assert "TransformerKMeans" in shown
    assert "100%" in shown


def test_a_progress_bar_goes_through_a_pipeline(capsys):
    pytest.importorskip("rich", reason="the progress bar is drawn by rich")
    pipeline = make_pipeline(StandardScaler(), TransformerKMeans(3, random_state=0))
    pipeline.set_callbacks(callback.ProgressBar()).fit(X)
    assert "TransformerKMeans" in capsys.readouterr().out


def test_clone_keeps_callbacks_by_reference():
    recorder = Recorder()
    twin = clone(TransformerKMeans(3).set_callbacks(recorder))
    twin.fit(X)
    assert recorder.life == ["setup", "teardown"]


def test_callbacks_are_torn_down_when_a_fit_fails():
    def failing(data, n_clusters, random_state):
        raise ZeroDivisionError("on purpose")

    recorder = Recorder()
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        fit_with(recorder, init=failing)
    assert recorder.life == ["setup", "teardown"]


class Scorer(Recorder):
    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        if hasattr(fitted_estimator, "cluster_centers_"):
            self.events.append(("score", depth(context), context.task_name, fitted_estimator.score(X)))


@pytest.mark.parametrize("refit", [X, pd.DataFrame(X), pd.DataFrame(X[:, :3], columns=list("xyz")), X[:, :2]])
@pytest.mark.parametrize("first", [X, pd.DataFrame(X, columns=list("abcd"))])
def test_callbacks_can_score_in_a_fit_and_in_a_refit_on_other_columns(first, refit):
    scorer = Scorer()
    estimator = TransformerKMeans(5, random_state=0).set_callbacks(scorer).fit(first)
    assert_allclose(scorer.events[-1][3], -estimator.inertia_)
    estimator.fit(refit)
    assert_allclose(scorer.events[-1][3], -estimator.inertia_)
    assert estimator.n_features_in_ == np.shape(refit)[1]
    named = hasattr(refit, "columns") and isinstance(refit.columns[0], str)
    assert hasattr(estimator, "feature_names_in_") == named
