"""Frozen dataclasses from and to plain mappings, as JSON headers and TOML recipes hold them."""

import sys
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

Config = TypeVar("Config")


def config_from_mapping(cls: type[Config], mapping: Mapping[str, Any], where: str) -> Config:
    """Build a config, refusing unknown fields and values of another type.

    Parameters
    ----------
    cls : type
        A dataclass whose fields are numbers, strings, booleans, or tuples of one of these.
    mapping : Mapping
        Field names to values; lists stand for tuples. Fields left out take their defaults.
    where : str
        What the mapping is called in an error, such as ``"[tasks]"``.

    Returns
    -------
    Config
        An instance of `cls`.

    Raises
    ------
    ValueError
        Naming the unknown, missing or wrong field.
    """
    if not isinstance(mapping, Mapping):
        raise ValueError(f"{where} should be a table of fields, got {mapping!r}.")
    types = get_type_hints(cls)
    known = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    unknown = sorted(set(mapping) - set(known))
    if unknown:
        raise ValueError(f"{where} has an unknown field `{unknown[0]}`; known fields: {', '.join(known)}.")
    values = {name: _typed(value, types[name], f"`{name}` in {where}") for name, value in mapping.items()}
    required = [f.name for f in fields(cls) if f.default is f.default_factory is MISSING]  # type: ignore[arg-type]
    missing = [name for name in required if name not in values]
    if missing:
        raise ValueError(f"{where} lacks the field `{missing[0]}`; required fields: {', '.join(required)}.")
    return cls(**values)


def config_to_mapping(config: Any) -> dict[str, Any]:
    """Turn a config into a mapping of numbers, strings, booleans and lists."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in asdict(config).items()
    }


def _typed(value: Any, expected: Any, what: str) -> Any:
    """Return the value as the field's type: int serves as float, a list as a tuple."""
    if get_origin(expected) is tuple:
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{what} should be a list, got {value!r}.")
        return tuple(_typed(entry, get_args(expected)[0], what) for entry in value)
    if expected is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(
                f"{what} should be at most {sys.float_info.max}, got a larger integer."
            ) from None
    if isinstance(expected, type) and (
        not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool)
    ):
        raise ValueError(f"{what} should be of type {expected.__name__}, got {value!r}.")
    return value
