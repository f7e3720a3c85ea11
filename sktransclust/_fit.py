"""A fit, from what a user passes in to the attributes of the estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ._callbacks import FitTask
from ._device import resolve_device
from ._engine import answer, fit_core, is_same_clustering
from ._learned import resolve_network, starts
from ._lloyd import Progress, Run, lloyd, mean_variance
from ._universal import escape
from ._validation import Weights, check_fit_data, check_weights, is_array
from .core.streamed import StreamedCore
from .initialization import initializer

_STACK_LEVEL = 4  # of warnings: the caller of the method `fit`


def fit(estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit a `TransformerKMeans`, whose method `fit` describes the arguments; its parameters are valid."""
    device = resolve_device(estimator.device)
    X, features = check_fit_data(estimator, X, device)
    _check_problem(estimator, X)
    n_clusters, n_starts, max_iter = estimator.n_clusters, estimator._n_init, estimator.max_iter
    weights = check_weights(sample_weight, X)
    network = resolve_network(estimator.weights, estimator.embedding, X, n_clusters)
    random_state = check_random_state(estimator.random_state)
    core = fit_core(X, weights.values, device, estimator.backend, estimator.embedding, n_clusters)
    draw = initializer(estimator.init, core, X, n_clusters, weights.values, random_state)
    moments = core.moments()
    variance = mean_variance(core.samples, moments)
    in_data_units = core.samples.reference_frame.squared_to_data
    estimator._tol = estimator.tol * in_data_units(variance) if estimator.tol else 0
    tol = estimator.tol * variance
    improve = escape(network, core, moments, n_clusters, estimator.n_steps, max_iter, tol)
    task = FitTask.fit(estimator, X, y, n_starts)
    best: Run | None = None
    for centers, history in starts(network, core, draw, n_starts, estimator.n_steps):
        start = task.subtask("start")
        if estimator.verbose:
            print("Initialization complete")
        report = _reporter(estimator, core, weights, start)
        run = lloyd(core, moments, centers, max_iter=max_iter, tol=tol, report=report)
        run = improve(run)
        run.steps[:0] = history
        # Rounding alone can make the same clustering look better.
        if best is None or (run.inertia < best.inertia and not is_same_clustering(run.labels, best.labels)):
            best = run
        if start.end(partial(_fitted, core, run.centers)):
            break
    assert best is not None
    _store(estimator, best, X, weights, features)
    task.end(lambda: {"feature_names_in_": None})


def _check_problem(estimator: Any, X: Any) -> None:
    """Check parameters against the data, and settle those that depend on each other."""
    n_clusters, init, n_init = estimator.n_clusters, estimator.init, estimator.n_init
    if X.shape[0] < n_clusters:
        raise ValueError(f"n_samples={X.shape[0]} should be >= n_clusters={n_clusters}.")
    by_chance = callable(init) or (isinstance(init, str) and init == "random")
    estimator._n_init = (10 if by_chance else 1) if isinstance(n_init, str) else n_init
    if is_array(init) and estimator._n_init != 1:
        warnings.warn(
            "Explicit initial center position passed: performing only one init in "
            f"{type(estimator).__name__} instead of n_init={estimator._n_init}.",
            RuntimeWarning,
            stacklevel=_STACK_LEVEL,
        )
        estimator._n_init = 1
    estimator._algorithm = estimator.algorithm
    if estimator.algorithm == "elkan" and n_clusters == 1:
        warnings.warn(
            "algorithm='elkan' doesn't make sense for a single cluster. Using 'lloyd' instead.",
            RuntimeWarning,
            stacklevel=_STACK_LEVEL,
        )
        estimator._algorithm = "lloyd"


def _reporter(
    estimator: Any, core: StreamedCore, weights: Weights, start: FitTask
) -> Callable[[Progress], bool] | None:
    """Return what is called after each iteration of a start, if anyone listens; it tells whether to stop."""
    if not (estimator.verbose or start.is_watched):
        return None
    in_data_units = core.samples.reference_frame.squared_to_data

    def report(progress: Progress) -> bool:
        if estimator.verbose:
            inertia = in_data_units(progress.inertia, weights.exponent)
            print(progress.describe(inertia, in_data_units(progress.shift), estimator._tol))
        iteration = start.subtask("iteration", is_leaf=True)
        return iteration.end(partial(_fitted, core, progress.centers))

    return report


def _fitted(core: StreamedCore, centers: np.ndarray) -> dict[str, Any]:
    """Return the attributes that predict needs, for centers in the core's reference frame."""
    centers = core.samples.reference_frame.to_data(centers).astype(core.samples.numpy_dtype)
    # Without names, which X, as callbacks are given it, has not; those of an earlier fit may be others.
    features = {"n_features_in_": centers.shape[1], "feature_names_in_": None}
    return {"cluster_centers_": centers, "_n_features_out": len(centers), **features}


def _store(estimator: Any, run: Run, X: Any, weights: Weights, features: dict[str, Any]) -> None:
    """Set the fitted attributes, all at once; labels and inertia are predict's for the stored centers."""
    core, frame = run.core, run.core.samples.reference_frame
    fitted = _fitted(core, run.centers)
    fitted = {name: fitted[name] for name in fitted if name != "feature_names_in_"} | features
    centers = fitted["cluster_centers_"]
    labels, inertia = answer(
        core, X, centers, run.last_labels, weights.exponent, estimator.backend, estimator.embedding
    )
    history = [*(frame.squared_to_data(step, weights.exponent) for step in run.steps), inertia]
    n_distinct = np.count_nonzero(np.bincount(labels))
    if n_distinct < len(centers):
        warnings.warn(
            f"Number of distinct clusters ({n_distinct}) found smaller than n_clusters "
            f"({len(centers)}). Possibly due to duplicate points in X.",
            ConvergenceWarning,
            stacklevel=_STACK_LEVEL,
        )
    estimator._n_threads = torch.get_num_threads()
    fitted |= {"labels_": labels, "inertia_": inertia, "n_iter_": run.n_iter}
    fitted |= {"inertia_history_": np.array(history)}
    fitted |= {"device_": str(core.samples.device), "backend_": core.name}
    vars(estimator).pop("feature_names_in_", None)
    vars(estimator).update(fitted)  # one step, which no interruption divides
