"""The library of compiled kernels, and its structures as ctypes sees them."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

from . import __path__ as _folders


class Problem(ctypes.Structure):
    """`Problem` of kernel.h, which describes the fields."""

    _fields_ = [
        ("values", ctypes.c_void_p),
        ("row_stride", ctypes.c_int64),
        ("column_stride", ctypes.c_int64),
        ("n_features", ctypes.c_int64),
        ("shift", ctypes.c_void_p),
        ("scale", ctypes.c_double),
        ("reference_scale", ctypes.c_double),
        ("lengths", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("n_clusters", ctypes.c_int64),
        ("n_panels", ctypes.c_int64),
        ("panel_width", ctypes.c_int64),
        ("centers", ctypes.c_void_p),
        ("keys", ctypes.c_void_p),
        ("panels", ctypes.c_void_p),
        ("key_norms", ctypes.c_void_p),
        ("bound", ctypes.c_double * 3),
        ("longest", ctypes.c_double),
        ("lattice", ctypes.c_double),
        ("largest_integer", ctypes.c_double),
        ("reach", ctypes.c_double),
        ("until", ctypes.c_void_p),
        ("lower", ctypes.c_void_p),
        ("drift", ctypes.c_void_p),
        ("others", ctypes.c_void_p),
        ("bounded", ctypes.c_int64),
        ("certainty", ctypes.c_double),
        ("length_error", ctypes.c_double),
        ("distinct", ctypes.c_int64),
        ("previous", ctypes.c_void_p),
        ("labels", ctypes.c_void_p),
        ("only_changes", ctypes.c_int64),
        ("sums", ctypes.c_void_p),
        ("cluster_weights", ctypes.c_void_p),
        ("masses", ctypes.c_void_p),
    ]


def _functions(result: Any, *arguments: Any) -> Any:
    """Return the type of a pair of kernels, for float and for double."""
    return ctypes.CFUNCTYPE(result, ctypes.POINTER(Problem), *arguments) * 2


class Kernels(ctypes.Structure):
    """`Kernels` of kernel.h."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("problem_bytes", ctypes.c_int64),
        ("pack", _functions(ctypes.c_double)),
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
        ("squares", _functions(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)),
        ("sums", _functions(None, ctypes.c_int64, ctypes.c_int64)),
        (
            "closer",
            _functions(
                ctypes.c_int64,
                ctypes.c_int64,
                ctypes.c_int64,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.c_void_p,
            ),
        ),
        ("moments", _functions(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)),
    ]


@functools.cache
def instruction_sets() -> dict[str, Any]:
    """Return the kernels that this machine can run, by name, the fastest last; none if they are not built."""
    # In an editable install, the folder of the library is not that of this file.
    names = [Path(folder, f"_kernels{suffix}") for folder in _folders for suffix in (".so", ".dll")]
    found = [name for name in names if name.exists()]
    if not found:
        return {}
    library = ctypes.CDLL(str(found[0]))
    library.sktransclust_kernels.restype = ctypes.POINTER(Kernels)
    kernels = [k.contents for k in map(library.sktransclust_kernels, range(3)) if k]
    if any(k.problem_bytes != ctypes.sizeof(Problem) for k in kernels):
        raise ImportError(f"{found[0]} is of another version: install the package again.")
    return {k.name.decode(): k for k in kernels}
