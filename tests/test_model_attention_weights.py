import torch

from sktransclust.model.attention_weights import argmax_weights, hardmax_weights, softmax_weights

SCORES = torch.tensor([[-1.0, -3.0, -1.0], [-2.0, -1.0, -5.0]])


def test_hardmax_marks_every_maximiser():
    assert hardmax_weights(SCORES).tolist() == [[1, 0, 1], [0, 1, 0]]


def test_argmax_marks_the_first_maximiser():
    assert argmax_weights(SCORES).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert argmax_weights(torch.zeros(100, 1000)).sum(dim=0).tolist() == [100] + [0] * 999


def test_hardmax_removes_keys_of_weight_zero_before_the_maximum():
    weights = hardmax_weights(SCORES, torch.tensor([2.0, 0.0, 3.0]))
    assert weights.tolist() == [[2, 0, 3], [2, 0, 0]]


def test_heaviest_maximiser_does_not_win_alone():
    assert hardmax_weights(torch.zeros(1, 3), torch.tensor([1.0, 8.0, 1.0])).tolist() == [[1, 8, 1]]


def test_hard_maps_are_limits_of_softmax():
    weights = softmax_weights(1e4 * SCORES)
    hard = hardmax_weights(SCORES)
    torch.testing.assert_close(weights, hard / hard.sum(dim=-1, keepdim=True))
    torch.testing.assert_close(weights[1], argmax_weights(SCORES)[1])
