"""Timings as a CSV file, as tables in text, and as a chart made from the CSV file."""

from __future__ import annotations

import csv
import importlib.metadata
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .limits import Limits
from .measure import Settings, Timing
from .peers import OURS, REFERENCE

_PACKAGES = (
    "sktransclust",
    "scikit-learn",
    "scikit-learn-intelex",
    "faiss-cpu",
    "fastkmeans",
    "numpy",
    "torch",
)


def processor_name() -> str:
    """Return the processor's name, as far as the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def made_with(limits: Limits, settings: Settings, n_threads: int) -> str:
    """Say which versions ran, on what, and how fast that is."""
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{package} absent")
    rates = ", ".join(f"{dtype} {rate / 1e9:.0f} GFLOP/s" for dtype, rate in limits.flops.items())
    machine = f"{processor_name()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    return "; ".join(
        [
            *found,
            f"Python {platform.python_version()}",
            machine,
            f"{n_threads} threads, {settings.clock} clock",
            f"max_iter {settings.max_iter}, seed {settings.seed}",
            f"limits: {rates}, copy {limits.bytes / 1e9:.1f} GB/s",
        ]
    )


def as_row(timing: Timing, origin: str) -> dict[str, Any]:
    """Return a line of the CSV file."""
    cell = timing.cell
    return {
        "data": cell.data,
        "n_samples": cell.n_samples,
        "n_features": cell.n_features,
        "n_clusters": cell.n_clusters,
        "dtype": cell.dtype,
        "task": timing.task,
        "peer": timing.peer,
        "seconds": f"{timing.seconds:.6g}",
        "n_iter": timing.n_iter,
        "rounds": timing.rounds,
        "agreement": f"{timing.agreement:.6g}",
        "share_of_limit": f"{timing.share:.4g}",
        "made_with": origin,
    }


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write a CSV file."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read a CSV file."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def compare(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Set ours against the best peer: one line for each cell and task.

    Parameters
    ----------
    rows : iterable of dict
        Lines of the CSV file.

    Returns
    -------
    lines : list of dict
        With "cell", "dtype", "task"; "ours", "lloyd" and "seconds", of ours, of scikit-learn's and of the
        fastest other one, whose name is "best"; "factor" (how many times as fast as that ours is) and "share"
        (of the machine's limit).
    """
    groups: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for row in rows:
        cell = f"{row['data']} {row['n_samples']}x{row['n_features']}, {row['n_clusters']}"
        groups.setdefault((cell, row["dtype"], row["task"]), {})[row["peer"]] = row
    lines = []
    for (cell, dtype, task), by_peer in groups.items():
        ours = float(by_peer[OURS.name]["seconds"])
        others = {name: float(row["seconds"]) for name, row in by_peer.items() if name != OURS.name}
        best = min(others, key=lambda name: others[name])
        lines.append(
            {
                "cell": cell,
                "dtype": dtype,
                "task": task,
                "ours": ours,
                "lloyd": others[REFERENCE.name],
                "best": best,
                "seconds": others[best],
                "factor": others[best] / ours,
                "share": float(by_peer[OURS.name]["share_of_limit"]),
            }
        )
    return lines


def format_line(line: dict[str, Any]) -> str:
    """Return a line of `compare` as text."""
    return (
        f"{line['cell']:26} {line['dtype']:8} {line['task']:10} {1e3 * line['ours']:11.2f} "
        f"{1e3 * line['lloyd']:11.2f} {1e3 * line['seconds']:11.2f} {line['best']:21} "
        f"{line['factor']:7.2f} {line['share']:6.2f}"
    )


HEADING = (
    f"{'cell (n x d, k)':26} {'dtype':8} {'task':10} {'ours ms':>11} {'lloyd ms':>11} {'best ms':>11} "
    f"{'best peer':21} {'factor':>7} {'share':>6}"
)


def summary(lines: Iterable[dict[str, Any]]) -> list[str]:
    """Return the geometric mean and the least of the factors of each task, as text."""
    factors: dict[str, list[float]] = {}
    for line in lines:
        factors.setdefault(line["task"], []).append(line["factor"])
    return [
        f"{task}: {statistics.geometric_mean(found):.2f} times as fast as the best peer "
        f"(geometric mean of {len(found)}), {min(found):.2f} at least"
        for task, found in factors.items()
    ]


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Return b of the least-squares fit of ``a * size**b`` to times, in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def draw_chart(table: Path, picture: Path) -> None:
    """Draw the factors of a CSV file as bars, one group a cell; nothing is measured."""
    from matplotlib import pyplot as plt

    lines = compare(read_rows(table))
    tasks = list(dict.fromkeys(line["task"] for line in lines))
    cells = list(dict.fromkeys((line["cell"], line["dtype"]) for line in lines))
    figure, axes = plt.subplots(figsize=(8, 0.42 * len(cells) + 1.2), layout="constrained")
    height = 0.8 / len(tasks)
    for number, task in enumerate(tasks):
        factor = {(line["cell"], line["dtype"]): line["factor"] for line in lines if line["task"] == task}
        at = [row + height * number for row, cell in enumerate(cells) if cell in factor]
        axes.barh(at, [factor[cell] for cell in cells if cell in factor], height, label=task)
    names = [cell if dtype == "float32" else f"{cell} ({dtype})" for cell, dtype in cells]
    axes.set_yticks([row + height * (len(tasks) - 1) / 2 for row in range(len(cells))], names)
    axes.invert_yaxis()
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.minorticks_off()
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10]
    axes.set_xticks([tick for tick in ticks if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("times as fast as the fastest other program")
    axes.legend()
    figure.savefig(picture, dpi=120)
    plt.close(figure)
