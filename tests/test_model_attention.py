import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.nn.attention import SDPBackend, sdpa_kernel

from sktransclust.model.attention import (
    FUSED_MIN_TOKENS,
    attention,
    dot_product_form,
    fused_attention,
    plain_attention,
    project,
    softmax_attention,
    squared_distances,
    weighted_mean,
)


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(0)


def normal(rng, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=rng, dtype=dtype)


def equation_3(x, z, projections, gamma, key_weight=None):
    """Eq. 3 as it stands: softmax of minus gamma / sqrt(e) times squared distances, in one task."""
    query, key, value = projections
    differences = (x @ query)[:, None, :] - (z @ key)[None, :, :]
    scores = -gamma / math.sqrt(x.shape[1]) * (differences**2).sum(dim=2)
    exponentials = torch.exp(scores - scores.max(dim=1, keepdim=True).values)
    if key_weight is not None:
        exponentials = exponentials * key_weight
    return exponentials / exponentials.sum(dim=1, keepdim=True) @ (z @ value)


@pytest.mark.parametrize("n", [1, 7, 64, 133])  # the plain formula, then the fused kernel
@pytest.mark.parametrize("e", [1, 3, 8])
@pytest.mark.parametrize("gamma", [0.5, 1.0, 20.0])
def test_softmax_attention_is_equation_3(rng, n, e, gamma):
    x, z = normal(rng, 2, 65, e), normal(rng, 2, n, e)
    projections = tuple(normal(rng, 3, e, e))
    actual, _ = attention(x, z, projections, "softmax", inverse_temperature=gamma)
    for b in range(2):
        torch.testing.assert_close(
            actual[b], equation_3(x[b], z[b], projections, gamma), rtol=1e-11, atol=1e-11
        )


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.float64, 1e-12)], ids=["float32", "float64"]
)
@pytest.mark.parametrize(("m", "n", "e"), [(5, 3, 1), (64, 64, 7), (70, 133, 8), (129, 600, 33)])
@pytest.mark.parametrize("weighted", [False, True])
def test_fused_kernel_equals_the_plain_formula_forward_and_backward(rng, m, n, e, dtype, tolerance, weighted):
    tensors = [normal(rng, 2, 3, rows, e, dtype=dtype).requires_grad_() for rows in (m, n, n)]
    bias = normal(rng, 3, n, dtype=dtype) if weighted else None
    seed = normal(rng, 2, 3, m, e, dtype=dtype)

    def run(attend):
        queries, keys, values = tensors
        output = attend(*dot_product_form(queries, keys, 1 / math.sqrt(e), bias), values)
        return output, *torch.autograd.grad(output, tensors, seed)

    expected = run(lambda *inputs: plain_attention(*inputs)[0])
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # raises where the kernel would fall back
        actual = run(fused_attention)
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.gpu
@pytest.mark.parametrize("e", [3, 7, 36])
def test_fused_kernel_of_cuda_equals_the_plain_formula(rng, e):
    tensors = [normal(rng, 4, 200, e, dtype=torch.float32).cuda().requires_grad_() for _ in range(3)]

    def run(attend):
        queries, keys, values = tensors
        output = attend(*dot_product_form(queries, keys, 1 / math.sqrt(e)), values)
        return output, *torch.autograd.grad(output.sum(), tensors)

    expected = run(lambda *inputs: plain_attention(*inputs)[0])
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):  # the fused kernel that takes float32
        actual = run(fused_attention)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


def test_long_inputs_take_the_fused_kernel_and_short_ones_do_not(rng, monkeypatch):
    taken = []
    monkeypatch.setattr(
        "sktransclust.model.attention.fused_attention", lambda *inputs: taken.append(inputs) or inputs[2]
    )
    long, short = normal(rng, 1, FUSED_MIN_TOKENS, 3), normal(rng, 1, FUSED_MIN_TOKENS - 1, 3)
    softmax_attention(short, long, long, 1.0)
    softmax_attention(long, short, short, 1.0)
    softmax_attention(long, long, long, 1.0, return_weights=True)  # the kernel has no matrix to return
    assert not taken
    softmax_attention(long, long, long, 1.0)
    assert len(taken) == 1


@pytest.mark.parametrize("n", [4, 70])
def test_gradients_of_softmax_attention_are_those_of_finite_differences(rng, n):
    tokens = [normal(rng, 1, n, 2).requires_grad_() for _ in range(2)]
    projections = [matrix.requires_grad_() for matrix in normal(rng, 3, 2, 2)]
    weight = torch.rand(1, n, generator=rng, dtype=torch.float64)
    weight[0, 1] = 0.0

    def run(x, z, *matrices):
        return attention(x, z, matrices, "softmax", key_weight=weight)[0][:, :3]

    assert gradcheck(run, (*tokens, *projections), fast_mode=n > 4)


