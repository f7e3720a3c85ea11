"""Time everyone on a cell, alternately, in one process."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .cells import Cell, given_centers, make_data
from .limits import Limits, seconds
from .peers import OURS, REFERENCE, Peer, Problem

# What is timed, and what of a fit's problem it changes.
TASKS: dict[str, dict[str, Any]] = {
    "fit": {},  # from given centers
    "predict": {},
    "k-means++": {"init": None},  # the whole fit
    "10 starts": {"init": None, "n_init": 10},
}
TURN = 0.02  # seconds: shorter calls are repeated for about so long, as timeit does
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass(frozen=True)
class Settings:
    """How a benchmark is run; the same for all cells."""

    repeat: int = 7  # turns of each peer
    max_iter: int = 50  # of a fit
    tol: float = 1e-4  # relative to the variance, scikit-learn's default
    budget: float = 60.0  # seconds for one task of one cell, after which no further round begins
    clock: str = "wall"  # or "cpu", the processor time of this process
    seed: int = 0


@dataclass(frozen=True)
class Timing:
    """How long one peer took for one task of one cell."""

    cell: Cell
    task: str
    peer: str
    seconds: float  # median
    n_iter: int  # of the fit; of the best start, if there are several
    rounds: int  # that the median is of
    agreement: float  # share of samples with the reference's label; nan where starts differ
    limit: float  # seconds that all scores would take at the machine's best rate

    @property
    def share(self) -> float:
        """How much of the machine's limit it reaches; above 1 where scores were spared."""
        return self.limit / self.seconds


def time_cell(
    cell: Cell, tasks: Sequence[str], peers: Sequence[Peer], limits: Limits, settings: Settings
) -> Iterator[Timing]:
    """Time the peers on the tasks of one cell, as many as can do each."""
    X = make_data(cell, settings.seed)
    problem = Problem(
        X,
        cell.n_clusters,
        given_centers(X, cell.n_clusters, settings.seed),
        1,
        settings.max_iter,
        settings.tol,
        settings.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for task in tasks:
            yield from _time_task(cell, task, replace(problem, **TASKS[task]), peers, limits, settings)


def _time_task(
    cell: Cell, task: str, problem: Problem, peers: Sequence[Peer], limits: Limits, settings: Settings
) -> Iterator[Timing]:
    able = [peer for peer in peers if peer.can(problem)]
    reference = REFERENCE.fit(problem, 0)
    n_iter = int(reference.n_iter_)
    fitted = {peer.name: peer.fit(problem, n_iter) for peer in able}  # nobody pays for the first call
    predicts = task == "predict"

    def call(peer: Peer) -> Callable[[], Any]:
        if predicts:
            return lambda: peer.predict(fitted[peer.name], problem.X)
        return lambda: peer.fit(problem, n_iter)

    times = _rounds({peer.name: call(peer) for peer in able}, settings)
    passes = 1 if predicts else n_iter * problem.n_init
    for peer in able:
        iterations = int(getattr(fitted[peer.name], "n_iter_", n_iter))
        yield Timing(
            cell,
            task,
            peer.name,
            statistics.median(times[peer.name]),
            0 if predicts else iterations,
            len(times[peer.name]),
            _agreement(peer, fitted[peer.name], reference, problem),
            limits.seconds_per_iteration(problem.X, problem.n_clusters) * passes,
        )


def _rounds(calls: dict[str, Callable[[], Any]], settings: Settings) -> dict[str, list[float]]:
    """Let everyone have a turn in each round; return the seconds of a call in each."""
    clock = CLOCKS[settings.clock]
    counts = {name: 1 + int(TURN / seconds(call, clock)) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    begin = time.perf_counter()
    for _ in range(settings.repeat):
        for name, call in calls.items():
            times[name].append(_seconds_each(call, counts[name], clock))
        if time.perf_counter() - begin > settings.budget:
            break
    return times


def _seconds_each(call: Callable[[], Any], count: int, clock: Callable[[], float]) -> float:
    def turn() -> None:
        for _ in range(count):
            call()

    return seconds(turn, clock) / count


def _agreement(peer: Peer, fitted: Any, reference: Any, problem: Problem) -> float:
    """Return the share of equal labels, where a peer starts as the reference does."""
    labels = getattr(fitted, "labels_", None)
    same_start = problem.init is not None or peer.name in (OURS.name, "lloyd", "elkan")
    if labels is None or not same_start:
        return float("nan")
    return float(np.mean(labels == reference.labels_))
