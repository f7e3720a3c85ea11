import copy
import pickle

import joblib
import pytest
import torch

from sktransclust.model import (
    PROJECTION_NAMES,
    LloydConfig,
    LloydTransformer,
    lloyd_projections,
    random_projections,
)


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def task(rng):
    samples = torch.rand(3, 20, 2, generator=rng)
    return samples, samples[:, :5]


def test_one_exact_layer_by_hand():
    # Sample 2 is as near to 0 as to 4: it goes to the first. No sample is near 90: it stays.
    samples = torch.tensor([[[0.0], [2.0], [4.0], [9.0]]], dtype=torch.float64)
    centers = torch.tensor([[[0.0], [4.0], [90.0]]], dtype=torch.float64)
    network = LloydTransformer.exact(1, 3)
    output = network(samples, centers, return_attention=True)
    assert output.sample_tokens.tolist() == [[[0, 0, 0], [2, 0, 0], [4, 1, 0], [9, 1, 0]]]
    assert output.center_tokens.tolist() == [[[1, 0, 0], [6.5, 1, 0], [90, 0, 1]]]
    assert network.decode_labels(output.sample_tokens).tolist() == [[0, 0, 1, 1]]
    (matrices,) = output.attention
    assert matrices["assign"].tolist() == [[[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0]]]
    assert matrices["update"].tolist() == [
        [[0.5, 0.5, 0, 0, 0, 0, 0], [0, 0, 0.5, 0.5, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1]]  # samples, then centers
    ]
    assert torch.equal(matrices["erase_samples"], torch.eye(4, dtype=torch.float64)[None])
    assert torch.equal(matrices["erase_centers"], torch.eye(3, dtype=torch.float64)[None])


def test_parameters_are_the_twelve_named_projections():
    network = LloydTransformer(LloydConfig(2, 5))
    parameters = dict(network.named_parameters())
    assert set(parameters) == set(PROJECTION_NAMES) == set(network.state_dict())
    assert all(p.shape == (5, 5) and p.requires_grad for p in parameters.values())


def test_given_projections_are_copied(rng):
    weights = random_projections(LloydConfig(2, 5), rng)
    network = LloydTransformer(LloydConfig(2, 5), weights)
    before = network.assign["query"].clone()
    weights["assign.query"].zero_()
    assert torch.equal(network.assign["query"], before)


def test_random_projections_depend_on_the_generator_alone():
    config = LloydConfig(4, 5)
    state = torch.get_rng_state()
    first, second, other = (
        LloydTransformer(config, generator=torch.Generator().manual_seed(seed)).state_dict()
        for seed in (1, 1, 2)
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(first[name], second[name]) for name in PROJECTION_NAMES)
    assert not any(torch.equal(first[name], other[name]) for name in PROJECTION_NAMES)
    assert all(matrix.abs().max() <= 7**-0.5 for matrix in first.values())


def test_layers_share_the_projections_and_iterate_equation_4(rng, task):
    config = LloydConfig(2, 5)
    weights = random_projections(config, rng)
    deep = LloydTransformer(LloydConfig(2, 5, n_layers=3), weights)(*task, return_attention=True)
    assert len(deep.attention) == 3
    assert sum(p.numel() for p in LloydTransformer(LloydConfig(2, 5, n_layers=3)).parameters()) == 12 * 5**2
    shallow = LloydTransformer(config, weights)(*task, return_attention=True)
    for name in ("assign", "erase_samples", "update", "erase_centers"):
        torch.testing.assert_close(deep.attention[0][name], shallow.attention[0][name])
    assert not torch.allclose(deep.center_tokens, shallow.center_tokens)


def test_step_is_the_coordinates_of_one_layer_however_many_the_network_has(rng, task):
    weights = random_projections(LloydConfig(2, 5), rng)
    expected = LloydTransformer(LloydConfig(2, 5), weights)(*task)
    assert expected.attention is None
    stepped = LloydTransformer(LloydConfig(2, 5, n_layers=3), weights).step(*task)
    assert torch.equal(stepped, expected.center_tokens[..., :2])


@pytest.mark.parametrize("embedding", ["binary", "onehot", "none"])
def test_learned_network_runs_and_learns_in_either_precision(rng, task, embedding):
    for dtype in (torch.float32, torch.float64):
        network = LloydTransformer(LloydConfig(2, 5, embedding), generator=rng, dtype=dtype)
        samples, centers = (z.to(dtype) for z in task)
        moved = network.step(samples, centers, torch.rand(3, 20, generator=rng).to(dtype))
        assert moved.dtype == dtype
        assert moved.shape == (3, 5, 2)
        moved.square().sum().backward()
        assert all(p.grad.isfinite().all() for p in network.parameters())


@pytest.mark.parametrize("copy_of", [copy.deepcopy, lambda network: pickle.loads(pickle.dumps(network))])
def test_copies_and_pickles_compute_the_same(rng, task, copy_of):
    network = LloydTransformer(LloydConfig(2, 5), generator=rng).eval()
    network.assign["key"].requires_grad_(False)
    twin = copy_of(network)
    assert twin.config == network.config
    assert torch.equal(twin.step(*task), network.step(*task))
    assert not twin.training
    frozen = {name for name, weight in twin.named_parameters() if not weight.requires_grad}
    assert frozen == {"assign.key"}
    assert joblib.hash(twin) == joblib.hash(network)
    with torch.no_grad():
        twin.assign["query"][0, 0] += 1
    assert joblib.hash(twin) != joblib.hash(network)


def test_state_dict_moves_the_exact_weights_into_a_random_network(task):
    exact = LloydTransformer.exact(2, 5)
    network = LloydTransformer(exact.config, dtype=torch.float64)
    network.load_state_dict(lloyd_projections(exact.config))
    samples, centers = (z.double() for z in task)
    assert torch.equal(network.step(samples, centers), exact.step(samples, centers))


def test_network_without_codes_cannot_be_exact():
    with pytest.raises(ValueError, match=r"`embedding` should be 'binary' or 'onehot'.*, got 'none'"):
        LloydTransformer.exact(2, 3, embedding="none")


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("samples", [(1, 9, 3), (1, 5, 2), None]),
        ("samples", [(2,), (5, 2), None]),
        ("centers", [(1, 9, 2), (1, 4, 2), None]),
        ("centers", [(1, 9, 2), (2, 5, 2), None]),
        ("sample_weight", [(1, 9, 2), (1, 5, 2), (9,)]),
    ],
)
def test_shapes_of_another_network_are_refused_by_name(name, shapes):
    inputs = [None if shape is None else torch.rand(shape) for shape in shapes]
    network = LloydTransformer(LloydConfig(2, 5))
    for run in (network, network.step):
        with pytest.raises(ValueError, match=f"`{name}` should be of shape .*, got "):
            run(*inputs)
