"""scikit-learn's callbacks (since 1.9), or nothing where it has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands where later versions of scikit-learn have theirs."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


# The attributes of an estimator that has callbacks, or whose meta-estimator has.
_HOLDERS = "_skl_callbacks", "_parent_callback_ctx"


class FitTask:
    """A task of a fit that callbacks are told of: the fit itself, a start, or an iteration.

    Without callbacks, it does nothing.

    Parameters
    ----------
    estimator : estimator
        The one that is fitted.
    X, y : array-like
        What fit was given; callbacks score on it. A monitor scores only where there is a y,
        so one of zeros is passed where there is none.
    context : CallbackContext or None
    """

    def __init__(self, estimator: Any, X: Any, y: Any, context: Any) -> None:
        self._estimator = estimator
        self._context = context
        self._data = {"X": X, "y": (lambda: np.zeros(X.shape[0])) if y is None else y}
        if context is not None:
            context.call_on_fit_task_begin(estimator=estimator, **self._data)

    @classmethod
    def fit(cls, estimator: Any, X: Any, y: Any, n_starts: int) -> FitTask:
        """Begin the task of a whole fit."""
        if not any(hasattr(estimator, name) for name in _HOLDERS):
            return cls(estimator, X, y, None)
        return cls(estimator, X, y, estimator._init_callback_context(max_subtasks=n_starts))

    @property
    def is_watched(self) -> bool:
        """Whether there are callbacks."""
        return self._context is not None

    def subtask(self, name: str, *, is_leaf: bool = False) -> FitTask:
        """Begin a part of this task."""
        if self._context is None:
            return self
        context = self._context.subcontext(task_name=name, max_subtasks=0 if is_leaf else None)
        return FitTask(self._estimator, self._data["X"], self._data["y"], context)

    def end(self, fitted: Callable[[], dict[str, Any]]) -> bool:
        """End the task; return whether a callback asks to stop.

        Parameters
        ----------
        fitted : callable
            Returns the attributes with which a copy of the estimator can predict.
        """
        if self._context is None:
            return False
        return self._context.call_on_fit_task_end(
            estimator=self._estimator, reconstruction_attributes=fitted, **self._data
        )
