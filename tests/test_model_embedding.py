import pytest
import torch

from sktransclust.model import LloydConfig, decode_labels, embed_centers, embed_samples
from sktransclust.model.embedding import center_codes


def codes_as_text(k, embedding):
    codes = center_codes(LloydConfig(1, k, embedding), like=torch.zeros(()))
    return ["".join(str(int(bit)) for bit in code) for code in codes]


def test_binary_codes_of_six_clusters_are_those_of_the_paper():
    assert codes_as_text(6, "binary") == ["000", "100", "010", "110", "001", "101"]


def test_onehot_codes_are_rows_of_the_identity():
    assert codes_as_text(3, "onehot") == ["100", "010", "001"]


@pytest.mark.parametrize("k", [1, 2, 31, 32, 33, 1000])
def test_binary_codes_are_distinct(k):
    assert len(set(codes_as_text(k, "binary"))) == k


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("lead", [(), (4,), (2, 4)])
def test_tokens_are_coordinates_then_code(lead, dtype):
    config = LloydConfig(2, 3)
    samples, centers = torch.rand(*lead, 5, 2, dtype=dtype), torch.rand(*lead, 3, 2, dtype=dtype)
    x, c = embed_samples(samples, config), embed_centers(centers, config)
    assert x.dtype == c.dtype == dtype
    assert x.shape == (*lead, 5, 4)
    assert torch.equal(x[..., :2], samples)
    assert not x[..., 2:].any()
    assert torch.equal(c[..., :2], centers)
    assert torch.equal(c[..., 2:], torch.tensor([[0, 0], [1, 0], [0, 1]], dtype=dtype).expand(*lead, 3, 2))


def test_tokens_without_code_are_the_coordinates():
    config, samples, centers = LloydConfig(2, 3, "none"), torch.rand(5, 2), torch.rand(3, 2)
    assert torch.equal(embed_samples(samples, config), samples)
    assert torch.equal(embed_centers(centers, config), centers)


@pytest.mark.parametrize("embedding", ["binary", "onehot"])
@pytest.mark.parametrize("k", [1, 2, 5, 33])
def test_decoding_inverts_the_code(k, embedding):
    config = LloydConfig(2, k, embedding)
    tokens = embed_centers(torch.rand(3, k, 2), config)
    assert torch.equal(decode_labels(tokens, config), torch.arange(k).expand(3, k))


def test_decoding_takes_the_nearest_code_that_exists():
    config = LloydConfig(1, 3, "binary")  # codes 00, 10, 01; 11 is nobody's
    tokens = torch.tensor([[9.0, 0.1, 0.2], [9.0, 0.9, 0.4], [9.0, 0.8, 0.9]])
    assert decode_labels(tokens, config).tolist() == [0, 1, 2]


def test_decoding_needs_a_code():
    with pytest.raises(ValueError, match=r"`embedding` should be 'binary' or 'onehot'.*, got 'none'"):
        decode_labels(torch.rand(5, 2), LloydConfig(2, 3, "none"))
