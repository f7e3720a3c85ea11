"""What tests of the compiled kernels share; those that import it are skipped where no kernels are built."""

import os

import numpy as np
import pytest
import torch

from sktransclust._engine import data_frame
from sktransclust.core.compiled import CompiledCore, instruction_sets
from sktransclust.core.dense_samples import DenseSamples
from sktransclust.core.streamed import StreamedCore

CPU = torch.device("cpu")
BUILT = instruction_sets()

if not BUILT and os.environ.get("SKTRANSCLUST_REQUIRE_COMPILED") != "1":
    pytest.skip("the compiled kernels are not built", allow_module_level=True)


def both(X, instruction_set=None, weights=None):
    """Return the streamed and the compiled core of the same data."""
    frame = data_frame(X)
    weights = None if weights is None else torch.from_numpy(weights)
    samples = [DenseSamples(X, frame, frame, CPU) for _ in range(2)]
    return StreamedCore(samples[0], weights), CompiledCore(samples[1], weights, instruction_set)


def local(core, centers):
    return core.samples.reference_frame.to_local(np.asarray(centers, dtype=np.float64))


def some(n, d, dtype, seed=0):
    rng = np.random.default_rng([n, d, seed])
    return rng.standard_normal((n, d)).astype(dtype)
