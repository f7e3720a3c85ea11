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
    panels : Tensor of shape (n_panels, n_features, panel_width)
        The keys times -2, filled up with zeros.
    panel_norms : Tensor of shape (n_panels, panel_width)
        The squared lengths of the keys, filled up with infinities.
    """

    panels: torch.Tensor
    panel_norms: torch.Tensor

    @classmethod
    def pack(cls, keys: Keys) -> PackedKeys:
        """Divide keys into panels of equal width."""
        n_clusters, n_features = keys.keys.shape
        n_panels = -(-n_clusters // _PANEL_WIDTH)
        width = -(-n_clusters // n_panels)
        padded = keys.keys.new_zeros(n_panels * width, n_features)
        torch.mul(keys.keys, -2, out=padded[:n_clusters])
        norms = keys.norms.new_full((n_panels, width), torch.inf)
        norms.view(-1)[:n_clusters] = keys.norms
        panels = padded.view(n_panels, width, n_features).transpose(1, 2).contiguous()
        return cls(**vars(keys), panels=panels, panel_norms=norms)


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
        return PackedKeys.pack(super().keys(centers))

    def assign_chunk(self, tiles: Ranges, keys: Keys, labels: torch.Tensor) -> None:
        """Write the labels of a chunk of tiles."""
        problem = self._problem(keys, labels)
        doubtful, _ = self._label(tiles, keys, problem)
        for index in self._parts(doubtful, len(keys.keys)):
            labels[index] = nearest(self.samples.tile_of(index), keys).int()

    def iterate_chunk(
        self, tiles: Ranges, keys: Keys, previous: torch.Tensor, labels: torch.Tensor, partial: Partial
    ) -> None:
        """Write the labels of a chunk of tiles, and add their samples and their changes to `partial`."""
        problem = self._problem(keys, labels)
        problem.previous = previous.data_ptr()
        problem.sums = partial.sums.data_ptr()
        problem.cluster_weights = partial.weights.data_ptr()
        doubtful, n_changed = self._label(tiles, keys, problem)
        partial.n_changed += n_changed
        for index in self._parts(doubtful, len(keys.keys)):
            tile = self.samples.tile_of(index)
            label = nearest(tile, keys)
            labels[index] = label.int()
            partial.add(tile, label, None if self.sample_weight is None else self.sample_weight[index])
            partial.n_changed += int((label != previous[index]).sum())

    def _problem(self, keys: Keys, labels: torch.Tensor) -> _Problem:
        assert isinstance(keys, PackedKeys)
        samples, values = self.samples, self.samples.values
        bound = bound_coefficients(samples.n_features, keys.reach, samples.dtype)
        return _Problem(
            values=values.data_ptr(),
            row_stride=values.stride(0),
            column_stride=values.stride(1),
            shift=self._shift.ctypes.data,
            scale=math.ldexp(1.0, -samples.score_frame.exponent),
            lengths=None if samples.norms is None else samples.norms.data_ptr(),
            weights=None if self.sample_weight is None else self.sample_weight.data_ptr(),
            panels=keys.panels.data_ptr(),
            key_norms=keys.panel_norms.data_ptr(),
            centers=keys.reference.data_ptr(),
            reference_scale=self._reference_scale,
            n_clusters=len(keys.keys),
            n_features=samples.n_features,
            n_panels=keys.panels.shape[0],
            panel_width=keys.panels.shape[2],
            bound=(ctypes.c_double * 3)(*bound),
            longest=self._longest(keys.reach),
            labels=labels.data_ptr(),
        )

    def _longest(self, reach: float) -> float:
        """Return the length up to which a sample's scores cannot overflow; negative for none.

        A score and what is added up for it are at most (r + R)^2. The second order of rounding, of a
        sample's length also, is small only while n_features times the unit roundoff is.
        """
        kind = torch.finfo(self.samples.dtype)
        if self.samples.n_features * kind.eps > 2.0**-7:
            return -1.0
        return math.sqrt(kind.max) / 4 - reach

    def _label(self, tiles: Ranges, keys: Keys, problem: _Problem) -> tuple[torch.Tensor, int]:
        """Run the kernel on a chunk; return the indices of doubtful samples and how many others changed."""
        start, stop = tiles[0][0], tiles[-1][1]
        doubtful = torch.empty(stop - start, dtype=torch.int64)
        n_changed = ctypes.c_int64()
        count = self._assign(problem, start, stop, doubtful.data_ptr(), n_changed)
        if count < 0:
            raise MemoryError("The scratch memory of a compiled kernel could not be allocated.")
        return doubtful[:count], n_changed.value

    def _parts(self, index: torch.Tensor, n_clusters: int) -> tuple[torch.Tensor, ...]:
        """Divide an index into tiles."""
        return index.split(self._tile_rows(n_clusters)) if len(index) else ()
