"""The literal network as a backend: every attention of a layer, as matrices, in float64."""

from __future__ import annotations

import numpy as np
import torch

from .core.samples import Samples, cluster_sums
from .core.streamed import Ahead, Iteration, StreamedCore
from .model import LloydTransformer

# One float64 matrix of n x k for the scores of assign, one for its weights, and as many for update.
_MATRICES = 6


class DenseNetwork(StreamedCore):
    """The exact :class:`LloydTransformer`, used as the streamed core is.

    Parameters
    ----------
    samples : Samples
    sample_weight : Tensor of shape (n_samples,), float64, or None
    n_clusters : int
    embedding : {"binary", "onehot"}

    Raises
    ------
    MemoryError
        If the attention matrices would not fit into the memory that is free.
    """

    name = "dense"

    def __init__(
        self,
        samples: Samples,
        sample_weight: torch.Tensor | None,
        n_clusters: int,
        embedding: str,
    ) -> None:
        super().__init__(samples, sample_weight)
        needed = 8 * samples.n_samples * (_MATRICES * n_clusters + 3 * samples.n_features)
        free = _free_memory(samples.device)
        if free is not None and needed > free:
            raise MemoryError(
                "backend='dense' holds matrices of n_samples x n_clusters and needs about "
                f"{needed / 2**30:.1f} GiB, but {free / 2**30:.1f} GiB are free. "
                "Use backend='streamed', which gives the same result."
            )
        self._network = LloydTransformer.exact(samples.n_features, n_clusters, embedding).to(samples.device)
        self._points = samples.rows(np.arange(samples.n_samples))[None]  # (1, n, d)

    def assign(self, centers: np.ndarray) -> torch.Tensor:
        """Return the label that each sample's code spells: shape (n_samples,), int32."""
        return self._layer(centers)[0]

    def iterate(self, centers: np.ndarray, previous: torch.Tensor, ahead: Ahead | None = None) -> Iteration:
        """Apply one layer; see :meth:`StreamedCore.iterate`."""
        labels, means = self._layer(centers)
        weights = torch.zeros(len(centers), dtype=torch.float64, device=labels.device)
        ones = torch.ones(len(labels), dtype=torch.float64, device=labels.device)
        cluster_sums(weights, ones if self.sample_weight is None else self.sample_weight, labels.long())
        n_changed = int((labels != previous).sum())
        return Iteration.measured(centers, labels, means, weights.cpu().numpy(), n_changed)

    def _layer(self, centers: np.ndarray) -> tuple[torch.Tensor, np.ndarray]:
        keys = torch.as_tensor(centers).to(self.samples.device)[None]  # (1, k, d)
        weight = None if self.sample_weight is None else self.sample_weight[None]
        with torch.no_grad():
            output = self._network(self._points, keys, weight)
        labels = self._network.decode_labels(output.sample_tokens)[0].int()
        return labels, output.center_tokens[0, :, : self.samples.n_features].cpu().numpy().copy()


def _free_memory(device: torch.device) -> int | None:
    """Return the free memory of the device in bytes, or None where it cannot be told."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        with open("/proc/meminfo") as table:
            available = next(line for line in table if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None
    return 1024 * int(available.split()[1])
