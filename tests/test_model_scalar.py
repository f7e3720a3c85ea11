import numpy as np
import pytest
import torch

from sktransclust.model import LloydConfig, LloydTransformer
from sktransclust.model.config import FEATURES, PROJECTIONS
from sktransclust.model.scalar import describe, scalar_layer, squared_distances

F64 = torch.float64


def config(features=FEATURES):
    return LloydConfig(0, 0, "onehot", projection="scalar", features=features)


def network(features=FEATURES, seed=0):
    """A scalar network whose weights are all off their start."""
    model = LloydTransformer(config(features), dtype=F64)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.3 * torch.randn(weight.shape, dtype=F64, generator=generator)
    return model


def problem(n=40, d=3, k=5, seed=1, lead=(2,)):
    generator = torch.Generator().manual_seed(seed)
    samples = torch.randn(*lead, n, d, dtype=F64, generator=generator)
    return samples, samples[..., :k, :] + 0.1


def expand(scalars, d, k):
    """The dense one-hot network with the projections s P_D + t P_E, whose samples see no samples (A2 = 0)."""
    width = d + k
    matrices = {f"erase_samples.{part}": torch.zeros(width, width, dtype=F64) for part in PROJECTIONS}
    for name, value in scalars.items():
        if value.shape == (2,):
            matrices[name] = torch.diag(value.detach().repeat_interleave(torch.tensor([d, k])))
    # gamma = sqrt(d_emb): the scalar network puts the scale into its unit of length.
    return LloydTransformer(LloydConfig(d, k, "onehot", inverse_temperature=width**0.5), matrices)


@pytest.mark.parametrize(("n", "d", "k"), [(40, 3, 5), (7, 1, 1), (130, 2, 70), (9, 30, 2)])
def test_scalar_network_is_the_dense_one_with_scalar_times_projector_weights(n, d, k):
    model = network(features=())
    samples, centers = problem(n, d, k)
    middle = samples.mean(1, keepdim=True)
    unit = squared_distances(samples - middle, centers - middle).amin(-1).mean(-1).sqrt()[:, None, None]
    dense = expand(dict(model.named_parameters()), d, k)
    expected = dense.step((samples - middle) / unit, (centers - middle) / unit) * unit + middle
    torch.testing.assert_close(model.step(samples, centers), expected, rtol=1e-12, atol=1e-12)


def softmax(scores):
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True)


def plain_layer(samples, centers, scalars, weight):
    """Eq. 4 with every token written out, features as biases of keys and inverse temperatures of queries."""
    (n, d), k = samples.shape, len(centers)
    middle = (weight[:, None] * samples).sum(0) / weight.sum()
    x, c = samples - middle, centers - middle
    squared = ((x[:, None] - c) ** 2).sum(-1)
    label, near = squared.argmin(1), squared.min(1)
    unit = (weight * near).sum() / weight.sum()
    mass = np.array([weight[label == j].sum() for j in range(k)])
    error = np.array([(weight * near)[label == j].sum() for j in range(k)])
    gap = ((c[:, None] - c) ** 2).sum(-1)
    np.fill_diagonal(gap, np.inf)
    values = [mass * k / weight.sum(), error / mass / unit, gap.min(1) / unit]
    features = np.log(0.05 + np.stack(values, -1))
    x, c = np.hstack([x / unit**0.5, np.zeros((n, k))]), np.hstack([c / unit**0.5, np.eye(k)])

    def attend(name, queries, keys, extra=0.0, gain=1.0):
        query, key, value = (np.repeat(scalars[f"{name}.{part}"], [d, k]) for part in PROJECTIONS)
        scores = -(((queries * query)[:, None] - keys * key) ** 2).sum(-1)
        return softmax(gain * (scores + extra)) @ (keys * value)

    def gain(name):
        return np.exp(np.clip(features @ scalars[f"{name}.gain"], -3, 3))[:, None]

    after = x + attend("assign", x, c, features @ scalars["assign.bias"])
    erased = attend("erase_centers", c, c, features @ scalars["erase_centers.bias"], gain("erase_centers"))
    heavy = np.log(weight) / gain("update")  # a weight counts copies: it is outside of the temperature
    moved = c + attend("update", c, after, heavy, gain("update")) + erased
    return moved[:, :d] * unit**0.5 + middle


