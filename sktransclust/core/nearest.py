"""The nearest center of each sample, certain in spite of rounding.

Scores from a matrix product decide only where the gap between the best two exceeds twice
the largest error that rounding can have made. The remaining samples, few on most data, are
decided by direct differences in float64, ties to the lowest index. So labels do not depend
on the order in which a matrix product adds, and with it not on the tile, the number of
threads or the device.

Error bound. Let u be the unit roundoff of the data's dtype, r = |x| and R = max_j |c_j| in
the score frame, and m the number of products in a score. Rounding x and c_j into the frame
changes the score s_j = |c_j|^2 - 2 x.c_j by at most about u (4 r R + 2 R^2); adding up m + 1
terms in any order, fused or not, by (m + 1) u (2 r R + R^2) to first order in u. Together
E <= (m + 4) u R (2 r + R). The float64 differences that decide have themselves an error of
(m + 3) u64 (r + R)^2. Two scores whose gap exceeds twice the sum of both are in true order;
the factor 2.1 covers the terms of second order. Where coordinates or products are so small that
they lose digits, they lose less than the least normal number, 1 + r times a term.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from .samples import Samples, Tile

_PAIR_ELEMENTS = 2**20  # float64 differences held at once while deciding


@dataclass
class Keys:
    """Centers as keys of the hard attention.

    Attributes
    ----------
    keys : Tensor of shape (n_clusters, n_features), in the data's dtype and the score frame
    norms : Tensor of shape (n_clusters,)
        Squared lengths of `keys`; infinite for a center that repeats an earlier one, which
        can never win.
    reach : float
        The largest length of a key.
    reference : Tensor of shape (n_clusters, n_features), float64, in the reference frame
    """

    keys: torch.Tensor
    norms: torch.Tensor
    reach: float
    reference: torch.Tensor

    @classmethod
    def of(cls, centers: np.ndarray, samples: Samples) -> Keys:
        """Prepare centers of shape (n_clusters, n_features), given in the reference frame."""
        score = centers
        if samples.score_frame is not samples.reference_frame:
            score = samples.score_frame.to_local(samples.reference_frame.to_data(centers))
        with np.errstate(over="ignore"):  # an infinite norm sends its samples to the exact rule
            squared = np.einsum("ij,ij->i", score, score)
            reach = float(np.sqrt(squared.max()))
            squared[_repeats(centers)] = np.inf
            rounded = score.astype(samples.numpy_dtype), squared.astype(samples.numpy_dtype)
        keys, norms, reference = (torch.from_numpy(a).to(samples.device) for a in (*rounded, centers))
        return cls(keys, norms, reach, reference)


def _repeats(centers: np.ndarray) -> list[int]:
    """Return the indices of centers that equal one of lower index."""
    seen: set[bytes] = set()
    repeats = []
    for index, center in enumerate(centers + 0.0):  # + 0.0 turns -0.0 into 0.0
        row = center.tobytes()
        if row in seen:
            repeats.append(index)
        seen.add(row)
    return repeats


def nearest(tile: Tile, keys: Keys) -> torch.Tensor:
    """Return the index of the nearest center of each sample of a tile: shape (tile,), int64."""
    scores = tile.scores(keys.keys, keys.norms)  # (tile, k)
    labels, best, second = _least_two(scores)
    bound = _error_bound(tile, keys)
    certain = second - best > bound  # false where either is not a number
    if not bool(certain.all()):
        doubtful = torch.nonzero(~certain).ravel()
        limit = best[doubtful] + bound[doubtful]
        scores[doubtful, labels[doubtful]] = best[doubtful]
        # Where a score is not finite, nothing is known and every center is a candidate.
        candidate = ~(scores[doubtful] > limit[:, None])
        candidate &= ~torch.isinf(keys.norms) | ~torch.isfinite(limit)[:, None]
        labels[doubtful] = _decide(tile, doubtful, candidate, keys.reference)
    return labels


def _least_two(scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the index of the least entry of each row, the entry, and the second least one.

    Overwrites the least entries by infinity.
    """
    if scores.device.type == "cpu":
        return _least_two_on_cpu(scores)
    labels, best = scores.argmin(1), scores.amin(1)
    scores.scatter_(1, labels[:, None], torch.inf)
    return labels, best, scores.amin(1)


