"""``sktransclust bench``: time fits and predictions beside other k-means programs."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported where used, so that --help is fast
    from ..evaluation.speed.limits import Limits
    from ..evaluation.speed.measure import Settings
    from ..evaluation.speed.peers import Peer


def add_bench(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    bench = commands.add_parser("bench", help="time fits and predictions beside other k-means programs")
    bench.add_argument("--out", metavar="FILE.csv", type=Path, help="write every timing to this file")
    bench.add_argument(
        "--chart",
        nargs=2,
        metavar=("FILE.csv", "PICTURE"),
        type=Path,
        help="only draw and print a file's timings",
    )
    bench.add_argument("--quick", action="store_true", help="tiny problems, for a look at how it works")
    bench.add_argument("--growth", action="store_true", help="also time against n, d and k, with exponents")
    bench.add_argument("--threads", type=int, help="of everyone; as many as PyTorch takes by default")
    bench.add_argument("--cells", type=int, nargs="+", metavar="I", help="only these problems, from 0")
    bench.add_argument("--tasks", nargs="+", metavar="TASK", help="of fit, predict, k-means++, '10 starts'")
    bench.add_argument("--peers", nargs="+", metavar="NAME", help="only these, and scikit-learn's lloyd")
    bench.add_argument(
        "--repeat", type=int, help="timed turns of each (7); a turn is one call, or several short ones"
    )
    bench.add_argument("--max-iter", type=int, help="most iterations of a fit (50)")
    bench.add_argument("--budget", type=float, metavar="SECONDS", help="for a task of a problem, about (60)")
    bench.add_argument("--clock", help="wall, or cpu: processor time, for one thread on a busy machine")
    bench.add_argument("--seed", type=int, help="of the problems' data and of the starts (0)")
    bench.set_defaults(run=_bench)


def _bench(options: argparse.Namespace) -> int:
    from ..evaluation.speed import report
    from ..evaluation.speed.peers import limited_threads

    if options.chart:
        report.draw_chart(*options.chart)
        lines = report.compare(report.read_rows(options.chart[0]))
        print(report.HEADING, *map(report.format_line, lines), *report.summary(lines), sep="\n")
        return 0
    settings, n_threads, peers = _prepare(options)
    with limited_threads(n_threads):
        rows = _measure(options, settings, n_threads, peers)
    if options.out:
        report.write_rows(options.out, rows)
    return 0


def _measure(
    options: argparse.Namespace, settings: "Settings", n_threads: int, peers: list["Peer"]
) -> list[dict[str, Any]]:
    """Time all that is asked for, and print it; return the lines of the CSV file."""
    from ..evaluation.speed import cells, report
    from ..evaluation.speed.limits import measure_limits
    from ..evaluation.speed.measure import CLOCKS

    limits = measure_limits(CLOCKS[settings.clock], settings.repeat)
    origin = report.made_with(limits, settings, n_threads)
    print(origin.replace("; ", "\n"))
    chosen = cells.QUICK if options.quick else cells.CELLS
    if options.cells is not None:
        chosen = tuple(chosen[i] for i in options.cells)
    rows = list(_timed(chosen, options.tasks, peers, limits, settings, origin))
    print(*report.summary(report.compare(rows)), sep="\n")
    if options.growth:
        rows += _growth(peers, limits, settings, origin)
    return rows


def _prepare(options: argparse.Namespace) -> tuple["Settings", int, list["Peer"]]:
    """Return the settings, the number of threads and the peers; say which are absent."""
    import torch

    from ..evaluation.speed.measure import CLOCKS, TASKS, Settings
    from ..evaluation.speed.peers import NAMES, find_peers

    given = {name: getattr(options, name) for name in ("repeat", "max_iter", "budget", "clock", "seed")}
    quick = {"repeat": 2, "max_iter": 10} if options.quick else {}
    settings = Settings(**(quick | {name: value for name, value in given.items() if value is not None}))
    options.tasks = options.tasks or list(TASKS)
    for name, value, allowed in (
        ("--tasks", options.tasks, TASKS),
        ("--peers", options.peers or [], NAMES),
        ("--clock", [settings.clock], CLOCKS),
    ):
        if not set(value) <= set(allowed):
            raise ValueError(f"`{name}` should be of {', '.join(allowed)}, got {', '.join(value)}.")
    n_threads = options.threads or torch.get_num_threads()
    if settings.clock == "cpu" and n_threads != 1:
        raise ValueError("`--clock cpu` adds up the time of all threads: it should go with `--threads 1`.")
    peers, absent = find_peers(tuple(options.peers or NAMES))
    for name, reason in absent.items():
        print(f"skipped: {name} ({reason})")
    return settings, n_threads, peers


def _timed(
    chosen: Any, tasks: list[str], peers: list["Peer"], limits: "Limits", settings: "Settings", origin: str
) -> Iterator[dict[str, Any]]:
    """Time cell after cell and print a line for each task."""
    from ..evaluation.speed import report
    from ..evaluation.speed.measure import time_cell

    print(report.HEADING)
    for cell in chosen:
        rows = [report.as_row(t, origin) for t in time_cell(cell, tasks, peers, limits, settings)]
        for line in report.compare(rows):
            print(report.format_line(line), flush=True)
        yield from rows


def _growth(
    peers: list["Peer"], limits: "Limits", settings: "Settings", origin: str
) -> Iterator[dict[str, Any]]:
    """Time fits against each size, and print the exponents."""
    from ..evaluation.speed import report
    from ..evaluation.speed.cells import GROWTH
    from ..evaluation.speed.measure import time_cell

    for size, sizes in GROWTH.items():
        times: dict[str, list[float]] = {}
        for cell in sizes:
            for timing in time_cell(cell, ["fit"], peers, limits, settings):
                times.setdefault(timing.peer, []).append(timing.seconds / timing.n_iter)
                yield report.as_row(timing, origin) | {"task": f"growth with {size}"}
        at = [getattr(cell, size) for cell in sizes]
        found = ", ".join(f"{peer} {report.exponent(at, seconds):.2f}" for peer, seconds in times.items())
        print(f"time of an iteration ~ {size}^b: {found}")
