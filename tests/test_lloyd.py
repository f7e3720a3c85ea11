"""Lloyd's loop around a core: relocation by hand-computed cases, the history against direct sums."""

import numpy as np
import pytest
import torch

from sktransclust._engine import fit_core
from sktransclust._lloyd import lloyd, relocate_empty

from . import oracle


def core_of(X, weights=None, n_clusters=3, backend="streamed"):
    weights = None if weights is None else np.asarray(weights, float)
    return fit_core(np.asarray(X, float), weights, torch.device("cpu"), backend, "binary", n_clusters)


def relocated(X, centers, weights=None):
    core = core_of(X, weights)
    frame = core.samples.reference_frame
    centers = frame.to_local(np.asarray(centers, float))
    step = core.iterate(centers, torch.zeros(len(X), dtype=torch.int32))
    relocate_empty(core, step)
    return frame.to_data(step.means).ravel().tolist(), step.weights.tolist()


def test_an_empty_cluster_goes_to_the_farthest_sample_and_takes_it_along():
    # 0, 1, 2, 9 belong to center 0; 9 is the farthest. Left behind: the mean of 0, 1, 2.
    assert relocated([[0], [1], [2], [9]], [[1], [100]]) == ([1.0, 9.0], [3.0, 1.0])


def test_weights_go_along():
    means, weights = relocated([[0], [2], [9]], [[1], [100]], [1.0, 3.0, 2.0])
    assert means == pytest.approx([1.5, 9.0])
    assert weights == [4.0, 2.0]


def test_two_empty_clusters_take_the_two_farthest():
    means, weights = relocated([[0], [1], [7], [20]], [[0], [100], [200]])
    assert sorted(means[1:]) == [7.0, 20.0]
    assert (means[0], weights) == (pytest.approx(0.5), [2.0, 1.0, 1.0])


def test_a_sample_without_weight_is_not_taken():
    assert relocated([[0], [1], [9]], [[1], [100]], [1, 1, 0]) == ([1.0, 0.0], [1.0, 1.0])


def test_nothing_moves_where_every_sample_lies_on_its_center():
    assert relocated([[1], [1], [1]], [[1], [5]]) == ([1.0, 5.0], [3.0, 0.0])


def test_a_cluster_that_loses_its_only_sample_keeps_its_center():
    # Center 1 has only the sample 9, which is the farthest of all; center 2 is empty.
    means, weights = relocated([[0], [0], [9]], [[0], [6], [100]])
    assert means == [0.0, 6.0, 9.0]
    assert weights == [2.0, 0.0, 1.0]


def run(X, centers, weights=None, backend="streamed", **parameters):
    core = core_of(X, weights, len(centers), backend)
    to_local = core.samples.reference_frame.to_local
    arguments = {"max_iter": 100, "tol": 0.0, "report": lambda progress: False, **parameters}
    return lloyd(core, core.moments(), to_local(np.asarray(centers, float)), **arguments)


@pytest.mark.parametrize("spread", [1.0, 1e-7])
def test_the_history_is_the_inertia_before_each_update(spread):
    # With the smaller spread almost all of the total cancels, and the direct sum has to take over.
    rng = np.random.default_rng(0)
    lattice = rng.choice([-1.0, 0.0, 1.0], (400, 2))
    X = lattice + spread * rng.standard_normal((400, 2))
    weights, centers = rng.random(400), X[np.unique(lattice, axis=0, return_index=True)[1]]
    outcome = run(X, centers, weights)
    for entry in [*outcome.steps, outcome.inertia]:
        labels = oracle.assign(X, centers)
        assert entry == pytest.approx(weights @ ((X - centers[labels]) ** 2).sum(1), rel=1e-8)
        centers = oracle.update(X, labels, centers, weights)
    assert len(outcome.steps) == outcome.n_iter


def test_a_report_can_stop_and_labels_still_fit_the_centers():
    X = np.random.default_rng(1).standard_normal((500, 2))
    outcome = run(X, X[:8], report=lambda progress: progress.iteration == 2)
    assert outcome.n_iter == 3
    np.testing.assert_array_equal(outcome.labels, oracle.assign(X, outcome.centers))


def test_from_converged_centers_one_iteration_is_enough():
    X = np.random.default_rng(2).standard_normal((300, 3))
    first = run(X, X[:5])
    assert run(X, first.centers, tol=1e-12).n_iter == 1


RNG = np.random.default_rng(4)
SPREAD = RNG.standard_normal((700, 3))
CORNERS = RNG.choice([-1.0, 1.0], (700, 3))
TIGHT = CORNERS + 1e-7 * SPREAD
TOGETHER = {  # data, initial centers, and what ends the run or interrupts it
    "no label changes": (SPREAD, SPREAD[:8], {}),
    "tolerance": (SPREAD, SPREAD[:8], {"tol": 0.02}),
    "max_iter": (SPREAD, SPREAD[:8], {"max_iter": 5}),
    "ties, decided by the plain rule": (np.round(SPREAD), np.round(SPREAD[:9]), {}),
    "empty clusters": (SPREAD, np.concatenate([SPREAD[:4], SPREAD[:2] + 50]), {}),
    "cancellation": (TIGHT, TIGHT[np.argsort(CORNERS @ [4, 2, 1], kind="stable")[::40]], {}),
    "weights": (SPREAD, SPREAD[:8], {"weights": RNG.random(700)}),
}


@pytest.mark.parametrize("backend", ["auto", "dense", "streamed"])
@pytest.mark.parametrize("case", TOGETHER)
def test_iterations_of_which_nobody_is_told_are_the_same(case, backend):
    X, centers, parameters = TOGETHER[case]
    told = run(X, centers, backend=backend, **parameters)
    untold = run(X, centers, backend=backend, report=None, **parameters)
    assert (untold.n_iter, untold.strict, untold.steps) == (told.n_iter, told.strict, told.steps)
    np.testing.assert_array_equal(untold.centers, told.centers)
    np.testing.assert_array_equal(untold.last_labels, told.last_labels)
    assert told.n_iter > 2


def test_the_callers_centers_stay_as_they_are():
    centers = SPREAD[:8].copy()
    run(SPREAD, centers, backend="auto", report=None)
    np.testing.assert_array_equal(centers, SPREAD[:8])