@pytest.mark.parametrize("seed", range(5))
def test_layer_agrees_with_all_tokens_written_out(seed):
    model = network(seed=seed)
    samples, centers = problem(lead=(), seed=seed)
    weight = torch.rand(40, dtype=F64, generator=torch.Generator().manual_seed(seed)) + 0.1
    scalars = {name: value.detach().numpy() for name, value in model.named_parameters()}
    expected = plain_layer(samples.numpy(), centers.numpy(), scalars, weight.numpy())
    actual = model.step(samples, centers, weight).detach().numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-11)


def test_rotation_shift_unit_and_names_pass_through_the_layer():
    model, (samples, centers) = network(), problem(d=4)
    rotation = torch.linalg.qr(torch.randn(4, 4, dtype=F64, generator=torch.Generator().manual_seed(3)))[0]
    order = torch.tensor([3, 0, 4, 1, 2])
    moved = model.step(1e3 * samples @ rotation + 7, 1e3 * centers[:, order] @ rotation + 7)
    expected = 1e3 * model.step(samples, centers)[:, order] @ rotation + 7
    torch.testing.assert_close(moved, expected, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("tile_elements", [1, 37, 400])
def test_tiles_change_nothing(tile_elements):
    model, (samples, centers) = network(), problem()
    scalars = dict(model.named_parameters())
    weight = torch.rand(2, 40, dtype=F64, generator=torch.Generator().manual_seed(0))
    whole = scalar_layer(samples, centers, scalars, model.config, weight)
    tiled = scalar_layer(samples, centers, scalars, model.config, weight, tile_elements)
    torch.testing.assert_close(tiled, whole, rtol=1e-12, atol=1e-12)


def test_weight_counts_copies_and_weight_0_none():
    model, (samples, centers) = network(), problem(n=6, k=3)
    weight = torch.tensor([2.0, 1, 0, 3, 1, 1], dtype=F64)
    copies = samples[:, [0, 0, 1, 3, 3, 3, 4, 5]]
    weighted = model.step(samples, centers, weight.expand(2, 6))
    torch.testing.assert_close(weighted, model.step(copies, centers), rtol=1e-11, atol=1e-11)


def test_gradient_is_that_of_finite_differences():
    model, (samples, centers) = network(), problem(n=12, d=2, k=3, lead=())
    names, values = zip(*model.named_parameters(), strict=True)

    def layer(*weights):
        return scalar_layer(samples, centers, dict(zip(names, weights, strict=True)), model.config, None, 15)

    assert torch.autograd.gradcheck(layer, values)


def test_features_of_two_clusters_are_those_counted_by_hand():
    samples = torch.tensor([[-1.0], [1.0], [5.0], [-5.0]], dtype=F64)
    centers = torch.tensor([[0.0], [5.0]], dtype=F64)  # the second has one sample, at distance 0
    scale, features = describe(samples, centers, ("mass", "error", "gap"))
    assert scale.item() == pytest.approx((27 / 4) ** 0.5)
    values = torch.tensor([[1.5, 9 / 6.75, 25 / 6.75], [0.5, 0, 25 / 6.75]], dtype=F64)
    torch.testing.assert_close(features, (values + 0.05).log())


def test_samples_that_lie_on_their_centers_stay_finite():
    samples = torch.zeros(1, 4, 2)
    moved = network().float().step(samples, torch.zeros(1, 3, 2))
    assert torch.equal(moved, torch.zeros(1, 3, 2))


def test_tokens_of_a_scalar_network_are_refused():
    with pytest.raises(ValueError, match="use `step`"):
        network()(*problem())


@pytest.mark.parametrize(
    ("field", "value"),
    [("n_features", 3), ("n_clusters", 2), ("embedding", "binary"), ("n_layers", 2), ("features", ("size",))],
)
def test_what_a_scalar_network_cannot_have_is_named(field, value):
    fields = {"n_features": 0, "n_clusters": 0, "embedding": "onehot", "projection": "scalar"}
    with pytest.raises(ValueError, match=rf"`{field}` should be"):
        LloydConfig(**(fields | {field: value}))


def test_features_need_scalar_projections():
    with pytest.raises(ValueError, match="`features` should be empty"):
        LloydConfig(2, 3, features=("mass",))
