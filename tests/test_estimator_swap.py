"""scikit-learn's own tests of KMeans, run on TransformerKMeans in a process of their own, none deselected."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import sklearn
import sklearn.cluster

from sktransclust import TransformerKMeans

SUITE = "sklearn.cluster.tests.test_k_means"
BANNER = "KMeans under test: sktransclust.estimator.TransformerKMeans"

# What KMeans itself gets; a version that is not listed is measured beside ours.
COUNTS_OF_KMEANS = {version: {"passed": 264, "skipped": 18} for version in ("1.6.1", "1.9.1")}


def run_suite(folder, *, swapped, select="", **environment):
    """Run scikit-learn's tests outside our configuration and return (closing counts, whole output)."""
    configuration = folder / "pytest.ini"
    configuration.write_text("[pytest]\n")
    ours = ("PYTEST_", "SKLEARN_", "PYTHONWARNINGS")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", "pytest", "-c", str(configuration), "--rootdir", str(folder)]
    command += ["-p", "no:cacheprovider", "-p", "swap_kmeans"] if swapped else ["-p", "no:cacheprovider"]
    command += ["--pyargs", SUITE + select]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**inherited, "PYTHONPATH": os.pathsep.join(paths), **environment},
        capture_output=True,
        text=True,
    )
    output = done.stdout + done.stderr
    closing = done.stdout.rstrip().rsplit("\n", 1)[-1]
    counts = {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", closing.split(" in ")[0])}
    return {word: number for word, number in counts.items() if not word.startswith("warning")}, output


def test_sklearn_own_kmeans_suite_counts_as_for_kmeans(tmp_path):
    expected = COUNTS_OF_KMEANS.get(sklearn.__version__)
    if expected is None:
        expected, output = run_suite(tmp_path, swapped=False)
        assert BANNER not in output
        assert set(expected) <= {"passed", "skipped"}, output
    counts, output = run_suite(tmp_path, swapped=True)
    assert BANNER in output
    assert counts == expected, output


def test_sklearn_own_float32_tests_of_predict_pass_as_well(tmp_path):
    counts, output = run_suite(
        tmp_path, swapped=True, select="::test_kmeans_predict", SKLEARN_RUN_FLOAT32_TESTS="1"
    )
    assert BANNER in output
    assert set(counts) == {"passed"}, output
    assert counts["passed"] >= 36, output


def test_the_plugin_refuses_a_module_that_kept_sklearns_class(tmp_path):
    (tmp_path / "test_kept.py").write_text(
        "from sklearn.cluster import KMeans\n"
        "from swap_kmeans import REFERENCE as Kept\n"
        "def test_nothing_of_ours():\n"
        "    assert Kept().fit([[0.0]] * 9)\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "swap_kmeans", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "test_kept does not test TransformerKMeans" in done.stdout + done.stderr


def test_this_process_keeps_sklearns_own_class():
    assert sklearn.cluster.KMeans.__module__ == "sklearn.cluster._kmeans"
    assert not issubclass(sklearn.cluster.KMeans, TransformerKMeans)
