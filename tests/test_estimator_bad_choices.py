"""Own parameters that cannot be served: the error says what was asked and what there is."""

import re

import numpy as np
import pytest
import torch
from sklearn.utils._param_validation import InvalidParameterError

from sktransclust import LloydTransformer, TransformerKMeans

from .cases import gaussians

X = gaussians()


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"backend": "sparse"}, ["auto", "dense", "streamed"]),
        ({"backend": 3}, ["auto", "dense", "streamed"]),
        ({"embedding": "gray"}, ["binary", "onehot"]),
        ({"n_steps": -1}, ["int in the range"]),
        ({"n_steps": 2.0}, ["int in the range"]),
        ({"weights": 3}, ["str"]),
        ({"weights": None}, ["str"]),
        ({"device": 3.5}, ["str"]),
    ],
    ids=lambda value: "-".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else "",
)
def test_a_wrong_own_parameter_is_an_invalid_parameter_that_lists_the_right_ones(parameters, named):
    (parameter,) = parameters
    with pytest.raises(
        InvalidParameterError, match=f"The '{parameter}' parameter of TransformerKMeans"
    ) as caught:
        TransformerKMeans(3, **parameters).fit(X)
    for word in named:
        assert word in str(caught.value)


@pytest.mark.parametrize("weights", ["nonsense", "nowhere.safetensors"])
def test_unknown_weights_are_named(weights):
    with pytest.raises(ValueError, match=re.escape(weights)):
        TransformerKMeans(3, weights=weights).fit(X)


def test_the_network_without_codes_cannot_be_exact():
    with pytest.raises(ValueError, match="embedding"):
        TransformerKMeans(3, embedding="none").fit(X)


@pytest.mark.parametrize("device", ["gpu", "cpu:x", "nonsense:0"])
def test_an_unknown_device_is_named_with_those_there_are(device):
    with pytest.raises(ValueError, match="device") as caught:
        TransformerKMeans(3, device=device).fit(X)
    assert device in str(caught.value)
    assert "cpu" in str(caught.value)


@pytest.mark.parametrize("device", ["mps", torch.device("mps")])
def test_mps_is_refused_for_want_of_float64(device):
    with pytest.raises(ValueError, match="float64"):
        TransformerKMeans(3, device=device).fit(X)


without_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="asks what happens without CUDA")


@without_cuda
@pytest.mark.parametrize("device", ["cuda", "cuda:1", torch.device("cuda")])
def test_cuda_without_cuda_raises_in_fit_and_says_how_to_go_on(device):
    with pytest.raises(ValueError, match="cuda") as caught:
        TransformerKMeans(3, device=device).fit(X)
    assert "cpu" in str(caught.value)
    assert "set_params(device=" in str(caught.value)


@without_cuda
@pytest.mark.parametrize("method", ["predict", "transform", "score"])
def test_cuda_without_cuda_raises_after_fit_too_and_set_params_mends_it(method):
    estimator = TransformerKMeans(3, device="cpu", random_state=0).fit(X)
    expected = getattr(estimator, method)(X)
    estimator.set_params(device="cuda")
    with pytest.raises(ValueError, match="set_params\\(device="):
        getattr(estimator, method)(X)
    np.testing.assert_array_equal(getattr(estimator.set_params(device="cpu"), method)(X), expected)


@pytest.mark.parametrize("device", ["auto", "cpu", torch.device("cpu")])
def test_the_device_that_ran_can_be_read(device):
    expected = "cuda" if device == "auto" and torch.cuda.is_available() else "cpu"
    assert TransformerKMeans(3, device=device).fit(X).device_.split(":")[0] == expected


def test_constructing_checks_nothing_and_stores_what_it_is_given():
    odd = object()
    estimator = TransformerKMeans(
        n_clusters=odd, weights=odd, backend=odd, device=odd, n_steps=odd, embedding=odd
    )
    assert all(
        getattr(estimator, name) is odd for name in ("n_clusters", "weights", "backend", "device", "n_steps")
    )


def test_the_class_of_networks_is_not_a_network():
    with pytest.raises(ValueError, match="`weights` should be a LloydTransformer"):
        TransformerKMeans(3, weights=LloydTransformer).fit(X)


def test_a_network_for_another_problem_names_both_pairs():
    network = LloydTransformer.exact(7, 11)
    data = gaussians(n_features=5)
    with pytest.raises(ValueError, match="weights") as caught:
        TransformerKMeans(13, weights=network).fit(data)
    assert {"7", "11", "5", "13"} <= set(re.findall(r"\d+", str(caught.value)))


def test_the_dense_backend_refuses_a_problem_that_cannot_fit_in_memory():
    centers = np.arange(1_000_000, dtype=np.float32)[:, None]
    with pytest.raises((ValueError, MemoryError), match="streamed"):
        TransformerKMeans(len(centers), init=centers, n_init=1, backend="dense").fit(centers)
