"""Pictures of numbers: dissimilarities of tasks, loss surfaces, gains in cost (Fig. 1, 3, 5, 9, 19)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .style import grid, new_figure

COST_TITLES = {
    "forward_train": "forward (train), ms",
    "backward": "backward, ms",
    "memory": "memory (train), MB",
    "forward_eval": "forward (eval), ms",
}
#: Gains, in percent, at which the shades of Fig. 1 end.
LARGEST_GAIN = 60


def draw_matrix(table: pd.DataFrame) -> Figure:
    """Draw the dissimilarity of every pair of tasks, in blocks of families; light is near."""
    families = list(table["family"].unique())
    size = table.groupby("family")["task"].nunique().iloc[0]
    values = table["value"].to_numpy().reshape(len(families) * size, -1)
    figure = new_figure(4.6, 3.8)
    axes = grid(figure, 1, 1)[0, 0]
    image = axes.imshow(values, cmap="YlGnBu", interpolation="nearest")
    figure.colorbar(image, ax=axes, label="earth mover's distance")
    middles = np.arange(len(families)) * size + (size - 1) / 2
    axes.set_xticks(middles, families, rotation=30)
    axes.set_yticks(middles, families)
    axes.grid(visible=False)
    for border in np.arange(1, len(families)) * size - 0.5:
        axes.axhline(border, color="0.5", linewidth=0.5)
        axes.axvline(border, color="0.5", linewidth=0.5)
    return figure


def draw_surfaces(table: pd.DataFrame) -> Figure:
    """Draw the smoothed loss over two directions, or its gap to the true loss where families differ."""
    gap = table["family"].nunique() > 1
    found = list(table.groupby(["d", "family", "model"], sort=False))
    figure = new_figure(2.5 * len(found) + 0.3, 2.7)
    axes = [figure.add_subplot(1, len(found), number + 1, projection="3d") for number in range(len(found))]
    for one, ((d, family, model), rows) in zip(axes, found, strict=True):
        wide = rows.pivot(index=["a", "b"], columns="metric", values="value")
        values = wide["smoothed"] - wide["true"] if gap else wide["smoothed"]
        surface = values.unstack()
        a, b = np.meshgrid(surface.index, surface.columns, indexing="ij")
        one.plot_surface(a, b, surface.to_numpy(), cmap="viridis", linewidth=0, rcount=60, ccount=60)
        one.set_title(f"{family}, {model}" if gap else f"d = {d}, {model}")
        one.tick_params(labelsize=6, pad=-2)
        one.set_xticks([-1, 0, 1])
        one.set_yticks([-1, 0, 1])
        one.zaxis.set_major_locator(MaxNLocator(4))
    return figure


def draw_cost_grid(table: pd.DataFrame) -> Figure:
    """Draw the relative gains of BN over OH; each cell also has OH's own number."""
    figure = new_figure(12, 6.4)
    axes = grid(figure, 2, len(COST_TITLES))
    for row, suffix in zip(axes, ("", " fused"), strict=True):
        for one, (metric, title) in zip(row, COST_TITLES.items(), strict=True):
            _gains(one, table[table.metric == metric], suffix)
            one.set_title(f"{title}{',' if suffix else ''}{suffix}")
            one.set_xlabel("k")
        row[0].set_ylabel("d")
    return figure


def _gains(axes: Axes, table: pd.DataFrame, suffix: str) -> None:
    medians, means, deviations = (
        table.groupby(["d", "k", "model"])["value"].agg(name).unstack("model")
        for name in ("median", "mean", "std")
    )
    gain = (1 - medians[f"BN{suffix}"] / medians[f"OH{suffix}"]).unstack() * 100
    mean, deviation = (part[f"OH{suffix}"].unstack() for part in (means, deviations))
    axes.imshow(gain, cmap="PRGn", vmin=-LARGEST_GAIN, vmax=LARGEST_GAIN, aspect="auto")
    axes.set_xticks(range(gain.shape[1]), gain.columns)
    axes.set_yticks(range(gain.shape[0]), gain.index)
    axes.grid(visible=False)
    for i, j in np.ndindex(gain.shape):
        spread = deviation.iat[i, j]
        small = _short(mean.iat[i, j]) + ("" if np.isnan(spread) else f"±{_short(spread)}")
        color = "white" if abs(gain.iat[i, j]) > 0.7 * LARGEST_GAIN else "black"
        axes.text(
            j, i, f"{gain.iat[i, j]:+.0f}%\n{small}", ha="center", va="center", fontsize=5.5, color=color
        )


def _short(value: float) -> str:
    """Write two or three digits, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"
