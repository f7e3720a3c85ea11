"""Frames: exact shifts, and powers of two where squares would leave the range of floats."""

import numpy as np
import pytest

from sktransclust.core.frame import Frame, frame_of, safe_exponent


def frame_of_data(X):
    return frame_of(X.mean(0, dtype="f8"), X.min(0).astype("f8"), X.max(0).astype("f8"), X.dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("offset", [0.0, 0.3, 3.0, 17.0, 1e3, 1e5, 1e9])
def test_data_minus_shift_is_exact(offset, dtype):
    X = (np.random.default_rng(0).standard_normal((500, 3)) + offset).astype(dtype)
    frame = frame_of_data(X)
    in_dtype = X - frame.shift.astype(dtype)
    # np.longdouble has enough bits for the true difference of two float64 numbers of like size
    true = X.astype(np.longdouble) - frame.shift.astype(np.longdouble)
    assert (in_dtype.astype(np.longdouble) == true).all()


def test_only_features_far_from_the_origin_are_shifted():
    X = np.array([[0.0, 1000.0], [1.0, 1001.0]])
    shift = frame_of_data(X).shift
    assert shift[0] == 0.0
    assert shift[1] == pytest.approx(1000.5)


@pytest.mark.parametrize(("dtype", "scale"), [("f4", 1e20), ("f4", 1e-25), ("f8", 1e200), ("f8", 1e-200)])
def test_extreme_data_come_near_one_by_a_power_of_two(dtype, scale):
    X = (np.random.default_rng(0).standard_normal((50, 2)) * scale).astype(dtype)
    frame = frame_of_data(X)
    local = frame.to_local(X)
    assert 0.1 < np.abs(local).max() <= 1.0
    assert (frame.to_data(local) == X).all()


def test_ordinary_data_are_not_scaled():
    assert safe_exponent(np.array([1e-3, 1e6]), np.dtype("f4")) == 0
    assert safe_exponent(np.array([1e-60, 1e60]), np.dtype("f8")) == 0
    assert safe_exponent(np.zeros(3), np.dtype("f8")) == 0


@pytest.mark.parametrize(("dtype", "least"), [("f4", 1e-45), ("f8", 5e-324)])
def test_the_factor_for_the_smallest_numbers_is_itself_a_number(dtype, least):
    exponent = safe_exponent(np.array([least]), np.dtype(dtype))
    assert np.isfinite(np.ldexp(np.dtype(dtype).type(1), -exponent))


def test_a_squared_length_overflows_only_where_it_is_too_large():
    frame = Frame(None, 600)
    assert frame.squared_to_data(2.0**-600) == 2.0**600
    assert frame.squared_to_data(1.0) == np.inf
    assert frame.squared_to_data(0.0) == 0.0


def test_points_too_far_away_to_square_are_moved_to_where_they_can_be():
    frame = Frame(np.array([16.0]), -1020)
    assert (frame.to_local(np.array([[0.0], [16.0], [1e300]])) == [[-(2.0**500)], [0.0], [2.0**500]]).all()
