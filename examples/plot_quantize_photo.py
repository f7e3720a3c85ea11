"""
Reduce a photograph to 64 colors
================================

The photograph of a Chinese temple that scikit-learn ships has 273,280 pixels. k-means on their colors finds
a palette; every pixel is then painted with the nearest color of the palette. ``TransformerKMeans`` and
scikit-learn's ``KMeans`` start from the same palette, so their inertias can be compared.

Run it with ``python examples/plot_quantize_photo.py``; ``--help`` lists the settings.
"""

# %%
import argparse
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.datasets import load_sample_image

from sktransclust import TransformerKMeans

# %%
# The settings: a larger ``--stride`` keeps fewer pixels.
parser = argparse.ArgumentParser(description="Reduce a photograph to a few colors.")
parser.add_argument("--colors", type=int, default=64, help="number of colors, k")
parser.add_argument(
    "--stride", type=int, default=1, help="keep every STRIDE-th row and column of the photograph"
)
parser.add_argument("--device", default="auto", help='"auto", "cpu" or "cuda"')
parser.add_argument("--seed", type=int, default=0, help="seed of the initial palette")
parser.add_argument("--out", type=Path, default=Path("quantize_photo.png"), help="the picture to write")
args = parser.parse_args()

# %%
# One sample per pixel, one feature per color channel. The initial palette is moved off the grid of 8-bit
# colors by less than half a step: on it, hundreds of pixels are exactly as near to one color as to another,
# and rounding would decide for each estimator in its own way.
photo = load_sample_image("china.jpg")[:: args.stride, :: args.stride] / 255
X = photo.reshape(-1, 3)
palette, _ = kmeans_plusplus(X, args.colors, random_state=args.seed)
palette += np.random.default_rng(args.seed).uniform(-0.5, 0.5, palette.shape) / 255


# %%
# Both estimators first fit a hundred pixels, so that the seconds below measure a fit and not the import of a
# library.
def timed_fit(estimator):
    """Fit on all pixels and return the seconds it took."""
    estimator.fit(X[:: len(X) // 100])
    start = time.perf_counter()
    estimator.fit(X)
    return time.perf_counter() - start


settings = {"n_clusters": args.colors, "init": palette, "n_init": 1}
ours = TransformerKMeans(**settings, device=args.device)
seconds = timed_fit(ours)
reference = KMeans(**settings)
reference_seconds = timed_fit(reference)

# %%
# Both follow Lloyd's algorithm from the same palette, so they agree.
print(f"n = {len(X)}   d = {X.shape[1]}   k = {args.colors}")
print(f"device = {ours.device_}   backend = {ours.backend_}")
print(f"{'':18} {'iterations':>10} {'inertia':>14} {'seconds':>8}")
print(f"{'TransformerKMeans':18} {ours.n_iter_:10d} {ours.inertia_:14.8f} {seconds:8.2f}")
print(f"{'KMeans':18} {reference.n_iter_:10d} {reference.inertia_:14.8f} {reference_seconds:8.2f}")
print(f"equal labels: {np.mean(ours.labels_ == reference.labels_):.2%}")

# %%
# Before and after, with the palette below, its colors ordered by brightness.
painted = ours.cluster_centers_[ours.labels_].reshape(photo.shape)
colors = ours.cluster_centers_[np.argsort(ours.cluster_centers_.sum(axis=1))]
n_before = len(np.unique(X, axis=0))

fig, axes = plt.subplot_mosaic(
    [["before", "after"], ["palette", "palette"]], height_ratios=[9, 1], figsize=(11, 4.4)
)
axes["before"].imshow(photo)
axes["before"].set_title(f"before: {n_before:,} colors")
axes["after"].imshow(painted.clip(0, 1))
axes["after"].set_title(f"after: {args.colors} colors")
axes["palette"].imshow(colors[np.newaxis].clip(0, 1), aspect="auto")
for ax in axes.values():
    ax.set_axis_off()
fig.tight_layout()
fig.savefig(args.out, dpi=100)
print(f"wrote {args.out}")
