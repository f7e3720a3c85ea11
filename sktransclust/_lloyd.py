"""Lloyd's iterations on top of a core: relocation of empty clusters, stopping, history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from .core.partial import Moments
from .core.samples import Samples
from .core.streamed import Ahead, Iteration, StreamedCore

# Below this share of the total, squares are summed up directly instead of by a difference.
_CANCELLATION = 2.0**-20


@dataclass
class Run:
    """Outcome of one start; lengths are in the core's reference frame.

    Attributes
    ----------
    core : StreamedCore
    centers : ndarray of shape (n_clusters, n_features), float64
    n_iter : int
    steps : list of float
        Entry t is the inertia of the centers before update t.
    last_labels : Tensor of shape (n_samples,), int32
        Of the last iteration.
    strict : bool
        Whether these are the labels of `centers`.
    """

    core: StreamedCore
    centers: np.ndarray
    n_iter: int
    steps: list[float]
    last_labels: torch.Tensor
    strict: bool

    @cached_property
    def labels(self) -> torch.Tensor:
        """Labels of `centers`: shape (n_samples,), int32; a single start is not asked for them."""
        return self.last_labels if self.strict else self.core.assign(self.centers)

    @cached_property
    def inertia(self) -> float:
        """Inertia of `centers`."""
        return self.core.inertia(self.centers, self.labels)


@dataclass
class Progress:
    """What is told after each iteration.

    Attributes
    ----------
    iteration : int
        Counted from 0.
    inertia : float
        Of the centers before the update.
    centers : ndarray of shape (n_clusters, n_features), float64
        After the update.
    strict : bool
        Whether no label has changed.
    shift : float
        Sum of the squared distances that the centers moved.
    """

    iteration: int
    inertia: float
    centers: np.ndarray
    strict: bool
    shift: float

    def describe(self, inertia: float, shift: float, tol: float) -> str:
        """Say it in the words of KMeans, with numbers in the unit of the data, squared."""
        text = f"Iteration {self.iteration}, inertia {inertia}."
        if self.strict:
            return f"{text}\nConverged at iteration {self.iteration}: strict convergence."
        if shift <= tol:
            text += f"\nConverged at iteration {self.iteration}: center shift {shift} within tolerance {tol}."
        return text


def lloyd(
    core: StreamedCore,
    moments: Moments,
    centers: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    report: Callable[[Progress], bool] | None = None,
) -> Run:
    """Iterate from given centers until no label changes or the centers move no more than `tol`.

    Parameters
    ----------
    core : StreamedCore
        Of any backend.
    moments : Moments
        Of the core's samples.
    centers : ndarray of shape (n_clusters, n_features), float64
        In the core's reference frame, as is `tol`.
    max_iter : int
    tol : float
        Bound on the sum of squared distances that the centers move.
    report : callable, optional
        Called after each iteration; True asks to stop. Without it, the core may do several at once.

    Returns
    -------
    run : Run
    """
    labels = torch.full((core.samples.n_samples,), -1, dtype=torch.int32, device=core.samples.device)
    squares = moments.weighted_squares
    least_spread = _CANCELLATION * squares - squares
    history: list[float] = []
    while len(history) < max_iter:
        ahead = None if report else Ahead(max_iter - len(history), tol, least_spread)
        step = core.iterate(centers, labels, ahead)
        labels, strict, shift = step.labels, step.n_changed == 0, step.shift
        history += (squares + spread for spread in step.passed)
        history.append(squares + step.spread)
        if not step.spread > least_spread:
            history[-1] = core.inertia(step.centers, labels)
        if relocate_empty(core, step):
            shift = float(np.square(step.means - step.centers).sum())
        centers = step.means
        progress = Progress(len(history) - 1, history[-1], centers, strict, shift)
        if (report and report(progress)) or strict or shift <= tol:
            break
    return Run(core, centers, len(history), history, labels, strict)


def mean_variance(samples: Samples, moments: Moments) -> float:
    """Return the mean over features of the variance of the samples, without their weights.

    From the moments; where those cancel, as for sparse samples far from the origin, by a pass of direct
    differences.
    """
    n_samples, n_features = samples.n_samples, samples.n_features
    mean, squares = moments.sums.cpu().numpy() / n_samples, moments.squares / n_samples
    variance = squares - float(mean @ mean)
    if variance < _CANCELLATION * squares:
        nothing = torch.zeros(n_samples, dtype=torch.int32, device=samples.device)
        variance = StreamedCore(samples).inertia(mean[None], nothing) / n_samples
    return variance / n_features


def relocate_empty(core: StreamedCore, step: Iteration) -> bool:
    """Move empty clusters to the samples farthest from their centers, as scikit-learn does.

    A cluster that so loses its last sample keeps its center. Nothing moves where every
    sample lies on its center.

    Parameters
    ----------
    core : StreamedCore
    step : Iteration
        Its means and weights are changed in place.

    Returns
    -------
    moved : bool
        Whether any means are others now.
    """
    centers, labels, means, weights = step.centers, step.labels, step.means, step.weights
    if weights.all():
        return False
    empty = np.flatnonzero(weights == 0)
    squared = core.squared_distances(centers, labels).cpu().numpy()
    # The mean of equal samples may be off by rounding: such samples, too, lie on their center.
    rounding = 8 * np.finfo(np.float64).eps * np.abs(means[weights > 0]).max()
    if squared.max() <= means.shape[1] * rounding**2:
        return False
    farthest = np.argpartition(squared, -len(empty))[: -len(empty) - 1 : -1]
    rows = core.samples.rows(farthest).cpu().numpy()
    host_labels = labels.cpu().numpy()
    sample_weight = (
        np.ones(len(host_labels)) if core.sample_weight is None else core.sample_weight.cpu().numpy()
    )
    members = np.bincount(host_labels[sample_weight > 0], minlength=len(means))
    for cluster, sample, row in zip(empty, farthest, rows, strict=True):
        old, weight = host_labels[sample], sample_weight[sample]
        if weight == 0:
            continue  # as if the sample were not there
        members[old] -= 1
        rest = weights[old] - weight
        if members[old] > 0 and rest > 0:
            means[old] += (means[old] - row) * (weight / rest)
            weights[old] = rest
        else:
            means[old], weights[old] = centers[old], 0.0
        means[cluster], weights[cluster] = row, weight
    return True