def _least_two_on_cpu(scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """As `_least_two`, several times faster than PyTorch's argmin on a CPU.

    Where several entries are least and the scores of a center lie side by side, any index is returned.
    """
    array = scores.numpy()
    row = np.arange(len(array))
    if scores.stride(0) > 1:
        index = array.argmin(1)
        best = array[row, index]
        array[row, index] = np.inf
        return torch.from_numpy(index), torch.from_numpy(best), scores.amin(1)
    best = array.min(1)
    least = array.T == best  # (k, tile)
    names = np.arange(len(least), dtype=np.int8)
    alone = least.sum(0, dtype=np.int8) == 1
    index = np.where(alone, (least * names[:, None]).sum(0, dtype=np.int8), 0).astype(np.int64)
    array[row, index] = np.inf
    second = np.where(alone, array.min(1), best)
    return torch.from_numpy(index), torch.from_numpy(best), torch.from_numpy(second)


def _error_bound(tile: Tile, keys: Keys) -> torch.Tensor:
    """Return, for each sample, the gap above which two scores are in true order: shape (tile,)."""
    length = tile.norms()
    constant, linear, quadratic = bound_coefficients(tile.n_terms, keys.reach, length.dtype)
    bound = length * quadratic
    bound += linear
    bound *= length
    bound += constant
    return bound


def bound_coefficients(n_terms: int, reach: float, dtype: torch.dtype) -> tuple[float, float, float]:
    """Return the coefficients of 1, r and r^2 in the bound: 2.1 (m + 4) times the sum of errors."""
    kind = torch.finfo(dtype)
    unit, unit64 = kind.eps / 2, torch.finfo(torch.float64).eps / 2
    factor = 2.1 * (n_terms + 4)
    # unit R (2 r + R) + unit64 (r + R)^2 + tiny (1 + r)
    both = reach * (unit + unit64)
    return factor * (both * reach + kind.tiny), factor * (2 * both + kind.tiny), factor * unit64


def _decide(tile: Tile, index: torch.Tensor, candidate: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """Return the nearest of the candidates by direct differences, ties to the lowest index.

    `index` names m samples of the tile, `candidate` is of shape (m, n_clusters), boolean.
    """
    labels = torch.empty_like(index)
    n_features = centers.shape[1]
    per_pass = max(1, _PAIR_ELEMENTS // n_features)
    begin = 0
    pairs = candidate.sum(1).cumsum(0)
    while begin < len(index):
        spent = int(pairs[begin - 1]) if begin else 0
        end = max(begin + 1, int(torch.searchsorted(pairs, spent + per_pass, right=True)))
        rows = tile.rows(index[begin:end])
        labels[begin:end] = _nearest_candidate(rows, candidate[begin:end], centers)
        begin = end
    return labels


def _nearest_candidate(rows: torch.Tensor, candidate: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """Return the least candidate at the least squared distance from each of m rows."""
    row, column = torch.nonzero(candidate, as_tuple=True)
    points, keys = rows[row], centers[column]
    difference = points - keys
    size = difference.abs().amax(1)
    low, high = float(size.min()), float(size.max())
    if not (1e-140 < low and high < 1e140):
        # Squares would overflow or vanish: a power of two per sample brings its largest coordinate near 1.
        largest = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
        extent = torch.maximum(points.abs().amax(1), keys.abs().amax(1))
        largest.scatter_reduce_(0, row, extent, "amax")
        exponent = torch.frexp(largest)[1][row, None]
        difference = torch.ldexp(points, -exponent) - torch.ldexp(keys, -exponent)
    squared = torch.cumsum(difference.square_(), 1)[:, -1]  # in the order of the features, as rows.h does
    least = torch.full((len(rows),), torch.inf, dtype=torch.float64, device=rows.device)
    least.scatter_reduce_(0, row, squared, "amin")
    lowest = torch.full((len(rows),), len(centers), device=rows.device)
    lowest.scatter_reduce_(0, row, torch.where(squared <= least[row], column, len(centers)), "amin")
    return lowest
