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

import numpy as np
import torch

from ._lloyd import Progress, Run, lloyd
from .core.partial import Moments
from .core.streamed import StreamedCore
from .core.threads import ordered_map
from .model import LloydTransformer
from .model.scalar import scalar_layer, squared_distances

_SAMPLE_SIZE = 4096  # samples that the network sees, at least; and at least so many per cluster:
_SAMPLES_PER_CLUSTER = 16
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
    """Return a function that improves solutions of exact iterations; see `Escape`."""
    if network is None or network.config.projection != "scalar" or n_steps == 0:
        return lambda run: run
    return Escape(network, core, moments, n_clusters, n_steps, max_iter, tol)


class Escape:
    """Improves a solution of exact iterations.

    Parameters
    ----------
    network : LloydTransformer
        With scalar projections.
    core : StreamedCore
        Of dense samples.
    moments : Moments
        Of the core's samples.
    n_steps : int
        Most steps of the network, one a move.
    max_iter : int
    tol : float
        Of exact iterations, in the core's reference frame.
    """

    def __init__(
        self,
        network: LloydTransformer,
        core: StreamedCore,
        moments: Moments,
        n_clusters: int,
        n_steps: int,
        max_iter: int,
        tol: float,
    ) -> None:
        self._core, self._moments, self._max_iter, self._tol = core, moments, max_iter, tol
        self._n_moves = n_steps
        self._config = network.config
        self._scalars = {
            name: value.detach().to(core.samples.device) for name, value in network.named_parameters()
        }
        self._dtype = next(network.parameters()).dtype
        self._random = np.random.RandomState(0)  # the user's random state stays as exact mode leaves it
        # In a worker, and so on one thread: the bits do not depend on the number of threads.
        list(ordered_map(self._sample, [max(_SAMPLE_SIZE, _SAMPLES_PER_CLUSTER * n_clusters)]))

    def __call__(self, run: Run) -> Run:
        """Return a solution of lower inertia, or the given one."""
        k = len(run.centers)
        if self._n_moves == 0 or k == 1 or len(self._points) <= k or not run.inertia > 0:
            return run
        best, best_inertia, steps = run, run.inertia, list(run.steps)
        n_extra, failures = max(1, min(k // 2, 1 + k // 8)), 0
        for _ in range(self._n_moves):
            moved = self._exact(self._move(best.centers, n_extra), best_inertia)
            if moved is not None:
                best, best_inertia, failures = moved, moved.steps[-1], 0
                steps += moved.steps
                continue
            n_extra, failures = max(1, n_extra // 2), failures + 1
            if failures == _PATIENCE:
                break
        if best is run:
            return run
        final = lloyd(
            self._core, self._moments, best.centers, max_iter=self._max_iter, tol=self._tol, report=_go_on
        )
        steps += final.steps
        return replace(final, steps=steps, n_iter=len(steps)) if final.inertia < run.inertia else run

    def _sample(self, size: int) -> None:
        """Draw the samples that the network sees, centered and with a mean square of 1."""
        samples, weight = self._core.samples, self._core.sample_weight
        counted = np.arange(samples.n_samples) if weight is None else np.flatnonzero(weight.cpu().numpy())
        if len(counted) > size:
            counted = np.sort(self._random.choice(counted, size, replace=False))
        points = samples.rows(counted)
        self._middle = points.mean(0)
        points = points - self._middle
        spread = float(points.square().sum(1).mean().sqrt())
        self._unit = spread if spread > 0 else 1.0
        self._points = (points / self._unit).to(self._dtype)  # (m, d)
        self._weight = (
            None if weight is None else weight[torch.from_numpy(counted).to(weight.device)].to(self._dtype)
        )

    def _move(self, centers: np.ndarray, n_extra: int) -> np.ndarray:
        """Add centers, let the network take a step, and remove as many."""
        start = (torch.as_tensor(centers).to(self._middle) - self._middle) / self._unit
        uniform = self._random.uniform(size=n_extra)

        def work(start: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                moved = torch.cat([start, self._badly_served(start, uniform)])
                weight = None if self._weight is None else self._weight[None]
                moved = scalar_layer(self._points[None], moved[None], self._scalars, self._config, weight)[0]
                return moved[self._most_useful(moved, len(start))]

        (moved,) = ordered_map(work, [start.to(self._dtype)])
        return (moved.double() * self._unit + self._middle).cpu().numpy()

    def _badly_served(self, centers: torch.Tensor, uniform: np.ndarray) -> torch.Tensor:
        """Draw samples with a probability proportional to their squared distance to the nearest center."""
        squared = squared_distances(self._points, centers).amin(1).double()
        if self._weight is not None:
            squared *= self._weight
        total = torch.cumsum(squared, 0)
        drawn = torch.as_tensor(uniform).to(total) * total[-1]
        return self._points[torch.searchsorted(total, drawn).clamp(max=len(total) - 1)]

    def _most_useful(self, centers: torch.Tensor, n_kept: int) -> torch.Tensor:
        """Return the indices of the centers to keep.

        The use of a center is what the samples' distances would grow by without it. As the neighbors of a
        removed center take over its samples, the nearest of them is kept.
        """
        squared = squared_distances(self._points, centers)
        near, label = squared.min(1)
        growth = squared.scatter_(1, label[:, None], torch.inf).amin(1) - near
        if self._weight is not None:
            growth *= self._weight
        use = torch.zeros_like(centers[:, 0]).index_add_(0, label, growth)
        gaps = squared_distances(centers, centers).fill_diagonal_(torch.inf)
        neighbor = gaps.argmin(1).tolist()
        kept, left = set[int](), list[int]()
        to_remove = len(centers) - n_kept
        order = use.argsort(stable=True).tolist()
        for center in order:
            if len(left) < to_remove and center not in kept:
                left.append(center)
                kept.add(neighbor[center])
        for center in order:  # where the kept neighbors were too many
            if len(left) < to_remove and center not in left:
                left.append(center)
        return torch.tensor(sorted(set(range(len(centers))) - set(left)), device=centers.device)

    def _exact(self, centers: np.ndarray, best: float) -> Run | None:
        """Iterate exactly from moved centers; None where the outlook is not to end below `best`."""
        if not np.isfinite(centers).all():
            return None
        goal = best * (1 - _MARGIN)
        before = np.inf

        def report(progress: Progress) -> bool:
            nonlocal before
            gain, before = before - progress.inertia, progress.inertia
            return progress.iteration > 1 and progress.inertia - _OUTLOOK * gain > goal

        limit = min(self._max_iter, _ITERATIONS_PER_MOVE)
        run = lloyd(self._core, self._moments, centers, max_iter=limit, tol=self._tol, report=report)
        return run if run.steps[-1] < goal else None


def _go_on(progress: Progress) -> bool:
    return False
