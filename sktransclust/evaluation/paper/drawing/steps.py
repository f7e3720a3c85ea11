"""The objective over many steps, beside Lloyd's iterations (Fig. 6, 7, 8, 12, 18)."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from .style import BLACK, grid, legend_below, new_figure, plot_curve

SIZE = 1.9
LARGER = 1.45
WRAP = 5
#: Inches that the panels of a figure fill at least: few of them are larger.
NARROWEST = 6.0
#: How much of what diverges is shown, as a multiple of the range of Lloyd's iterations.
ROOM_ABOVE, ROOM_BELOW = 0.6, 0.4


def draw_steps(table: pd.DataFrame) -> Figure:
    """Draw a row of panels, or the matrix of training families by test families."""
    return _draw(table, SIZE)


def draw_steps_large(table: pd.DataFrame) -> Figure:
    """Draw the same, larger."""
    return _draw(table, SIZE * LARGER)


def _draw(table: pd.DataFrame, size: float) -> Figure:
    matrix = table["trained_on"].nunique() > 1
    down = list(table["test"].unique()) if matrix else [None]
    across_column = "trained_on" if matrix else "stepping" if table["stepping"].nunique() > 1 else "test"
    across = list(table[across_column].unique())
    size = max(size, NARROWEST / len(across))
    figure = new_figure(size * len(across) + 0.6, size * len(down) + 0.9)
    axes = grid(figure, len(down), len(across), sharex=True, sharey="row" if matrix else False)
    for test, row in zip(down, axes, strict=True):
        for value, one in zip(across, row, strict=True):
            rows = table[table[across_column] == value]
            if test is not None:
                rows = rows[rows["test"] == test]
            _panel(one, rows)
            if test == down[0]:
                one.set_title(f"trained: {value}" if matrix else str(value))
        row[0].set_ylabel(f"test: {test}" if matrix else "mean log inertia")
    for one in axes[-1]:
        one.set_xlabel("step")
    legend_below(figure, axes.ravel())
    return figure


def draw_steps_wrapped(table: pd.DataFrame) -> Figure:
    """Draw a panel a test, in rows of five."""
    tests = list(table["test"].unique())
    rows = -(-len(tests) // WRAP)
    figure = new_figure(SIZE * WRAP + 0.6, SIZE * rows + 0.9)
    axes = grid(figure, rows, WRAP)
    for one in axes.ravel()[len(tests) :]:
        one.set_axis_off()
    for test, one in zip(tests, axes.ravel(), strict=False):
        _panel(one, table[table["test"] == test])
        one.set_title(str(test))
        one.set_xlabel("step")
    for row in axes:
        row[0].set_ylabel("mean log inertia")
    legend_below(figure, axes.ravel())
    return figure


def _panel(axes, rows: pd.DataFrame) -> None:  # type: ignore[no-untyped-def]
    """Draw all curves of a panel, with limits around what does not diverge."""
    for curve, values in rows.groupby("model", sort=False):
        plot_curve(axes, values[np.isfinite(values["value"])], str(curve))
    black = rows[rows["model"].isin(list(BLACK))]["value"]
    low = rows.loc[np.isfinite(rows["value"]), "value"].min()
    high, spread = black.max(), max(black.max() - min(low, black.min()), 1e-3)
    axes.set_ylim(low - ROOM_BELOW * 0.2 * spread, high + ROOM_ABOVE * spread)
