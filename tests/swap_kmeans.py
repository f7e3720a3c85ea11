"""Pytest plugin: run scikit-learn's own tests of KMeans on TransformerKMeans.

Only for a pytest process of its own (``python -m pytest -p swap_kmeans --pyargs ...``): importing this module
changes nothing, loading it as a plugin replaces the class in scikit-learn's namespaces for that process.
"""

import pytest
import sklearn.cluster
import sklearn.cluster._kmeans

from sktransclust import TransformerKMeans

REFERENCE = sklearn.cluster.KMeans
BANNER = f"KMeans under test: {TransformerKMeans.__module__}.{TransformerKMeans.__qualname__}"


def pytest_configure(config):
    sklearn.cluster.KMeans = TransformerKMeans
    sklearn.cluster._kmeans.KMeans = TransformerKMeans


def pytest_report_header(config):
    return BANNER


def pytest_collection_finish(session):
    """Refuse to run a module that holds scikit-learn's class under any name."""
    for module in {item.module for item in session.items}:
        kept = any(value is REFERENCE for value in vars(module).values())
        if kept or getattr(module, "KMeans", None) is not TransformerKMeans:
            raise pytest.UsageError(f"{module.__name__} does not test TransformerKMeans")


def pytest_itemcollected(item):
    """Refuse a parameter that holds scikit-learn's class."""
    if hasattr(item, "callspec") and any(value is REFERENCE for value in item.callspec.params.values()):
        raise pytest.UsageError(f"{item.nodeid} does not test TransformerKMeans")
