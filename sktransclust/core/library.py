"""The library of compiled kernels, and its structures as ctypes sees them."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import __path__ as _folders


class Problem(ctypes.Structure):
    """`Problem` of kernel.h, which describes the fields."""

    _fields_ = [
        ("n_samples", ctypes.c_int64),
        ("values", ctypes.c_void_p),
        ("row_stride", ctypes.c_int64),
        ("column_stride", ctypes.c_int64),
        ("n_features", ctypes.c_int64),
        ("offsets", ctypes.c_void_p),
        ("columns", ctypes.c_void_p),
        ("wide_columns", ctypes.c_int64),
        ("n_terms", ctypes.c_int64),
        ("shift", ctypes.c_void_p),
        ("scale", ctypes.c_double),
        ("reference_scale", ctypes.c_double),
        ("lengths", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("n_clusters", ctypes.c_int64),
        ("centers", ctypes.c_void_p),
        ("keys", ctypes.c_void_p),
        ("panels", ctypes.c_void_p),
        ("key_norms", ctypes.c_void_p),
        ("n_panels", ctypes.c_int64),
        ("panel_width", ctypes.c_int64),
        ("reach", ctypes.c_double),
        ("distinct", ctypes.c_int64),
        ("bound", ctypes.c_double * 3),
        ("longest", ctypes.c_double),
        ("certainty", ctypes.c_double),
        ("length_error", ctypes.c_double),
        ("until", ctypes.c_void_p),
        ("lower", ctypes.c_void_p),
        ("drift", ctypes.c_void_p),
        ("others", ctypes.c_void_p),
        ("bounded", ctypes.c_int64),
        ("movers", ctypes.c_void_p),
        ("n_movers", ctypes.c_int64),
        ("still", ctypes.c_void_p),
        ("near", ctypes.c_void_p),
        ("n_near", ctypes.c_int64),
        ("gaps", ctypes.c_void_p),
        ("cells", ctypes.c_void_p),
        ("radii", ctypes.c_void_p),
        ("lanes", ctypes.c_void_p),
        ("cell_labels", ctypes.c_void_p),
        ("labels", ctypes.c_void_p),
        ("only_changes", ctypes.c_int64),
        ("sums", ctypes.c_void_p),
        ("cluster_weights", ctypes.c_void_p),
        ("masses", ctypes.c_void_p),
        ("touched", ctypes.c_void_p),
    ]


class State(ctypes.Structure):
    """`State` of iterate.h, which describes the fields."""

    _fields_ = [
        ("chunk_rows", ctypes.c_int64),
        ("n_threads", ctypes.c_int64),
        ("valid", ctypes.c_int64),
        ("n_since", ctypes.c_int64),
        ("last", ctypes.c_void_p),
        ("own", ctypes.c_void_p),
        ("drift", ctypes.c_void_p),
        ("others", ctypes.c_void_p),
        ("still", ctypes.c_void_p),
        ("movers", ctypes.c_void_p),
        ("sums", ctypes.c_void_p),
        ("cluster_weights", ctypes.c_void_p),
        ("masses", ctypes.c_void_p),
        ("peaks", ctypes.c_void_p),
        ("n_ahead", ctypes.c_int64),
        ("tol", ctypes.c_double),
        ("least_spread", ctypes.c_double),
        ("passed", ctypes.c_void_p),
        ("n_passed", ctypes.c_int64),
        ("centers", ctypes.c_void_p),
        ("n_changed", ctypes.c_int64),
        ("doubtful", ctypes.c_void_p),
        ("means", ctypes.c_void_p),
        ("shift", ctypes.c_double),
        ("spread", ctypes.c_double),
    ]


class Crew(ctypes.Structure):
    """`Crew` of survey_all.h."""

    _fields_ = [("chunk_rows", ctypes.c_int64), ("n_threads", ctypes.c_int64)]


SPARSE_POINTS = 8  # as in kernel.h, as is the next one
SEEDING_BLOCK = 512
CELL = 32


class Seeds(ctypes.Structure):
    """`Seeds` of kernel.h, which describes the fields."""

    _fields_ = [
        ("nearest", ctypes.c_void_p),
        ("drawn", ctypes.c_void_p),
        ("squares", ctypes.c_void_p),
        ("limits", ctypes.c_void_p),
        ("marks", ctypes.c_void_p),
        ("sums", ctypes.c_void_p),
        ("weight_scale", ctypes.c_double),
        ("n_closer", ctypes.c_void_p),
        ("places", ctypes.c_void_p),
        ("closer", ctypes.c_void_p),
        ("found", ctypes.c_void_p),
        ("pending", ctypes.c_int64),
        ("gains", ctypes.c_void_p),
        ("candidates", ctypes.c_void_p),
        ("n_candidates", ctypes.c_int64),
        ("n_threads", ctypes.c_int64),
        ("chunk_work", ctypes.c_int64),
        ("weights", ctypes.c_void_p),
        ("order", ctypes.c_void_p),
        ("places_in_order", ctypes.c_void_p),
        ("reaches", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
        ("stale", ctypes.c_void_p),
    ]


def _functions(result: Any, *arguments: Any) -> Any:
    """Return the type of a pair of kernels, for float and for double."""
    return ctypes.CFUNCTYPE(result, ctypes.POINTER(Problem), *arguments) * 2


_RANGE = ctypes.c_int64, ctypes.c_int64
_ON_BLOCKS = ctypes.POINTER(Seeds), *_RANGE


class Kernels(ctypes.Structure):
    """`Kernels` of kernel.h."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("pack", _functions(None)),
        (
            "assign",
            _functions(
                ctypes.c_int64,
                ctypes.c_int64,
                ctypes.c_int64,
                ctypes.c_void_p,
                ctypes.POINTER(ctypes.c_int64),
            ),
        ),
        ("enclose", _functions(None, *_RANGE)),
        (
            "decide",
            _functions(
                None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)
            ),
        ),
        ("squares", _functions(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)),
        ("sums", _functions(None, ctypes.c_int64, ctypes.c_int64)),
        ("survey", _functions(None, *_RANGE, ctypes.c_void_p)),
        ("moments", _functions(ctypes.c_int64, *_RANGE, ctypes.c_void_p)),
        ("sparse_squares", _functions(None, *_RANGE, *[ctypes.c_void_p] * 3)),
        ("sparse_moments", _functions(ctypes.c_int64, *_RANGE, ctypes.c_void_p)),
        ("sparse_pairs", _functions(None, *_RANGE, *[ctypes.c_void_p] * 4)),
        ("begin_seeding", _functions(ctypes.c_int64, *_ON_BLOCKS)),
        ("bound_gains", _functions(ctypes.c_int64, *_ON_BLOCKS, ctypes.c_int64)),
        ("find_gain", _functions(ctypes.c_int64, *_ON_BLOCKS, ctypes.c_int64)),
        ("add_center", _functions(ctypes.c_int64, *_ON_BLOCKS)),
        ("add_masses", _functions(ctypes.c_int64, *_ON_BLOCKS)),
    ]


