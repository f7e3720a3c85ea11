import json
from dataclasses import FrozenInstanceError, asdict

import pytest

from sktransclust.model import LloydConfig, exact_config


@pytest.mark.parametrize(
    ("embedding", "k", "width"),
    [("binary", k, w) for k, w in [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (32, 5), (33, 6)]]
    + [("onehot", 1, 1), ("onehot", 6, 6), ("none", 6, 0)],
)
def test_token_is_as_wide_as_the_paper_says(embedding, k, width):
    config = LloydConfig(7, k, embedding)
    assert config.code_width == width
    assert config.token_width == 7 + width


@pytest.mark.parametrize("config", [LloydConfig(3, 5, "none", inverse_temperature=0.5), exact_config(3, 5)])
def test_config_survives_json(config):
    assert LloydConfig(**json.loads(json.dumps(asdict(config)))) == config


def test_config_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        LloydConfig(2, 3).n_clusters = 4


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_features", 0),
        ("n_clusters", 2.0),
        ("n_clusters", True),
        ("n_layers", -1),
        ("embedding", "gray"),
        ("assign_map", "identity"),
        ("erase_map", "argmax"),
        ("update_map", "argmax"),
        ("inverse_temperature", 0.0),
        ("inverse_temperature", float("inf")),
        ("inverse_temperature", float("nan")),
        ("inverse_temperature", "1"),
        ("keep_bias", 0.5),  # needs update_map="hardmax"
    ],
)
def test_wrong_field_is_named_with_its_value(field, value):
    with pytest.raises(ValueError, match=rf"`{field}` should be .*, got {value!r}"):
        LloydConfig(**({"n_features": 2, "n_clusters": 3} | {field: value}))


@pytest.mark.parametrize("keep_bias", [0, 1.0, -0.5, "0.5"])
def test_keep_bias_lies_between_a_member_and_a_stranger(keep_bias):
    with pytest.raises(ValueError, match=rf"`keep_bias` should be .*, got {keep_bias!r}"):
        LloydConfig(2, 3, update_map="hardmax", keep_bias=keep_bias)


def test_network_without_codes_cannot_be_exact():
    with pytest.raises(ValueError, match=r"`embedding` should be 'binary' or 'onehot'.*, got 'none'"):
        exact_config(2, 3, "none")
