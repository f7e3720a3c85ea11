"""The streamed attention by compiled kernels, for dense samples on a CPU.

`StreamedCore` is its plain twin. A kernel (kernel.cpp) labels the samples that the error bound of
`nearest` makes certain and adds them up by cluster; the doubtful ones come back and are decided, and
added, as everywhere. So the labels are the same ones, whatever the instruction set. The library is
built when the package is installed with a C++ compiler at hand.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import __path__ as _folders
from .dense_samples import DenseSamples
from .nearest import Keys, bound_coefficients, nearest
from .partial import Partial
from .streamed import Ranges, StreamedCore

_PANEL_WIDTH = 6  # at most: the keys whose scores a kernel holds in registers


class _Problem(ctypes.Structure):
    """`Problem` of kernel.h, which describes the fields."""

    _fields_ = [
        ("values", ctypes.c_void_p),
        ("row_stride", ctypes.c_int64),
        ("column_stride", ctypes.c_int64),
        ("shift", ctypes.c_void_p),
        ("scale", ctypes.c_double),
        ("lengths", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("panels", ctypes.c_void_p),
        ("key_norms", ctypes.c_void_p),
        ("centers", ctypes.c_void_p),
        ("reference_scale", ctypes.c_double),
        ("n_clusters", ctypes.c_int64),
        ("n_features", ctypes.c_int64),
        ("n_panels", ctypes.c_int64),
        ("panel_width", ctypes.c_int64),
        ("bound", ctypes.c_double * 3),
        ("longest", ctypes.c_double),
        ("previous", ctypes.c_void_p),
        ("labels", ctypes.c_void_p),
        ("sums", ctypes.c_void_p),
        ("cluster_weights", ctypes.c_void_p),
    ]


_Assign = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    ctypes.POINTER(_Problem),
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_int64),
)


class _Kernels(ctypes.Structure):
    """`Kernels` of kernel.h."""

    _fields_ = [("name", ctypes.c_char_p), ("assign_float", _Assign), ("assign_double", _Assign)]


@functools.cache
def instruction_sets() -> dict[str, Any]:
    """Return the kernels that this machine can run, by name, the fastest last; none if they are not built."""
    # In an editable install, the folder of the library is not that of this file.
    names = [Path(folder, f"_kernels{suffix}") for folder in _folders for suffix in (".so", ".dll")]
    found = [name for name in names if name.exists()]
    if not found:
        return {}
    library = ctypes.CDLL(str(found[0]))
    library.sktransclust_kernels.restype = ctypes.POINTER(_Kernels)
    kernels = iter(map(library.sktransclust_kernels, range(3)))
    return {k.contents.name.decode(): k.contents for k in kernels if k}


@dataclass
class PackedKeys(Keys):
    """Keys as the kernels read them.

    Attributes
    ----------
    problem : _Problem
        With all fields but those of a chunk; it points into the next ones and into the samples.
    panels : ndarray of shape (n_panels, n_features, panel_width)
        The keys times -2, filled up with zeros.
    panel_norms : ndarray of shape (n_panels, panel_width)
        The squared lengths of the keys, filled up with infinities.
    """

    problem: _Problem
    panels: np.ndarray
    panel_norms: np.ndarray

    @classmethod
    def pack(cls, keys: Keys, problem: _Problem) -> PackedKeys:
        """Divide keys into panels of equal width; `problem` gives the fields of the samples."""
        points = keys.keys.numpy()
        n_clusters, n_features = points.shape
        n_panels = -(-n_clusters // _PANEL_WIDTH)
        width = -(-n_clusters // n_panels)
        padded = np.zeros((n_panels * width, n_features), points.dtype)
        np.multiply(points, -2, out=padded[:n_clusters])
        norms = np.full((n_panels, width), np.inf, points.dtype)
        norms.reshape(-1)[:n_clusters] = keys.norms.numpy()
        panels = padded.reshape(n_panels, width, n_features).transpose(0, 2, 1).copy()
        keys.reference = keys.reference.contiguous()
        problem.panels, problem.key_norms = panels.ctypes.data, norms.ctypes.data
        problem.centers, problem.n_clusters = keys.reference.data_ptr(), n_clusters
        problem.n_panels, problem.panel_width = n_panels, width
        return cls(keys.keys, keys.norms, keys.reach, keys.reference, problem, panels, norms)


class CompiledCore(StreamedCore):
    """Hard attention of dense samples on a CPU, by a compiled kernel.

    Parameters
    ----------
    samples : DenseSamples
        In the memory of the host.
    sample_weight : Tensor of shape (n_samples,), float64, or None
    instruction_set : str, optional
        One of `instruction_sets()`, by default the last.
    """

    name = "compiled"
    samples: DenseSamples

    def __init__(
        self,
        samples: DenseSamples,
        sample_weight: torch.Tensor | None = None,
        instruction_set: str | None = None,
    ) -> None:
        super().__init__(samples, sample_weight)
        kernels = instruction_sets()[instruction_set or list(instruction_sets())[-1]]
        single = samples.dtype == torch.float32
        self._assign: Callable[..., int] = kernels.assign_float if single else kernels.assign_double
        self._reference_scale = 0.0
        if samples.reference_frame is not samples.score_frame:
            assert samples.reference_frame.shift is None
            self._reference_scale = math.ldexp(1.0, -samples.reference_frame.exponent)
        shift = samples.score_frame.shift
        self._shift = np.zeros(samples.n_features) if shift is None else shift
        self._shift = self._shift.astype(samples.numpy_dtype)

    def keys(self, centers: np.ndarray) -> PackedKeys:
        """Prepare centers of shape (n_clusters, n_features), given in the reference frame."""
        keys, samples, values = super().keys(centers), self.samples, self.samples.values
        problem = _Problem(
            values=values.data_ptr(),
            row_stride=values.stride(0),
            column_stride=values.stride(1),
            shift=self._shift.ctypes.data,
            scale=math.ldexp(1.0, -samples.score_frame.exponent),
            lengths=None if samples.norms is None else samples.norms.data_ptr(),
            weights=None if self.sample_weight is None else self.sample_weight.data_ptr(),
            reference_scale=self._reference_scale,
            n_features=samples.n_features,
            bound=(ctypes.c_double * 3)(*bound_coefficients(samples.n_features, keys.reach, samples.dtype)),
            longest=self._longest(keys.reach),
        )
        return PackedKeys.pack(keys, problem)

    def assign_chunk(self, tiles: Ranges, keys: Keys, labels: torch.Tensor) -> None:
        """Write the labels of a chunk of tiles."""
        assert isinstance(keys, PackedKeys)
        problem = _Problem.from_buffer_copy(keys.problem)
        problem.labels = labels.data_ptr()
        doubtful, _ = self._label(tiles, problem)
        for index in self._parts(doubtful, problem.n_clusters):
            labels[index] = nearest(self.samples.tile_of(index), keys).int()

    def iterate_chunk(
        self, tiles: Ranges, keys: Keys, previous: torch.Tensor, labels: torch.Tensor, partial: Partial
    ) -> None:
        """Write the labels of a chunk of tiles, and add their samples and their changes to `partial`."""
        assert isinstance(keys, PackedKeys)
        problem = _Problem.from_buffer_copy(keys.problem)
        problem.labels, problem.previous = labels.data_ptr(), previous.data_ptr()
        problem.sums, problem.cluster_weights = partial.sums.data_ptr(), partial.weights.data_ptr()
        doubtful, n_changed = self._label(tiles, problem)
        partial.n_changed += n_changed
        for index in self._parts(doubtful, problem.n_clusters):
            tile = self.samples.tile_of(index)
            label = nearest(tile, keys)
            labels[index] = label.int()
            partial.add(tile, label, None if self.sample_weight is None else self.sample_weight[index])
            partial.n_changed += int((label != previous[index]).sum())

    def _longest(self, reach: float) -> float:
        """Return the length up to which a sample's scores cannot overflow; negative for none.

        A score and what is added up for it are at most (r + R)^2. The second order of rounding, of a
        sample's length also, is small only while n_features times the unit roundoff is.
        """
        kind = torch.finfo(self.samples.dtype)
        if self.samples.n_features * kind.eps > 2.0**-7:
            return -1.0
        return math.sqrt(kind.max) / 4 - reach

    def _label(self, tiles: Ranges, problem: _Problem) -> tuple[np.ndarray, int]:
        """Run the kernel on a chunk; return the indices of doubtful samples and how many others changed."""
        start, stop = tiles[0][0], tiles[-1][1]
        doubtful = np.empty(stop - start, dtype=np.int64)
        n_changed = ctypes.c_int64()
        count = self._assign(problem, start, stop, doubtful.ctypes.data, n_changed)
        if count < 0:
            raise MemoryError("The scratch memory of a compiled kernel could not be allocated.")
        return doubtful[:count], n_changed.value

    def _parts(self, index: np.ndarray, n_clusters: int) -> tuple[torch.Tensor, ...]:
        """Divide an index into tiles."""
        return torch.from_numpy(index).split(self._tile_rows(n_clusters)) if len(index) else ()
