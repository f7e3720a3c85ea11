"""Moves out of local optima by a scalar network, taken only where exact iterations then end lower.

Lloyd's algorithm stops where no sample wants another center, though some clusters hold two groups and
some groups have two centers. A move adds m centers among the samples that are badly served, lets the
network arrange all k + m by one step (it takes any number of clusters), removes the m centers that
are missed least, and iterates exactly. The network sees a sample of the data of bounded size, exact
iterations see all. A move that does not end below the best solution so far is undone: the result is
never above that of exact iterations from the same start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from ._lloyd import Progress, Run, lloyd
from .core.partial import Moments
from .core.streamed import StreamedCore
from .core.threads import ordered_map
from .model import LloydTransformer
from .model.scalar import weighted_mean
from .model.scalar_step import ScalarStep

_SAMPLE_SIZE = 4096  # samples that the network sees, at least; and at least so many per cluster:
_SAMPLES_PER_CLUSTER = 16
_TRIALS = 8  # samples drawn for each added center, of which the best is taken
_ITERATIONS_PER_MOVE = 12  # exact ones before a move is judged
_PATIENCE = 2  # moves in a row that fail before the end
_MARGIN = 1e-6  # relative; a smaller gain may be rounding
_OUTLOOK = 2.0  # a move is given up when it would need to gain more than so many times its last gain


def escape(
    network: LloydTransformer | None,
    core: StreamedCore,
    moments: Moments,
    n_clusters: int,
    n_steps: int,
    max_iter: int,
    tol: float,
) -> Callable[[Run], Run]:
    """Return a function that improves solutions of exact iterations, if the network is a scalar one.

    Parameters
    ----------
    network : LloydTransformer or None
    core : StreamedCore
        Of dense samples, where there is a network.
    moments : Moments
        Of the core's samples.
    n_clusters : int
    n_steps : int
        Most steps of the network, one a move.
    max_iter : int
    tol : float
        Of exact iterations, in the core's reference frame.
    """
    if network is None or network.config.projection != "scalar" or n_steps == 0 or n_clusters == 1:
        return lambda run: run
    moves = Moves(network, core, n_clusters)
    exact = partial(lloyd, core, moments, max_iter=max_iter, tol=tol)
    judged = partial(exact, max_iter=min(max_iter, _ITERATIONS_PER_MOVE))
    return lambda run: _escape(run, moves, n_steps, exact, judged)


def _escape(
    run: Run, moves: Moves, n_moves: int, exact: Callable[..., Run], judged: Callable[..., Run]
) -> Run:
    """Return a solution of lower inertia, or the given one."""
    k = len(run.centers)
    if moves.n_samples <= k or not run.inertia > 0:
        return run
    best, best_inertia, steps = run, run.inertia, list(run.steps)
    n_extra, failures = max(1, min(k // 2, 1 + k // 8)), 0
    for _ in range(n_moves):
        moved = _judge(moves.propose(best.centers, n_extra), best_inertia, judged)
        if moved is not None:
            best, best_inertia, failures = moved, moved.steps[-1], 0
            steps += moved.steps
            continue
        n_extra, failures = max(1, n_extra // 2), failures + 1
        if failures == _PATIENCE:
            break
    if best is run:
        return run
    final = exact(best.centers)
    steps += final.steps
    return replace(final, steps=steps, n_iter=len(steps)) if final.inertia < run.inertia else run


def _judge(centers: np.ndarray, best: float, judged: Callable[..., Run]) -> Run | None:
    """Iterate exactly from moved centers; None where the outlook is not to end below `best`."""
    if not np.isfinite(centers).all():
        return None
    goal = best * (1 - _MARGIN)
    before = np.inf

    def report(progress: Progress) -> bool:
        nonlocal before
        gain, before = before - progress.inertia, progress.inertia
        return progress.iteration > 1 and progress.inertia - _OUTLOOK * gain > goal

    run = judged(centers, report=report)
    return run if run.steps[-1] < goal else None


class Moves:
    """Proposes centers to go on from, by a scalar network and a sample of the data.

    Parameters
    ----------
    network : LloydTransformer
        With scalar projections.
    core : StreamedCore
        Of dense samples.
    n_clusters : int
    """

    def __init__(self, network: LloydTransformer, core: StreamedCore, n_clusters: int) -> None:
        self._network = network
        self._random = np.random.RandomState(0)  # the user's random state stays as exact mode leaves it
        size = max(_SAMPLE_SIZE, _SAMPLES_PER_CLUSTER * n_clusters)
        # In a worker, and so on one thread: the bits do not depend on the number of threads.
        (self._step,) = ordered_map(partial(self._sample, core), [size])
        self.n_samples = len(self._step.samples)
        self._near: tuple[np.ndarray, torch.Tensor] | None = None  # of the last solution

    def _sample(self, core: StreamedCore, size: int) -> ScalarStep:
        """Draw the samples that the network sees, centered and with a mean square of 1."""
        samples, weight = core.samples, core.sample_weight
        counted = np.arange(samples.n_samples) if weight is None else np.flatnonzero(weight.cpu().numpy())
        if len(counted) > size:
            counted = np.sort(self._random.choice(counted, size, replace=False))
        points = samples.rows(counted)
        if weight is not None:
            weight = weight[torch.from_numpy(counted).to(weight.device)]
        middle = weighted_mean(points, weight)
        points = points - middle
        self._unit = float(points.square().sum(1).mean().sqrt()) or 1.0
        self._middle = middle.cpu().numpy()
        dtype = next(self._network.parameters()).dtype
        scalars = dict(self._network.named_parameters())
        return ScalarStep((points / self._unit).to(dtype), scalars, self._network.config, weight)

    def propose(self, centers: np.ndarray, n_extra: int) -> np.ndarray:
        """Add centers to those of a solution, let the network take a step, and remove as many."""
        uniform = self._random.uniform(size=(n_extra, _TRIALS))

        def work(start: np.ndarray) -> np.ndarray:
            if self._near is None or not np.array_equal(self._near[0], start):
                self._near = start, self._step.near(start)
            moved = self._step.step(np.concatenate([start, self._step.spread(self._near[1], uniform)]))
            return np.delete(moved, self._least_useful(moved, n_extra), axis=0)

        (moved,) = ordered_map(work, [(centers - self._middle) / self._unit])
        return moved * self._unit + self._middle

    def _least_useful(self, centers: np.ndarray, number: int) -> list[int]:
        """Return the indices of the centers to remove.

        The use of a center is what the samples' distances would grow by without it. As the neighbors of a
        removed center take over its samples, the nearest of them is kept.
        """
        order = np.argsort(self._step.use(centers), kind="stable").tolist()
        kept, removed = set[int](), list[int]()
        for center in order:
            if len(removed) < number and center not in kept:
                removed.append(center)
                squared = ((centers - centers[center]) ** 2).sum(1)
                squared[removed] = np.inf
                kept.add(int(squared.argmin()))
        others = [center for center in order if center in kept]  # where the kept neighbors were too many
        return removed + others[: number - len(removed)]
