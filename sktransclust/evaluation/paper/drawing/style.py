"""What all figures share: colours, line styles, and how a figure is saved."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from ..tables import read_table

#: Told apart with any colour vision, and in grey: Okabe and Ito's blue, vermillion and green.
COLORS = {"OH": "#0072B2", "BN": "#D55E00", "NA": "#009E73"}
LINES = {"NE": (0, (4, 1.5)), "L2": "solid"}
BLACK = {
    "Lloyd": "solid",
    "Lloyd from k-means++": (0, (5, 2)),
    "KMeans, n_init=1": (0, (1, 1)),
    "KMeans, n_init=10": (0, (5, 1, 1, 1)),
}
LABELS = {"tau": "tau", "family": "", "learning_rate": "learning rate", "n": "n", "d": "d", "k": "k"}
RC: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.linewidth": 0.3,
    "grid.color": "0.85",
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "none",
    "svg.hashsalt": "sktransclust",
}
DPI = 130
LEGEND_COLUMN, LEGEND_LETTER = 0.7, 0.07  # inches a column has, and more for each letter


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure, in inches, that no window manager knows."""
    return Figure(figsize=(width, height), layout="constrained")


def save(draw: Callable[[pd.DataFrame], Figure], table: Path) -> None:
    """Draw a table in the common style and save it beside the table, the same bytes for the same table."""
    with mpl.rc_context(RC):
        figure = draw(read_table(table))
        figure.savefig(table.with_suffix(".svg"), metadata={"Date": None})
        figure.set_layout_engine("none")  # what it found for the first file serves the second
        figure.savefig(table.with_suffix(".png"), dpi=DPI, metadata={"Software": None})


def grid(parent: Figure | SubFigure, rows: int, columns: int, **share: Any) -> np.ndarray:
    """Axes (rows, columns) in the common style."""
    axes: np.ndarray = parent.subplots(rows, columns, squeeze=False, **share)
    return axes


def plot_curve(axes: Axes, rows: pd.DataFrame, curve: str, x: str = "step") -> None:
    """Draw the median over the seeds, and the quartiles as a ribbon."""
    if rows.empty:
        return
    quartiles = rows.groupby(x)["value"].quantile([0.25, 0.5, 0.75]).unstack()
    style = line_style(curve)
    axes.plot(quartiles.index, quartiles[0.5], label=curve, **style)
    if rows["seed"].nunique() > 1:
        axes.fill_between(
            quartiles.index, quartiles[0.25], quartiles[0.75], color=style["color"], alpha=0.2, linewidth=0
        )


def line_style(curve: str) -> dict:
    """Colour by code, line by smoothing; everything without learning is black."""
    if curve in BLACK:
        return {"color": "black", "linestyle": BLACK[curve], "linewidth": 1.0}
    code, smoothing = curve.split(":")
    return {"color": COLORS[code], "linestyle": LINES[smoothing]}


def legend_below(figure: Figure, axes: Iterable[Axes]) -> None:
    """Put one legend for all axes below them."""
    found: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    width = LEGEND_COLUMN + LEGEND_LETTER * max(map(len, found))
    columns = max(1, min(len(found), int(figure.get_figwidth() / width)))
    figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=columns)


def panels(table: pd.DataFrame, columns: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield title and rows of each panel, in the table's order; a title names what varies."""
    varied = [column for column in columns if table[column].nunique() > 1]
    if not varied:
        yield "", table
        return
    for values, rows in table.groupby(varied, sort=False):
        yield ", ".join(map(_name, varied, values)), rows


def _name(column: str, value: object) -> str:
    label = LABELS.get(column, "")
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{label} = {text}" if label else text


def log_limits(axes: Axes, values: pd.Series, widest: float = 1e4) -> None:
    """Use a log axis over all positive values, but at most a factor `widest` above the smallest."""
    positive = values[np.isfinite(values) & (values > 0)]
    axes.set_yscale("log")
    if len(positive):
        low, high = positive.min(), min(positive.max(), positive.min() * widest)
        margin = (high / low) ** 0.05 if high > low else 1.1
        axes.set_ylim(low / margin, high * margin)
        if math.log10(high / low) < 1.2:
            _few_plain_ticks(axes, high / low)


def _few_plain_ticks(axes: Axes, ratio: float) -> None:
    """Within about a decade, write out the values that the powers of ten leave out."""
    evenly = mpl.ticker.MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])  # leaves the lower part empty if it is wide
    axes.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)) if ratio > 4.5 else evenly)
    axes.yaxis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
    axes.yaxis.set_minor_locator(mpl.ticker.NullLocator())
