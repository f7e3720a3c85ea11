"""scikit-learn's estimator checks with untrained networks, each of the size that a check's data ask for."""

import os
import subprocess
import sys

import pytest
import torch
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import estimator_checks_generator

from sktransclust import LloydTransformer, TransformerKMeans, _fit, _learned
from sktransclust.model import LloydConfig

from .test_estimator_checks import allow_warnings

# Check -> (n_features, n_clusters) of what it fits, or None where it fits nothing.
SHAPES = {
    "check_all_zero_sample_weights_error": None,
    "check_clusterer_compute_labels_predict": None,
    "check_clustering": (2, 3),
    "check_complex_data": None,
    "check_dict_unchanged": (3, 2),
    "check_do_not_raise_errors_in_init_or_set_params": None,
    "check_dont_overwrite_attributes": (3, 1),
    "check_dont_overwrite_parameters": (3, 1),
    "check_dtype_object": (10, 2),
    "check_estimator_cloneable": None,
    "check_estimator_repr": None,
    "check_estimator_sparse_array": (3, 2),
    "check_estimator_sparse_matrix": (3, 2),
    "check_estimator_sparse_tag": (3, 2),
    "check_estimator_tags_renamed": None,
    "check_estimators_dtypes": (5, 2),
    "check_estimators_empty_data_messages": None,
    "check_estimators_fit_returns_self": (2, 2),
    "check_estimators_nan_inf": (3, 2),
    "check_estimators_overwrite_params": (2, 2),
    "check_estimators_partial_fit_n_features": None,
    "check_estimators_pickle": (3, 2),
    "check_estimators_unfitted": None,
    "check_f_contiguous_array_estimator": (3, 2),
    "check_fit1d": None,
    "check_fit2d_1feature": (1, 1),
    "check_fit2d_1sample": (10, 1),
    "check_fit2d_predict1d": (3, 1),
    "check_fit_check_is_fitted": (2, 2),
    "check_fit_idempotent": (2, 2),
    "check_fit_score_takes_y": (3, 2),
    "check_get_params_invariance": None,
    "check_methods_sample_order_invariance": (3, 2),
    "check_methods_subset_invariance": (3, 1),
    "check_mixin_order": None,
    "check_n_features_in": (2, 2),
    "check_n_features_in_after_fitting": (4, 2),
    "check_no_attributes_set_in_init": None,
    "check_parameters_default_constructible": None,
    "check_pipeline_consistency": (3, 2),
    "check_positive_only_tag_during_fit": (4, 2),
    "check_readonly_memmap_input": (2, 2),
    "check_sample_weight_equivalence_on_dense_data": (30, 2),
    "check_sample_weight_equivalence_on_sparse_data": (30, 2),
    "check_sample_weights_list": (3, 2),
    "check_sample_weights_not_an_array": (2, 2),
    "check_sample_weights_not_overwritten": (2, 2),
    "check_sample_weights_pandas_series": (2, 2),
    "check_sample_weights_shape": (2, 2),
    "check_set_params": None,
    "check_transformer_data_not_an_array": (3, 2),
    "check_transformer_general": (3, 2),
    "check_transformer_n_iter": (3, 2),
    "check_transformer_preserve_dtypes": (3, 2),
    "check_transformers_unfitted": None,
    "check_valid_tag_types": None,
}
# These see sparse data only, which a learned network refuses.
REFUSED = {"check_estimator_sparse_array", "check_estimator_sparse_matrix", "check_estimator_sparse_tag"}
EXPECTED_TO_FAIL = {
    "check_sample_weight_equivalence_on_dense_data": "the random draws of the initial centers differ",
    "check_sample_weight_equivalence_on_sparse_data": "sparse data are refused",
}
ARRAY_API = "check_array_api_input"  # wants a process of its own
GENERATED = [check for _, check in estimator_checks_generator(TransformerKMeans(n_clusters=2))]


def name_of(check):
    return check.func.__name__


def cases():
    for check in GENERATED:
        name = name_of(check)
        if name == ARRAY_API:
            continue
        reason = EXPECTED_TO_FAIL.get(name)
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        if name == "check_array_api_input":
            marks = [
                pytest.mark.skip(reason="needs SCIPY_ARRAY_API, and then fits nothing: see its own test")
            ]
        yield pytest.param(
            check, id=name + "-readonly" * bool(check.keywords.get("readonly_memmap")), marks=marks
        )


def learned_estimator(shape, embedding):
    config = LloydConfig(*(shape or (2, 2)), embedding)
    network = LloydTransformer(config, generator=torch.Generator().manual_seed(0))
    return TransformerKMeans(n_clusters=2, n_init=2, max_iter=5, n_steps=3, weights=network)


@pytest.fixture
def outcomes(monkeypatch):
    """What became of each fit that got as far as the network: "learned" or "refused"."""
    seen = []
    resolve, move = _learned.resolve_network, _learned._paths

    def resolving(*arguments):
        try:
            return resolve(*arguments)
        except ValueError:
            seen.append("refused")
            raise

    def moving(*arguments):
        seen.append("learned")
        return move(*arguments)

    monkeypatch.setattr(_fit, "resolve_network", resolving)
    monkeypatch.setattr(_learned, "_paths", moving)
    return seen


@allow_warnings
@pytest.mark.parametrize("embedding", ["binary", "none"])
@pytest.mark.parametrize("check", list(cases()))
def test_check_estimator_with_a_network_of_the_checks_size(check, embedding, outcomes):
    name = name_of(check)
    check(learned_estimator(SHAPES[name], embedding))
    if SHAPES[name] is None:
        assert outcomes == []
    else:
        assert set(outcomes) == {"refused" if name in REFUSED else "learned"}


def test_every_check_of_this_version_is_listed_and_none_drops_out():
    generated = {name_of(check) for check in GENERATED} - {ARRAY_API}
    assert generated <= set(SHAPES)
    missing = {name for name in set(SHAPES) - generated if hasattr(estimator_checks, name)}
    assert missing == set()
    assert set(EXPECTED_TO_FAIL) | REFUSED <= set(SHAPES)


@pytest.mark.skipif(
    ARRAY_API not in map(name_of, GENERATED), reason="this version of scikit-learn does not generate it"
)
def test_the_array_api_check_where_scipy_has_it_switched_on():
    script = """
from sklearn.utils.estimator_checks import estimator_checks_generator
from sktransclust import LloydTransformer, TransformerKMeans
from sktransclust.model import LloydConfig
learned = TransformerKMeans(n_clusters=2, max_iter=5, weights=LloydTransformer(LloydConfig(10, 2)))
ran = 0
for estimator, check in estimator_checks_generator(learned):
    if "check_array_api_input" in str(check):
        check(estimator)
        ran += 1
print("ran", ran)
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "ran 1"
