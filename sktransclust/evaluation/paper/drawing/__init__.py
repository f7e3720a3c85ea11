"""Figures from tables: a function of this package takes a table, computes medians at most, and draws."""

from collections.abc import Callable

import pandas as pd
from matplotlib.figure import Figure

from .matrices import draw_cost_grid, draw_matrix, draw_surfaces
from .steps import draw_steps, draw_steps_large, draw_steps_wrapped
from .style import save
from .tables import draw_bounds, draw_cauchy, draw_cost_table, draw_scalings
from .training import draw_training, draw_training_time

__all__ = ["DRAWINGS", "save"]

#: By the name that an experiment gives.
DRAWINGS: dict[str, Callable[[pd.DataFrame], Figure]] = {
    "training": draw_training,
    "training_time": draw_training_time,
    "steps": draw_steps,
    "steps_large": draw_steps_large,
    "steps_wrapped": draw_steps_wrapped,
    "matrix": draw_matrix,
    "surfaces": draw_surfaces,
    "cost_grid": draw_cost_grid,
    "cost_table": draw_cost_table,
    "bounds": draw_bounds,
    "cauchy": draw_cauchy,
    "scalings": draw_scalings,
}
