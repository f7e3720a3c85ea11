"""The coordinates in which samples and centers are compared."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

# Squares of coordinates inside these powers of two neither overflow nor lose small ones.
_SAFE_EXPONENTS = {np.dtype(np.float32): (-40, 40), np.dtype(np.float64): (-340, 340)}

# Given centers may lie at any distance from the data; farther ones are put here, so that squares are finite.
_FARTHEST = 2.0**500


@dataclass(frozen=True)
class Frame:
    """A shift and a power of two: local coordinates are ``(x - shift) * 2**-exponent``.

    Attributes
    ----------
    shift : ndarray of shape (n_features,) and dtype float64, or None
        A point near the data, every entry of which the data's dtype can hold; None for no shift.
    exponent : int
        0 unless the data are so small or so large that squares would leave the range of floats.
    """

    shift: np.ndarray | None = None
    exponent: int = 0

    def to_local(self, points: np.ndarray) -> np.ndarray:
        """Map points of shape (m, n_features) into the frame, in float64, no farther than 2**500."""
        local = points.astype(np.float64)
        if self.shift is not None:
            local -= self.shift
        if self.exponent:
            with np.errstate(over="ignore"):
                local = np.ldexp(local, -self.exponent)
        return _clip(local, -_FARTHEST, _FARTHEST)

    def to_data(self, points: np.ndarray) -> np.ndarray:
        """Map local points of shape (m, n_features) back to the data's coordinates, in float64."""
        data = np.ldexp(points, self.exponent) if self.exponent else points.copy()
        return data if self.shift is None else data + self.shift

    def is_exact_for(self, points: np.ndarray) -> bool:
        """Tell whether points (m, n_features), float64, get into the frame without rounding."""
        if self.exponent or not (np.abs(points) < _FARTHEST).all():
            return False
        if self.shift is None:
            return True
        local = points - self.shift
        part = local - points  # the rounding of a difference is itself a float, which these five steps find
        return not ((points - (local - part)) - (self.shift + part)).any()

    def squared_to_data(self, value: float, exponent: int = 0) -> float:
        """Map a squared length, times ``2**exponent``, to the data's unit; infinite only where that is."""
        try:
            return math.ldexp(value, 2 * self.exponent + exponent)
        except OverflowError:
            return math.inf


def frame_of(center: np.ndarray, low: np.ndarray, high: np.ndarray, dtype: np.dtype) -> Frame:
    """Choose the frame of data that lie around `center` within [`low`, `high`], per feature.

    A feature is shifted only where its values are farther from the origin than from each other:
    where the center is more than twice as large as any deviation from it. All values then lie
    between half and twice the shift, so that ``x - shift`` is exact (Sterbenz's lemma), as it
    is without a shift.
    """
    center = _clip(center, low, high)
    with np.errstate(over="ignore"):  # an infinite deviation means no shift
        deviation = np.maximum(high - center, center - low)
    shift = np.where(np.abs(center) / 2 > deviation, center, 0.0).astype(dtype).astype(np.float64)
    return Frame(shift, safe_exponent(np.maximum(np.abs(high - shift), np.abs(low - shift)), dtype))


def _clip(values: np.ndarray, low: Any, high: Any) -> np.ndarray:
    """Do what `np.clip` does, which takes several times as long where there are few values."""
    return np.minimum(np.maximum(values, low), high)


def safe_exponent(sizes: np.ndarray, dtype: np.dtype) -> int:
    """Return the exponent that brings the largest of `sizes` near 1, or 0 where that is not needed."""
    largest = float(sizes.max(initial=0.0))
    exponent = math.frexp(min(largest, sys.float_info.max))[1]
    low, high = _SAFE_EXPONENTS[np.dtype(dtype)]
    if largest == 0 or low <= exponent <= high:
        return 0
    reach = 3 * high  # 2**exponent itself has to be a normal number
    return max(-reach, min(exponent, reach))
