"""Kinds and shapes of arrays on which k-means implementations go wrong; in brackets, scikit-learn 1.9.1."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal

from sktransclust import TransformerKMeans

from .cases import EPS, as_float64, cluster_means, gaussians, nearest, squared_scale, true_inertia

X = gaussians(seed=1, n_samples=203, n_features=4, std=3.0)
EXPECTED = TransformerKMeans(5, init=X[:5], n_init=1).fit(X)


def fit(data, **parameters):
    return TransformerKMeans(5, init=X[:5], n_init=1, **parameters).fit(data)


def assert_same_as_expected(m, data):
    assert_array_equal(m.labels_, EXPECTED.labels_)
    assert_allclose(m.cluster_centers_, EXPECTED.cluster_centers_, rtol=1e-12)
    assert_array_equal(m.predict(data), EXPECTED.labels_)
    assert_allclose(m.transform(data), EXPECTED.transform(X), rtol=1e-9)
    assert_allclose(m.score(data), EXPECTED.score(X), rtol=1e-12)


# One precision in fit, another one after it [ValueError: Buffer dtype mismatch].


@pytest.mark.parametrize(("first", "second"), [("f8", "f4"), ("f4", "f8")])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_either_precision_may_follow_the_other(backend, first, second, storage):
    m = TransformerKMeans(5, random_state=0, backend=backend).fit(storage(X.astype(first)))
    data = storage(X.astype(second))
    assert_array_equal(m.predict(data), nearest(X.astype(second), m.cluster_centers_)[0])
    assert m.transform(data).dtype == np.float64
    assert_allclose(m.score(data), -true_inertia(X.astype(second), m.cluster_centers_), rtol=1e-6)


# Sparse formats [64-bit indices are refused].


def with_int64_indices(data):
    data = sp.csr_array(data)
    data.indices, data.indptr = data.indices.astype(np.int64), data.indptr.astype(np.int64)
    return data


def with_explicit_zeros_and_unsorted_indices(data):
    data = sp.csr_array(data)
    data.data[::7] = 0.0
    for start, stop in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        data.indices[start:stop] = data.indices[start:stop][::-1].copy()
        data.data[start:stop] = data.data[start:stop][::-1].copy()
    data.has_sorted_indices = False
    return data


FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok")
SPARSE = {
    **{f"{kind}_matrix": getattr(sp, f"{kind}_matrix") for kind in FORMATS},
    **{f"{kind}_array": getattr(sp, f"{kind}_array") for kind in FORMATS},
    "csr with 64-bit indices": with_int64_indices,
}


@pytest.mark.parametrize("kind", SPARSE)
def test_every_sparse_format_gives_the_dense_result(backend, kind):
    data = SPARSE[kind](X)
    assert_same_as_expected(fit(data, backend=backend), data)


def test_explicit_zeros_and_unsorted_indices_mean_what_they_say(backend):
    data = with_explicit_zeros_and_unsorted_indices(X)
    dense = data.toarray()
    one, other = fit(data, backend=backend), fit(dense, backend=backend)
    assert_array_equal(one.labels_, other.labels_)
    assert_allclose(one.cluster_centers_, other.cluster_centers_, rtol=1e-10)
    assert_array_equal(one.predict(data), other.predict(dense))


def test_duplicate_entries_of_a_sparse_matrix_are_summed(backend):
    entries = (np.array([1.0, 2.0, 5.0, 3.0]), (np.array([0, 0, 1, 2]), np.array([0, 0, 1, 1])))
    coo = sp.coo_array(entries, shape=(5, 3))
    raw = sp.csr_array((entries[0], np.array([0, 0, 1, 1]), np.array([0, 2, 3, 4, 4, 4])), shape=(5, 3))
    for data in (coo, raw):
        m = TransformerKMeans(
            2, init=np.array([[3.0, 0, 0], [0, 0, 0]]), n_init=1, max_iter=1, backend=backend
        )
        assert_array_equal(m.fit(data).cluster_centers_, [[3.0, 0, 0], [0, 2.0, 0]])


def test_a_sparse_matrix_of_zeros_alone_has_its_center_at_zero(backend):
    data = sp.csr_array((20, 3))
    m = TransformerKMeans(1, backend=backend).fit(data)
    assert_array_equal(m.cluster_centers_, np.zeros((1, 3)))
    assert m.inertia_ == 0.0


# Dense layouts and types of number.


def read_only(data):
    data = data.copy()
    data.flags.writeable = False
    return data


def every_second_row_and_column(data):
    wide = np.full((2 * data.shape[0], 2 * data.shape[1]), np.nan)
    wide[::2, ::2] = data
    return wide[::2, ::2]


LAYOUTS = {
    "read-only": read_only,
    "fortran": np.asfortranarray,
    "strided": every_second_row_and_column,
    "negative strides": lambda data: data[::-1, ::-1].copy()[::-1, ::-1],
    "big-endian": lambda data: data.astype(">f8"),
    "long double": lambda data: data.astype(np.longdouble),
    "object": lambda data: data.astype(object),
    "lists": np.ndarray.tolist,
    "masked without mask": np.ma.masked_array,
    "tensor": torch.from_numpy,
    "tensor that requires grad": lambda data: torch.from_numpy(data).requires_grad_(),
    "transposed tensor": lambda data: torch.from_numpy(np.ascontiguousarray(data.T)).T,
    "pandas": lambda data: pd.DataFrame(data, columns=list("abcd")),
    "pandas, nullable": lambda data: pd.DataFrame(data, columns=list("abcd")).convert_dtypes(),
    "polars": lambda data: pl.DataFrame(data, schema=list("abcd")),
}


@pytest.mark.parametrize("copy_x", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_plain_result_and_is_left_alone(backend, layout, copy_x):
    data = LAYOUTS[layout](X.copy())
    assert_same_as_expected(fit(data, backend=backend, copy_x=copy_x), data)
    assert_array_equal(as_float64(data.detach() if isinstance(data, torch.Tensor) else data), X)


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_a_memory_mapped_file_gives_the_plain_result_and_is_left_alone(tmp_path, backend, mode):
    X.tofile(tmp_path / "data")
    data = np.memmap(tmp_path / "data", dtype=np.float64, mode=mode, shape=X.shape)
    assert_same_as_expected(fit(data, backend=backend, copy_x=False), data)
    assert_array_equal(np.fromfile(tmp_path / "data").reshape(X.shape), X)


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f4", "i1", "u1", "i4", "i8", "u8", "?"])
def test_every_type_of_number_is_read_by_value(backend, dtype):
    data = np.clip(np.round(X * 5), -100, 100) if dtype[0] != "u" else np.round(X * 5) + 99
    data = X > 0 if dtype == "?" else data.astype(dtype)
    values = data.astype(np.float32 if dtype == "f4" else np.float64)
    distinct = np.unique(values, axis=0)
    init = distinct[np.linspace(0, len(distinct) - 1, 5).astype(int)]
    m, expected = (
        TransformerKMeans(5, init=init, n_init=1, max_iter=3, backend=backend).fit(d) for d in (data, values)
    )
    assert_array_equal(m.labels_, expected.labels_)
    assert_array_equal(m.predict(data), expected.predict(values))
    assert_allclose(m.inertia_, true_inertia(data, m.cluster_centers_), rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int16])
def test_tensors_of_every_type_give_the_result_of_their_values(backend, dtype):
    data = torch.from_numpy(np.round(X)).to(dtype)
    m = fit(data, backend=backend)
    expected = TransformerKMeans(5, init=X[:5], n_init=1).fit(np.round(X))
    assert_array_equal(m.labels_, expected.labels_)
    assert_allclose(m.cluster_centers_, expected.cluster_centers_, rtol=1e-6)
    assert_array_equal(m.predict(data), expected.labels_)


SPECIAL_TENSORS = {
    "requires grad": lambda values: values.requires_grad_(),
    "negative bit": lambda values: torch._neg_view(-values),
    "parameter": torch.nn.Parameter,
    "expanded": lambda values: values[:, :, None].expand(-1, -1, 2)[:, :, 0],
}


@pytest.mark.parametrize("kind", SPECIAL_TENSORS)
def test_tensors_serve_as_data_weights_and_initial_centers(backend, kind):
    tensor = {"data": X, "weights": np.linspace(1, 2, len(X))[:, None], "init": X[:5]}
    tensor = {name: SPECIAL_TENSORS[kind](torch.tensor(values)) for name, values in tensor.items()}
    expected = TransformerKMeans(5, init=X[:5], n_init=1).fit(X, sample_weight=np.linspace(1, 2, len(X)))
    m = TransformerKMeans(5, init=tensor["init"], n_init=1, backend=backend)
    m.fit(tensor["data"], sample_weight=tensor["weights"][:, 0])
    assert_array_equal(m.labels_, expected.labels_)
    assert_allclose(m.cluster_centers_, expected.cluster_centers_, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int32])
def test_initial_centers_and_weights_may_be_tensors_of_any_type(dtype):
    init, weights = np.round(X[:5]), np.arange(len(X)) % 3
    m = TransformerKMeans(5, init=torch.from_numpy(init).to(dtype), n_init=1)
    m.fit(X, sample_weight=torch.from_numpy(weights).to(dtype))
    expected = TransformerKMeans(5, init=init, n_init=1).fit(X, sample_weight=weights)
    assert_array_equal(m.cluster_centers_, expected.cluster_centers_)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (torch.from_numpy(X).to(torch.complex64), "Complex data not supported"),
        (torch.from_numpy(X).to_sparse(), "dense tensor or a SciPy sparse array"),
    ],
    ids=["complex", "sparse"],
)
def test_tensors_that_are_no_dense_real_numbers_are_refused(data, words):
    with pytest.raises(ValueError, match=words):
        fit(data)


def test_initial_centers_beyond_the_type_of_the_data_are_refused():
    with pytest.raises(ValueError, match="infinity or a value too large"):
        TransformerKMeans(5, init=X[:5] * 1e100, n_init=1).fit(X.astype(np.float32))


def test_a_column_of_text_is_refused():
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["b"] = "text"
    with pytest.raises(ValueError, match="could not convert string to float"):
        fit(frame)


def test_names_are_checked_between_fit_and_predict():
    m = fit(pl.DataFrame(X, schema=list("abcd")))
    with pytest.raises(ValueError, match="feature names should match"):
        m.predict(pd.DataFrame(X, columns=list("abdc")))


def test_a_missing_value_in_a_nullable_frame_is_refused():
    frame = pd.DataFrame(X, columns=list("abcd")).convert_dtypes()
    frame.loc[3, "b"] = pd.NA
    with pytest.raises(ValueError, match="Input X contains NaN"):
        fit(frame)


# Sizes around every kind of tile.


def assert_one_iteration_is_right(data, init, backend, dtype):
    """One update against float64 arithmetic by direct differences; tied or nearly tied labels by distance."""
    m = TransformerKMeans(len(init), init=init, n_init=1, max_iter=1, tol=0, backend=backend).fit(data)
    labels = nearest(data, init)[0]
    means = cluster_means(data, labels, len(init))
    occupied = np.isfinite(means[:, 0])
    tolerance = 1e-10 if dtype == np.float64 else 1e-5
    scale = np.sqrt(squared_scale(data))
    assert_allclose(m.cluster_centers_[occupied], means[occupied], rtol=tolerance, atol=tolerance * scale)
    chosen = ((as_float64(data) - as_float64(m.cluster_centers_)[m.labels_]) ** 2).sum(axis=1)
    eps = EPS if dtype == np.float64 else np.finfo(np.float32).eps
    assert (chosen - nearest(data, m.cluster_centers_)[1]).max() <= 64 * eps * squared_scale(data)
    assert_allclose(m.inertia_, chosen.sum(), rtol=1e-6)
    assert_array_equal(m.predict(data), m.labels_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_features", [1, 2, 3, 17, 128])
@pytest.mark.parametrize("n_samples", [70, 1023])
def test_any_number_of_features(backend, dtype, n_features, n_samples):
    data = np.random.RandomState(n_features).rand(n_samples, n_features).astype(dtype)
    assert_one_iteration_is_right(data, data[:6], backend, dtype)


@pytest.mark.parametrize("backend", ["auto", "streamed"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_thousands_of_features(backend, dtype):
    data = np.random.RandomState(0).rand(70, 4096).astype(dtype)
    assert_one_iteration_is_right(data, data[:6], backend, dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_clusters", [1, 2, 3, 4, 5, 8, 9, 31, 32, 33, 64, 65, 127, 128, 129])
def test_any_number_of_clusters(backend, dtype, n_clusters):
    data = np.random.RandomState(n_clusters).rand(517, 3).astype(dtype)
    assert_one_iteration_is_right(data, data[:n_clusters], backend, dtype)


@pytest.mark.parametrize("backend", ["auto", "streamed"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_six_thousand_clusters(backend, dtype):
    data = np.random.RandomState(0).rand(7001, 2).astype(dtype)
    assert_one_iteration_is_right(data, data[:6000], backend, dtype)


@pytest.mark.parametrize("n_samples", [1, 2, 63, 64, 65, 8191, 8192, 8193, 20_011])
def test_any_number_of_samples(backend, n_samples):
    data = np.random.RandomState(n_samples).rand(n_samples, 2)
    assert_one_iteration_is_right(data, data[: min(n_samples, 7)], backend, np.float64)


@pytest.mark.slow
def test_more_than_two_to_the_31_pairs_of_sample_and_center():
    data = np.random.RandomState(0).rand(1_100_000, 1).astype(np.float32)
    m = TransformerKMeans(2000, init=data[:2000], n_init=1, max_iter=1).fit(data)
    rows = np.r_[0:1000, 1_099_000:1_100_000]
    expected, least = nearest(data[rows], m.cluster_centers_)
    chosen = (as_float64(data[rows]) - as_float64(m.cluster_centers_)[m.labels_[rows]]) ** 2
    assert (chosen.sum(axis=1) - least).max() <= 1e-12
    assert len(expected) == 2000


@pytest.mark.parametrize("dtype", [">f4", ">f8"])
def test_a_data_frame_of_the_other_byte_order_is_fitted_as_its_numbers(dtype):
    rows = np.array([[0.0, 1.0], [2.0, 5.0], [9.0, 9.0]])
    frame = pd.DataFrame(rows.astype(dtype))
    init = rows[:2]
    model, expected = (TransformerKMeans(2, init=init, n_init=1).fit(data) for data in (frame, rows))
    assert_array_equal(model.labels_, expected.labels_)
    assert_array_equal(model.predict(frame), expected.labels_)
    assert_allclose(model.cluster_centers_, expected.cluster_centers_, rtol=1e-6)
