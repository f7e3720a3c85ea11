"""Run experiments: train what is missing, measure, write the tables, draw the figures."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch

from .context import Context
from .experiments import EXPERIMENTS
from .profiles import Profile
from .store import ModelStore, work
from .tables import provenance, read_origin, write_table

ALL = "all"
Say = Callable[[str], None]
#: Seconds between two lines of progress.
PAUSE = 15.0


def chosen(identifiers: Iterable[str]) -> list[str]:
    """Return the identifiers, with ``all`` spelled out, each once.

    Raises
    ------
    ValueError
        For one that the registry does not have.
    """
    found: dict[str, None] = {}
    for identifier in identifiers:
        if identifier != ALL and identifier not in EXPERIMENTS:
            raise ValueError(f"`ID` should be {ALL} or one of {', '.join(EXPERIMENTS)}; got {identifier!r}.")
        found |= dict.fromkeys(EXPERIMENTS if identifier == ALL else [identifier])
    return list(found)


def reproduce(
    identifiers: Sequence[str],
    profile: Profile,
    out: Path,
    *,
    resume: bool = False,
    device: torch.device | str = "cpu",
    say: Say = print,
) -> None:
    """Make the table ``ID.csv`` and the drawings ``ID.svg`` and ``ID.png`` of each experiment.

    Parameters
    ----------
    identifiers : sequence of str
        Keys of ``EXPERIMENTS``.
    profile : Profile
        How large.
    out : Path
        Where the tables and figures go; trained models go to its folder ``models``.
    resume : bool, default=False
        Go on in a folder that has models already, with these and with the tables of the same profile.
    device : torch.device or str, default="cpu"
        Where to compute.
    say : callable, default=print
        Takes the lines of progress.

    Raises
    ------
    FileExistsError
        If there are models and `resume` was not asked for.
    """
    folder = out / "models"
    if folder.exists() and not resume:
        raise FileExistsError(f"{folder} exists: go on with --resume, or name another folder.")
    store = ModelStore(folder, profile.models_at_once, device)
    wanted = {name: EXPERIMENTS[name].measurement for name in identifiers}
    recipes = [recipe for measurement in wanted.values() for recipe in measurement.recipes(profile)]
    clock = _Clock(sum(map(work, store.missing(recipes))), say)
    for name, measurement in wanted.items():
        table = out / f"{name}.csv"
        origin = provenance(name, profile, device)
        if not (table.exists() and _same(read_origin(table), origin)):
            clock.start(name)
            store.train(measurement.recipes(profile), clock.advance)
            write_table(table, measurement.measure(Context(profile, store)), origin)
        draw(name, table)
        say(f"{name}: {EXPERIMENTS[name].title}: {table}")


def draw(name: str, table: Path) -> None:
    """Draw an experiment's figure from its table alone, beside it, as SVG and PNG."""
    from .drawing import DRAWINGS, save

    save(DRAWINGS[EXPERIMENTS[name].drawing], table)


def _same(found: dict[str, object], wanted: dict[str, object]) -> bool:
    """Whether a table was made with the same settings."""
    return all(found.get(key) == wanted[key] for key in ("id", "profile", "seeds"))


class _Clock:
    """Says how far the trainings are, and about how long the rest of them takes."""

    def __init__(self, total: float, say: Say) -> None:
        self._total, self._done, self._say = total, 0.0, say
        self._started = self._said = time.monotonic()
        self._name = ""

    def start(self, name: str) -> None:
        """Name the experiment that the work is for."""
        self._name = name

    def advance(self, work_done: float) -> None:
        """Count work, and say so now and then."""
        self._done += work_done
        now = time.monotonic()
        if now - self._said >= PAUSE:
            self._said = now
            done = min(self._done / self._total, 1.0)
            left = (now - self._started) * (1 - done) / done
            self._say(f"{self._name}: training, {done:.0%} of all, about {_duration(left)} left")


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