@pytest.mark.parametrize("n", [9, 80])
def test_softmax_weight_is_repetition_and_weight_zero_is_absence(rng, n):
    x, z, projections = normal(rng, 1, 64, 3), normal(rng, 1, n, 3), tuple(normal(rng, 3, 3, 3))
    counts = torch.randint(4, (n,), generator=rng)
    assert (counts == 0).any()
    repeated = z.repeat_interleave(counts, dim=1)
    expected, _ = attention(x, repeated, projections, "softmax")
    z = z.masked_fill((counts == 0)[:, None], 1e3).requires_grad_()  # far away, and not felt
    actual, _ = attention(x, z, projections, "softmax", key_weight=counts[None].double())
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-9)
    (gradient,) = torch.autograd.grad(actual.sum(), z)
    assert not gradient[0, counts == 0].any()
    assert gradient.isfinite().all()


def test_long_run_of_weightless_keys_leaves_no_nan(rng):
    z = normal(rng, 1, 3000, 3).requires_grad_()
    weight = torch.zeros(1, 3000, dtype=torch.float64)
    weight[0, -1] = 2.0  # alone, behind many blocks of keys that do not count
    eye = torch.eye(3, dtype=torch.float64)
    output, _ = attention(z[:, :64], z, (eye, eye, eye), "softmax", key_weight=weight)
    torch.testing.assert_close(output, z[:, -1:].expand_as(output))
    (gradient,) = torch.autograd.grad(output.sum(), z)
    assert gradient.isfinite().all()


def test_uniform_weights_change_nothing(rng):
    x, projections = normal(rng, 1, 9, 3), tuple(normal(rng, 3, 3, 3))
    weighted, _ = attention(x, x, projections, "softmax", key_weight=torch.full((1, 9), 7.0).double())
    torch.testing.assert_close(weighted, attention(x, x, projections, "softmax")[0])


def test_far_from_the_origin_float32_keeps_its_digits(rng):
    x = torch.randint(16, (1, 50, 2), generator=rng).float() / 16
    eye = torch.eye(2)
    _, near = attention(x, x, (eye, eye, eye), "softmax", return_weights=True)
    _, far = attention(x + 4096, x + 4096, (eye, eye, eye), "softmax", return_weights=True)
    torch.testing.assert_close(far, near, rtol=1e-5, atol=0)  # where |k|^2 is 3e7, with an ulp of 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_squared_distances_are_exact_on_integers_and_zero_to_oneself(rng, dtype):
    queries, keys = (
        torch.tensor([[[0, 0], [3, 4]]], dtype=dtype),
        torch.tensor([[[0, 0], [1, 0], [3, 4]]], dtype=dtype),
    )
    assert squared_distances(queries, keys).tolist() == [[[0, 1, 25], [25, 20, 0]]]
    far = 1e4 + normal(rng, 50, 9, dtype=dtype)
    assert not squared_distances(far, far).diagonal().any()


def test_weighted_mean_of_equal_values_is_that_value():
    values = torch.full((6, 2), 1.0)
    weights = torch.ones(3, 6)
    assert torch.equal(weighted_mean(weights, values), torch.ones(3, 2))
    assert torch.equal(
        weighted_mean(torch.tensor([[1.0, 0, 0, 3.0, 0, 0]]), torch.arange(12.0).view(6, 2)),
        torch.tensor([[4.5, 5.5]]),
    )


@pytest.mark.parametrize("lead", [(), (4,), (2, 4), (3, 2, 4)])
def test_one_projection_serves_any_leading_dimensions(rng, lead):
    tokens, matrix = normal(rng, *lead, 5, 3), normal(rng, 3, 3)
    torch.testing.assert_close(project(tokens, matrix), torch.einsum("...ne,ef->...nf", tokens, matrix))


def test_stacked_projections_take_their_own_slices(rng):
    tokens, matrices = normal(rng, 3, 2, 5, 4), normal(rng, 3, 4, 4)
    expected = torch.stack([z @ matrix for z, matrix in zip(tokens, matrices, strict=True)])
    torch.testing.assert_close(project(tokens, matrices), expected)


@pytest.mark.parametrize("attention_map", ["softmax", "hardmax", "argmax", "identity"])
@pytest.mark.parametrize("n", [5, 70])
def test_attention_is_its_matrix_times_the_values(rng, attention_map, n):
    x = torch.randint(3, (2, n, 2), generator=rng).double()  # with ties
    projections = tuple(normal(rng, 3, 2, 2))
    output, none = attention(x, x, projections, attention_map)
    assert none is None
    again, weights = attention(x, x, projections, attention_map, return_weights=True)
    torch.testing.assert_close(again, output)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, n, dtype=torch.float64))
    torch.testing.assert_close(weights @ (x @ projections[2]), output)
