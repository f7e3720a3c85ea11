"""Training curves: the smoothed loss above, Eq. 20 below (Fig. 2, 4, 10, 11, 13 to 17)."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.figure import Figure, SubFigure

from .style import grid, legend_below, log_limits, new_figure, panels, plot_curve

PANEL = ("family", "d", "k", "n", "tau", "learning_rate")
PANEL_WIDTH, BLOCK_HEIGHT = 1.75, 3.4
METRICS = {"loss": "smoothed loss", "relative_inertia": "Eq. 20"}
#: Most panels side by side.
MAX_COLUMNS = 5


def draw_training(table: pd.DataFrame) -> Figure:
    """Draw curves over the training steps."""
    return _draw(table, "training step", lambda rows: rows)


def draw_training_time(table: pd.DataFrame) -> Figure:
    """Draw curves over the time, the steps times the measured seconds a step of the panel's models."""
    return _draw(table, "seconds", _over_time)


def _over_time(rows: pd.DataFrame) -> pd.DataFrame:
    seconds = rows[rows.metric == "seconds_a_step"].set_index("model")["value"]
    curves = rows[rows.metric != "seconds_a_step"]
    return curves.assign(step=curves["step"] * curves["model"].map(seconds))


def _draw(table: pd.DataFrame, x_label: str, prepare: Callable[[pd.DataFrame], pd.DataFrame]) -> Figure:
    blocks = {str(name): rows for name, rows in table.groupby("block", sort=False)}
    counts = [len(list(panels(rows, PANEL))) for rows in blocks.values()]
    side_by_side = sum(counts) <= MAX_COLUMNS and len(counts) > 1
    if side_by_side:
        figure = new_figure(PANEL_WIDTH * sum(counts) + 0.8, BLOCK_HEIGHT + 0.4)
        parts = figure.subfigures(1, len(counts), width_ratios=counts, squeeze=False)[0]
    else:
        figure = new_figure(PANEL_WIDTH * max(counts) + 0.8, BLOCK_HEIGHT * len(counts) + 0.4)
        parts = figure.subfigures(len(counts), 1, squeeze=False)[:, 0]
    widths = counts if side_by_side else [max(counts)] * len(counts)
    drawn = [
        _block(part, *block, width, x_label, prepare)
        for part, block, width in zip(parts, blocks.items(), widths, strict=True)
    ]
    legend_below(figure, np.concatenate([axes.ravel() for axes in drawn]))
    return figure


def _block(
    part: SubFigure,
    title: str,
    rows: pd.DataFrame,
    width: int,
    x_label: str,
    prepare: Callable[[pd.DataFrame], pd.DataFrame],
) -> np.ndarray:
    found = list(panels(rows, PANEL))
    part.suptitle(title, fontsize=9, fontweight="bold")
    axes = grid(part, 2, width, sharex="col", sharey="row")
    for one in axes[:, len(found) :].ravel():
        one.set_axis_off()
    for row, (metric, label) in zip(axes, METRICS.items(), strict=True):
        for one, (name, panel) in zip(row, found, strict=False):
            ready = prepare(panel)
            for curve, values in ready[ready.metric == metric].groupby("model", sort=False):
                plot_curve(one, values, str(curve))
            if metric == "loss":
                one.set_title(name)
            else:
                one.axhline(1, color="black", linestyle=":", linewidth=1)
                one.set_xlabel(x_label)
        row[0].set_ylabel(label)
        values = rows.loc[rows.metric == metric, "value"]
        if metric == "relative_inertia":  # the line at 1 is always in sight
            values = pd.concat([values, pd.Series([1.0])])
        log_limits(row[0], values)
    return axes
