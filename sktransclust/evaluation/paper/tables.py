"""A tidy table as one CSV file: a first line says where it comes from, then one row a measurement."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from ..provenance import machine, versions
from .profiles import Profile

_PREFIX = "# "
#: Columns that end every table; those before them name the setting.
MEASUREMENT = ("model", "seed", "step", "metric", "value")


def provenance(identifier: str, profile: Profile, device: torch.device | str) -> dict[str, Any]:
    """Say where a table comes from: the profile, the seeds, versions and the machine."""
    return {
        "id": identifier,
        "profile": asdict(profile),
        "seeds": list(range(profile.n_seeds)),
        "versions": versions(),
        "machine": machine(device),
        "device": str(device),
    }


def tidy(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Make a table of rows, with the columns of the setting first."""
    table = pd.DataFrame(rows)
    for column in MEASUREMENT:
        if column not in table:
            table[column] = "-" if column == "model" else 0
    setting = [column for column in table.columns if column not in MEASUREMENT]
    return table[[*setting, *MEASUREMENT]]


def write_table(path: Path, table: pd.DataFrame, origin: Mapping[str, Any]) -> None:
    """Write a table after a line with its origin; the file appears when it is complete."""
    temporary = path.with_suffix(".part")
    with open(temporary, "w", encoding="utf-8", newline="") as file:
        file.write(f"{_PREFIX}{json.dumps(origin)}\n")
        table.to_csv(file, index=False, float_format="%.6g", lineterminator="\n")
    temporary.replace(path)


def read_table(path: Path) -> pd.DataFrame:
    """Read a table; its origin is in ``table.attrs``."""
    table = pd.read_csv(path, skiprows=1, keep_default_na=False, na_values=["", "nan"])
    table.attrs = read_origin(path)
    return table


def read_origin(path: Path) -> dict[str, Any]:
    """Read where a table comes from."""
    with open(path, encoding="utf-8") as file:
        origin: dict[str, Any] = json.loads(file.readline().removeprefix(_PREFIX))
    return origin
