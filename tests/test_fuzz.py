"""Bytes and inputs at random: the loaders and the estimator refuse them in their own words, or are right."""

import random
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from sktransclust import TransformerKMeans
from sktransclust.checkpoint import CheckpointError, checkpoint_info, load_checkpoint, save_checkpoint
from sktransclust.model import LloydConfig, LloydTransformer
from sktransclust.training.config import Recipe, format_recipe, read_recipe

from .backends import available_backends

N_QUICK, N_SLOW = 1000, 100_000


def checkpoint_bytes(folder):
    """A checkpoint of few tensors' bytes, so that most mutations hit the header."""
    network = LloydTransformer(LloydConfig(1, 2), generator=torch.Generator().manual_seed(0))
    path = folder / "seed.safetensors"
    sections = {"training": {"tau": 0.1}, "tasks": {"scales": [0.1]}}
    save_checkpoint(path, network, seed=3, step=7, validation=0.5, **sections)
    return path.read_bytes()


TOKENS = [
    b"", b"0", b"-1", b"1e999", b"NaN", b"null", b"true", b"[]", b"{}", b'"', b"\\", b"\x00", b"\xff\xfe",
    b"18446744073709551616", b"9" * 400, b"[" * 2000, b'{"a":' * 2000, b"../../etc/passwd", b"F64", b"I8",
    b"__metadata__", b"data_offsets", b"n_clusters", b"\xed\xa0\x80", b"\r\n", b" = ", b"inf", b"1979-05-27",
]  # fmt: skip


def mutated(content, r):
    """Change one to a few places: bits, bytes, cuts, repeats, moves, tokens that mean something."""
    content = bytearray(content)
    for _ in range(r.choice((1, 1, 1, 2, 4, 8))):
        start = r.randrange(len(content) + 1)
        stop = min(len(content), start + r.choice((0, 1, 1, 2, 8, 64)))
        match r.randrange(6):
            case 0 if start < len(content):
                content[start] ^= 1 << r.randrange(8)
            case 1:
                content[start:stop] = r.randbytes(stop - start)
            case 2:
                del content[start:stop]
            case 3:
                content[start:start] = content[start:stop]
            case 4:
                content[start:stop] = r.choice(TOKENS)
            case 5 if r.random() < 0.2:
                del content[start:]
    return bytes(content)


def with_consistent_length(content):
    """Set the length of the header to where its tensors begin, so that a changed header is read at all."""
    end = content.rfind(b"}", 8, 4096) + 1
    return (end - 8).to_bytes(8, "little") + content[8:end] + content[end:] if end > 8 else content


def assert_checkpoints_are_refused_or_right(folder, n_cases, seed):
    original, r = checkpoint_bytes(folder), random.Random(seed)
    path = folder / "mutated.safetensors"
    refusals = []
    for case in range(n_cases):
        content = mutated(original, r)
        path.write_bytes(with_consistent_length(content) if case % 2 else content)
        try:
            network = load_checkpoint(path)
            checkpoint_info(path)
        except CheckpointError as error:
            refusals.append(str(error))
            continue
        assert all(bool(p.isfinite().all()) for p in network.parameters())
        samples = torch.rand(1, 5, network.config.n_features, dtype=next(network.parameters()).dtype)
        assert network.step(samples, samples[:, : network.config.n_clusters]).shape[-1] == samples.shape[-1]
    assert len(refusals) > n_cases // 2
    assert all(str(path) in words for words in refusals)


def assert_recipes_are_refused_or_right(folder, n_cases, seed):
    original, r = format_recipe(Recipe(LloydConfig(2, 3))).encode(), random.Random(seed)
    path = folder / "recipe.toml"
    refusals = []
    for _ in range(n_cases):
        path.write_bytes(mutated(original, r))
        try:
            recipe = read_recipe(path)
        except ValueError as error:
            refusals.append(str(error))
            continue
        again = folder / "again.toml"
        again.write_text(format_recipe(recipe), encoding="utf-8")
        assert read_recipe(again) == recipe
    assert len(refusals) > n_cases // 2
    assert all(str(path) in words for words in refusals)


@pytest.mark.parametrize("seed", range(2))
def test_mutated_checkpoints_are_refused_by_name_or_whole_networks(tmp_path, seed):
    assert_checkpoints_are_refused_or_right(tmp_path, N_QUICK, seed)


@pytest.mark.parametrize("seed", range(2))
def test_mutated_recipes_are_refused_by_name_or_valid(tmp_path, seed):
    assert_recipes_are_refused_or_right(tmp_path, N_QUICK, seed)


@pytest.mark.slow
def test_a_hundred_thousand_mutated_checkpoints(tmp_path):
    assert_checkpoints_are_refused_or_right(tmp_path, N_SLOW, seed=99)


