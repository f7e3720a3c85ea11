"""Each example runs as a reader would run it: a process of its own, outside the checkout."""

import math
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np

EXAMPLES = Path(__file__).parents[1] / "examples"


def run_example(name, tmp_path, *settings):
    """Run an example in an empty folder and return what it printed."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *settings]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def number_after(label, printed):
    """Return the first number behind a label."""
    return float(re.search(re.escape(label) + r"\D*?(-?[\d.]+(?:e[+-]\d+)?)", printed).group(1))


def test_photograph_is_reduced_to_the_inertia_that_kmeans_reaches_from_the_same_palette(tmp_path):
    printed = run_example("plot_quantize_photo.py", tmp_path, "--colors", "6", "--stride", "8")

    assert number_after("n =", printed) == 54 * 80  # china.jpg has 427 x 640 pixels
    assert (number_after("d =", printed), number_after("k =", printed)) == (3, 6)
    rows = dict(
        re.findall(r"^(TransformerKMeans|KMeans) +\d+ +([\d.]+) +[\d.]+$", printed, flags=re.MULTILINE)
    )
    assert math.isclose(float(rows["TransformerKMeans"]), float(rows["KMeans"]), rel_tol=1e-9)
    assert number_after("equal labels:", printed) == 100


def test_picture_of_the_photograph_shows_no_more_colors_than_asked_for(tmp_path):
    run_example("plot_quantize_photo.py", tmp_path, "--colors", "3", "--stride", "8", "--out", "three.png")

    picture = matplotlib.image.imread(tmp_path / "three.png")[..., :3]
    assert picture.shape == (440, 1100, 3)
    palette = np.unique(picture[-30:-20, 100:1000].reshape(-1, 3), axis=0)  # a band of the palette's strip
    assert len(palette) == 3


def test_attention_matrices_move_the_centers_as_kmeans_does(tmp_path):
    printed = run_example("plot_attention_steps.py", tmp_path, "--layers", "3", "--samples", "30")

    inertias = [float(x) for x in re.findall(r"layer \d: inertia ([\d.]+)", printed)]
    assert len(inertias) == 3
    assert inertias == sorted(inertias, reverse=True)
    assert number_after("largest difference from the network's centers:", printed) < 1e-12
    assert number_after("largest difference from KMeans's centers:", printed) < 1e-12
    assert matplotlib.image.imread(tmp_path / "attention_steps.png").shape == (640, 690, 4)


def test_learned_steps_leave_the_start_where_lloyd_is_stuck(tmp_path):
    printed = run_example("plot_escape.py", tmp_path, "--starts", "10")

    ways = dict(
        re.findall(r"^(Lloyd|learned): +from inertia ([\d.]+ to [\d.]+)$", printed, flags=re.MULTILINE)
    )
    (start, stuck), (same_start, escaped) = (
        map(float, ways[name].split(" to ")) for name in ("Lloyd", "learned")
    )
    assert start == same_start > stuck > 1.5 * escaped
    assert number_after("learned lower:", printed) + number_after("learned higher:", printed) <= 10
    assert matplotlib.image.imread(tmp_path / "escape.png").shape == (440, 1300, 4)


def test_centers_leave_a_bad_optimum(tmp_path):
    printed = run_example("plot_universal.py", tmp_path)

    stuck, moved, universal = (
        number_after(f"{name}:", printed) for name in ("exact", "one move", "universal")
    )
    assert max(moved, universal) < 0.6 * stuck
    assert matplotlib.image.imread(tmp_path / "universal.png").shape == (360, 1300, 4)
