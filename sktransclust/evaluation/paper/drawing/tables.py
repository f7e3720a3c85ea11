"""Tables as pictures (Tab. 1 to 3)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from .style import new_figure

ROW_HEIGHT = 0.24


def draw_cost_table(table: pd.DataFrame) -> Figure:
    """Write OH / BN and the ratio for each k, with the attention matrices and fused."""
    medians = table.groupby(["k", "metric", "model"])["value"].median()
    lines = []
    for k in table["k"].unique():
        line = [str(k)]
        for metric in ("forward_train", "backward", "memory"):
            for suffix in ("", " fused"):
                oh, bn = (medians[k, metric, f"{code}{suffix}"] for code in ("OH", "BN"))
                ratio = f"{1 - bn / oh:.1%}" if metric == "memory" else f"{oh / bn:.2f}x"
                line.append(f"{oh:.4g} / {bn:.4g} [{ratio}]")
        lines.append(line)
    header = ["k"] + [
        f"{name}{suffix}\nOH / BN"
        for name in ("forward, ms", "backward, ms", "memory, MB")
        for suffix in ("", ", fused")
    ]
    return _table(header, lines, [0.4] + [1.75] * 6)


def draw_bounds(table: pd.DataFrame) -> Figure:
    """Write what was measured beside its bound."""
    wide = table.pivot_table(
        index=["attention", "quantity"], columns=["d", "model", "metric"], values="value", sort=False
    )
    networks = list(dict.fromkeys(column[:2] for column in wide.columns))
    header = ["attention", "quantity"] + [f"{model}\nmeasured / bound" for _, model in networks]
    lines = [
        [*map(str, index), *(_pair(row, network) for network in networks)] for index, row in wide.iterrows()
    ]
    return _table(header, lines, [1.1, 0.9] + [1.5] * len(networks))


def draw_cauchy(table: pd.DataFrame) -> Figure:
    """Write Eq. 20 and the log objective after many steps less Lloyd's, for each scaling of the tasks."""
    medians = table.groupby(["family", "scaling", "model", "metric"], sort=False)["value"].median()
    header = ["family", "scaling", "model", "Eq. 20", "last step:\nlog inertia\nless Lloyd's", "middle range"]
    lines = []
    for family, scaling, model in dict.fromkeys(index[:3] for index in medians.index):
        numbers = medians[family, scaling, model]
        metrics = ("relative_inertia", "log_inertia_less_lloyd", "middle_range")
        lines.append([family, scaling, model, *(f"{numbers[metric]:.3g}" for metric in metrics)])
    return _table(header, lines, [0.8, 1.1, 0.8, 0.9, 1.2, 1.2])


def draw_scalings(table: pd.DataFrame) -> Figure:
    """Write what the samples of each family look like, for each scaling of the tasks."""
    metrics = {
        "middle_range": "middle range",
        "margin": "margin, in tau",
        "smoothed": "smoothed /\ntrue loss",
        "far_share": "share of the\nfarthest 1 %",
        "gain": "random start /\nLloyd",
    }
    medians = table.groupby(["family", "scaling", "metric"], sort=False)["value"].median().unstack()
    lines = [
        [*index, *(f"{row[metric]:.4g}" for metric in metrics)]
        for index, row in medians.iterrows()
        if isinstance(index, tuple)
    ]
    return _table(["family", "scaling", *metrics.values()], lines, [0.8, 1.1] + [1.0] * len(metrics))


def _pair(row: pd.Series, network: tuple) -> str:
    return f"{row[(*network, 'measured')]:.3g} / {row[(*network, 'bound')]:.3g}"


def _table(header: Sequence[str], lines: Sequence[Sequence[str]], widths: Sequence[float]) -> Figure:
    total = float(np.sum(widths))
    figure = new_figure(total, ROW_HEIGHT * (len(lines) + 2.5))
    axes = figure.add_subplot()
    axes.set_axis_off()
    drawn = axes.table(
        cellText=[list(line) for line in lines],
        colLabels=list(header),
        colWidths=[width / total for width in widths],
        loc="center",
        cellLoc="center",
    )
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(7)
    drawn.scale(1, 1.25)
    for (row, _), cell in drawn.get_celld().items():
        cell.set_linewidth(0.4)
        if row == 0:
            cell.set_height(cell.get_height() * 1.7)
            cell.set_text_props(weight="bold")
    return figure
