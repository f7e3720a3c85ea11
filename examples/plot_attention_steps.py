"""
Watch attention move the centers
================================

A layer of the network holds two attentions that matter. In *assign* every sample attends to the nearest
center and takes its code; in *update* every center attends to the samples that carry its code, and their mean
becomes the new center. Here both matrices are drawn for each layer of one forward pass, below the centers
that they move.

Run it with ``python examples/plot_attention_steps.py``; ``--help`` lists the settings.
"""

# %%
import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from sktransclust import LloydTransformer

# %%
parser = argparse.ArgumentParser(description="Draw the attention matrices of each layer.")
parser.add_argument("--samples", type=int, default=60)
parser.add_argument("--clusters", type=int, default=4)
parser.add_argument("--layers", type=int, default=5)
parser.add_argument("--seed", type=int, default=398)
parser.add_argument("--out", type=Path, default=Path("attention_steps.png"), help="the picture to write")
args = parser.parse_args()

# %%
# Samples on a plane, ordered by the blob they come from. All centers start in the first blob, so they have a
# way to go.
X, blob = make_blobs(args.samples, centers=args.clusters, cluster_std=1.2, random_state=args.seed)
X = X[np.argsort(blob, kind="stable")]
start = X[: args.clusters]

# %%
# One forward pass: the network embeds samples and centers as tokens, applies the layers, and returns the
# tokens with the attention matrices of every layer.
network = LloydTransformer.exact(n_features=2, n_clusters=args.clusters, n_layers=args.layers)
with torch.no_grad():
    output = network(torch.from_numpy(X)[None], torch.from_numpy(start)[None], return_attention=True)
assign = [layer["assign"][0].numpy() for layer in output.attention]  # each of shape (n, k)
update = [layer["update"][0].numpy() for layer in output.attention]  # each of shape (k, n + k)

# %%
# Update attends to the samples and, for the sake of centers without any, to the centers themselves. Its
# matrix times these is the centers' next position.
path = [start]
for matrix in update:
    path.append(matrix @ np.concatenate([X, path[-1]]))

# %%
# The last position is what the network returned, and what scikit-learn's KMeans finds in as many iterations.
reference = KMeans(args.clusters, init=start, n_init=1, max_iter=args.layers, tol=0).fit(X)
returned = output.center_tokens[0, :, :2].numpy()
for layer, (weights, centers) in enumerate(zip(assign, path[:-1], strict=True), start=1):
    inertia = np.sum((X - weights @ centers) ** 2)
    print(f"layer {layer}: inertia {inertia:.3f}, samples per center {weights.sum(axis=0).astype(int)}")
print(f"largest difference from the network's centers: {np.abs(path[-1] - returned).max():.1e}")
print(f"largest difference from KMeans's centers: {np.abs(path[-1] - reference.cluster_centers_).max():.1e}")


# %%
# A column for each layer: the plane, then the two matrices. A cell has its center's color, the stronger the
# larger the weight.
COLORS = plt.get_cmap("tab10").colors


def draw_plane(ax, weights, before, after):
    """Draw the samples in the color of the center they attend to, and each center's way."""
    ax.scatter(*X.T, s=12, color=[COLORS[j % 10] for j in weights.argmax(axis=1)], alpha=0.6, linewidths=0)
    for j, (old, new) in enumerate(zip(before, after, strict=True)):
        ax.annotate("", new, old, arrowprops={"arrowstyle": "->", "color": "0.3"})
        ax.scatter(*old, s=60, facecolor="white", edgecolor=COLORS[j % 10], linewidths=1.5)
        ax.scatter(*new, s=60, facecolor=COLORS[j % 10], edgecolor="black", linewidths=1)


def draw_matrix(ax, weights, center_axis):
    """Draw one attention matrix; the centers lie along `center_axis`."""
    tint = 1 - np.array([COLORS[j % 10] for j in range(args.clusters)])
    tint = tint[np.newaxis] if center_axis == 1 else tint[:, np.newaxis]
    ax.imshow(1 - tint * (weights / weights.max())[..., np.newaxis], aspect="auto", interpolation="nearest")


fig, axes = plt.subplots(
    3,
    args.layers,
    figsize=(2.3 * args.layers, 6.4),
    height_ratios=[2.2, 3, 1.2],
    squeeze=False,
    layout="constrained",
)
for layer, (plane, upper, lower) in enumerate(axes.T):
    draw_plane(plane, assign[layer], path[layer], path[layer + 1])
    draw_matrix(upper, assign[layer], center_axis=1)
    draw_matrix(lower, update[layer], center_axis=0)
    lower.axvline(len(X) - 0.5, color="0.5", linewidth=0.8)
    plane.set_title(f"layer {layer + 1}")
    upper.set_xlabel("centers")
    lower.set_xlabel("samples | centers")
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("the plane")
axes[1, 0].set_ylabel("assign: samples")
axes[2, 0].set_ylabel("update:\ncenters")
fig.savefig(args.out, dpi=100)
print(f"wrote {args.out}")