@pytest.mark.slow
def test_a_hundred_thousand_mutated_recipes(tmp_path):
    assert_recipes_are_refused_or_right(tmp_path, N_SLOW, seed=99)


# The estimator: any array of any type and shape, in any container, or something that is none.

SHAPES = st.one_of(
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=9), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)
)
ANY_DTYPE = st.one_of(
    st.sampled_from(["f4", "f8", ">f4", ">f8", "f2", "g", "i1", "u8", "?"]),
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(),
    hnp.floating_dtypes(),
    hnp.complex_number_dtypes(),
    hnp.datetime64_dtypes(),
    hnp.timedelta64_dtypes(),
    hnp.byte_string_dtypes(),
    hnp.unicode_string_dtypes(),
    hnp.array_dtypes(st.sampled_from(["f8", "i4"]), max_size=3),
)
ARRAYS = hnp.arrays(ANY_DTYPE, SHAPES)
NUMBERS = hnp.arrays(st.sampled_from(["f8", "f4", "i8", "u1", "?"]), SHAPES)
CONTAINERS = {
    "array": np.asarray,
    "list": np.ndarray.tolist,
    "objects": lambda X: X.astype(object),
    "masked": lambda X: np.ma.masked_array(X, mask=X == X),
    "matrix": lambda X: sp.coo_matrix(np.atleast_2d(X)),
    "csr": sp.csr_array,
    "pandas": pd.DataFrame,
    "series": lambda X: pd.Series(list(X)),
    "polars": lambda X: pl.DataFrame(X),
    "tensor": torch.from_numpy,
    "sparse tensor": lambda X: torch.from_numpy(X).to_sparse(),
    "memory": memoryview,
    "tuple of rows": tuple,
    "generator": iter,
    "mapping": lambda X: {"X": X},
}
OBJECTS = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=3)
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=12,
)


@st.composite
def containers(draw):
    """Something to fit to: an array of any type in a container that can hold it, or nested objects."""
    if draw(st.integers(0, 4)) == 0:
        return draw(OBJECTS)
    array = draw(st.one_of(ARRAYS, NUMBERS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return CONTAINERS[draw(st.sampled_from(list(CONTAINERS)))](array)
        except Exception:  # a container that does not take this array is no concern of ours
            return array


def assert_refused_or_right(X, sample_weight=None, predict=None, **parameters):
    """Only ValueError and TypeError with words may come out, else a whole and consistent result."""
    m = TransformerKMeans(**{"n_clusters": 2, "random_state": 0, "max_iter": 5, **parameters})
    refusal = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            labels = m.fit(X, sample_weight=sample_weight).predict(X)
        except (ValueError, TypeError) as error:
            refusal = str(error)
    if refusal is not None:
        assert len(refusal) > 10, refusal
        assert hasattr(m, "cluster_centers_") == hasattr(m, "labels_")
        return
    assert np.isfinite(m.cluster_centers_).all()
    assert_array_equal(m.labels_, labels)
    assert labels.min() >= 0
    assert labels.max() < len(m.cluster_centers_)
    assert not np.isnan(m.inertia_)


@pytest.mark.parametrize("backend", available_backends())
@given(X=containers())
def test_any_data_are_refused_or_clustered(backend, X):
    assert_refused_or_right(X, backend=backend)


@given(weights=st.one_of(containers(), hnp.arrays("f8", 6), st.floats()))
def test_any_weights_are_refused_or_counted(weights):
    assert_refused_or_right(np.arange(12.0).reshape(6, 2), weights)


@given(init=st.one_of(containers(), hnp.arrays("f8", (2, 2))), by_call=st.booleans())
def test_any_initial_centers_are_refused_or_used(init, by_call):
    start = (lambda X, n_clusters, random_state: init) if by_call else init
    assert_refused_or_right(np.arange(12.0).reshape(6, 2), init=start, n_init=1)


@given(
    name=st.sampled_from(list(TransformerKMeans().get_params())),
    value=st.one_of(
        OBJECTS, st.sampled_from([np.float32(1), np.int64(2), np.bool_(True), np.nan, (), object()])
    ),
)
def test_any_value_of_any_parameter_is_refused_or_used(name, value):
    if name in ("max_iter", "n_init", "n_steps") and isinstance(value, int):
        value = min(value, 20)  # to be quick
    assert_refused_or_right(np.arange(12.0).reshape(6, 2), **{name: value})


@given(X=containers())
def test_any_data_to_predict_are_refused_or_labelled(X):
    m = TransformerKMeans(2, random_state=0).fit(np.arange(12.0).reshape(6, 2))
    for method in ("predict", "transform", "score"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                answer, refusal = getattr(m, method)(X), None
            except (ValueError, TypeError) as error:
                answer, refusal = 0.0, str(error)
        assert refusal is None or len(refusal) > 10, refusal
        assert not np.isnan(answer).any()
