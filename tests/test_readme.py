"""The README's code does what the README says."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.cluster import KMeans

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_drop_in_gives_the_labels_of_kmeans(capsys):
    names = {}
    exec(CODE[0], names)

    expected = KMeans(n_clusters=3, random_state=0).fit(names["X"])
    np.testing.assert_array_equal(names["model"].labels_, expected.labels_)
    assert capsys.readouterr().out.endswith(f" {names['model'].inertia_}\n")


def test_learned_steps_end_where_the_comments_say(capsys):
    exec(CODE[1], {})

    claimed = [float(number) for number in re.findall(r"# (\d+)", CODE[1])]
    printed = [float(line) for line in capsys.readouterr().out.split()]
    np.testing.assert_allclose(printed, claimed, atol=0.5)


@pytest.mark.parametrize("path", re.findall(r"(?:docs|examples)/[\w/]+\.\w+", README))
def test_files_that_the_readme_names_exist(path):
    assert (ROOT / path).is_file()
