"""Devices: resolved by name, refused with what there is."""

import pytest
import torch

from sktransclust._device import resolve_device


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a CUDA device")
def test_auto_is_the_cpu_without_cuda():
    assert resolve_device("auto") == torch.device("cpu")


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu"), "cpu:0"])
def test_the_cpu_has_one_name(device):
    assert str(resolve_device(device)) == "cpu"


@pytest.mark.parametrize("device", ["tpu", "cuda:x", "mps", "meta", "cuda:97", torch.device("cuda", 97)])
def test_what_is_missing_is_refused_with_what_there_is(device):
    with pytest.raises(ValueError, match=r"`device` should be one of 'auto', 'cpu'"):
        resolve_device(device)


@pytest.mark.gpu
def test_cuda_gets_the_current_index():
    assert resolve_device("cuda") == torch.device("cuda", torch.cuda.current_device())
    assert resolve_device("auto").type == "cuda"
