"""scikit-learn's estimator checks: those of check_estimator and those it runs only on its own estimators."""

import inspect
import os
import subprocess
import sys

import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from sktransclust import TransformerKMeans

SMALL = {"n_clusters": 2, "n_init": 2, "max_iter": 5}
CONFIGURATIONS = [
    TransformerKMeans(),
    TransformerKMeans(**SMALL, backend="dense"),
    TransformerKMeans(**SMALL, backend="dense", embedding="onehot"),
    TransformerKMeans(**SMALL, backend="streamed"),
    TransformerKMeans(**SMALL, backend="streamed", algorithm="elkan", init="random"),
    TransformerKMeans(**SMALL, copy_x=False, tol=0),
]

# KMeans fails these two as well: drawing by weight and drawing from repeated rows consume a seed differently.
EXPECTED_TO_FAIL = {
    "check_sample_weight_equivalence_on_dense_data": "the random draws of the initial centers differ",
    "check_sample_weight_equivalence_on_sparse_data": "the random draws of the initial centers differ",
}

# The argument is scikit-learn's since 1.8; before that, pytest's xfail_strict = true has the same effect.
HAS_STRICT = "xfail_strict" in inspect.signature(parametrize_with_checks).parameters
STRICT = {"xfail_strict": True} if HAS_STRICT else {}

# Said on purpose on the checks' few samples, one cluster and mixtures of arrays and frames.
ALLOWED_WARNINGS = [
    "ignore:Number of distinct clusters:sklearn.exceptions.ConvergenceWarning",
    "ignore:algorithm='elkan' doesn't make sense for a single cluster:RuntimeWarning",
    "ignore:X does not have valid feature names:UserWarning",
    "ignore:X has feature names, but TransformerKMeans was fitted without feature names:UserWarning",
]
allow_warnings = pytest.mark.filterwarnings(*ALLOWED_WARNINGS)

PARAMETRIZED = parametrize_with_checks(
    CONFIGURATIONS, expected_failed_checks=lambda estimator: EXPECTED_TO_FAIL, **STRICT
)
NAMES, PAIRS = PARAMETRIZED.args  # Before 1.9 the pairs are a generator, which pytest is about to refuse.


@allow_warnings
@pytest.mark.parametrize(NAMES, list(PAIRS), **PARAMETRIZED.kwargs)
def test_check_estimator(estimator, check):
    check(estimator)


def test_an_unexpected_pass_of_a_check_is_a_failure(pytestconfig):
    assert pytestconfig.getini("xfail_strict") is True


OWN_CHECKS = [
    "check_all_zero_sample_weights_error",
    "check_dataframe_column_names_consistency",
    "check_get_feature_names_out_error",
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
    "check_inplace_ensure_writeable",
    "check_param_validation",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
]


@allow_warnings
@pytest.mark.parametrize("name", OWN_CHECKS)
def test_checks_that_sklearn_runs_on_itself(name):
    if not hasattr(estimator_checks, name):
        pytest.skip(f"this version of scikit-learn has no {name}")
    getattr(estimator_checks, name)("TransformerKMeans", TransformerKMeans(**SMALL))


def test_check_inplace_ensure_writeable_when_asked_not_to_copy():
    estimator_checks.check_inplace_ensure_writeable(
        "TransformerKMeans", TransformerKMeans(**SMALL, copy_x=False)
    )


def array_api_checks(estimator):
    return [
        pair for pair in estimator_checks.estimator_checks_generator(estimator) if "array_api" in str(pair[1])
    ]


def test_the_array_api_check_passes_where_scipy_has_it_switched_on():
    expected = len(array_api_checks(TransformerKMeans(**SMALL)))
    if not expected:
        pytest.skip("this version of scikit-learn has no array API check for this estimator")
    script = """
from sklearn.utils.estimator_checks import estimator_checks_generator
from sktransclust import TransformerKMeans
ran = 0
for estimator, check in estimator_checks_generator(TransformerKMeans(n_clusters=2, max_iter=5)):
    if "array_api" in str(check):
        check(estimator)
        ran += 1
print("ran", ran)
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"ran {expected}"