@dataclass(frozen=True)
class InstructionSet:
    """What one instruction set can do; iterate.h, seed.h and survey_all.h describe what works on all."""

    kernels: Kernels
    begin_iteration: Callable[..., int]
    end_iteration: Callable[..., int]
    begin_seeds: Callable[..., int]
    extend_seeds: Callable[..., int]
    survey: Callable[..., int]
    moments: Callable[..., int]


@functools.cache
def instruction_sets() -> dict[str, InstructionSet]:
    """Return what this machine can run, by name, the fastest last; nothing if no kernels are built."""
    # In an editable install, the folder of the library is not that of this file.
    names = [Path(folder, f"_kernels{suffix}") for folder in _folders for suffix in (".so", ".dll")]
    found = [name for name in names if name.exists()]
    if not found:
        return {}
    library = ctypes.CDLL(str(found[0]))
    sizes = (ctypes.c_int64 * 4)()
    library.sktransclust_sizes(sizes)
    if list(sizes) != [ctypes.sizeof(structure) for structure in (Problem, State, Seeds, Kernels)]:
        raise ImportError(f"{found[0]} is of another version: install the package again.")
    pointer = ctypes.POINTER(Kernels)
    common = [pointer, ctypes.c_int, ctypes.POINTER(Problem)]
    state, seeds, crew = ctypes.POINTER(State), ctypes.POINTER(Seeds), ctypes.POINTER(Crew)
    signatures: dict[str, list[Any]] = {
        "begin_iteration": [state],
        "end_iteration": [state, ctypes.c_void_p, ctypes.c_int64],
        "begin_seeds": [seeds],
        "extend_seeds": [seeds, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p],
        "survey": [crew, ctypes.c_void_p],
        "moments": [crew, ctypes.c_void_p],
    }
    functions = {name: getattr(library, f"sktransclust_{name}") for name in signatures}
    for name, function in functions.items():
        function.argtypes, function.restype = [*common, *signatures[name]], ctypes.c_int64
    library.sktransclust_kernels.restype = pointer
    return {
        k.contents.name.decode(): InstructionSet(
            k.contents, **{name: functools.partial(function, k) for name, function in functions.items()}
        )
        for k in map(library.sktransclust_kernels, range(3))
        if k
    }


def checked(count: int) -> int:
    """Return what a kernel counted; raise MemoryError where it says that memory was lacking."""
    if count < 0:
        raise MemoryError("The scratch memory of a compiled kernel could not be allocated.")
    return count
