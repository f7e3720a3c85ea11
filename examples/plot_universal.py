"""
Centers leave a bad optimum
===========================

Where Lloyd's iterations end, two groups may share a center while one group has two. The network for any
number of clusters mends that: centers are added, the network arranges all of them, and as many are removed.
Here it is done by hand, to look at. ``TransformerKMeans(weights="universal")`` does the same, several times,
and keeps a move only if exact iterations then end lower.

Run it with ``python examples/plot_universal.py``; ``--help`` lists the settings.
"""

# %%
import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs

from sktransclust import TransformerKMeans
from sktransclust.checkpoint import load_checkpoint

# %%
# The settings.
parser = argparse.ArgumentParser(description="Centers leave a bad optimum by steps of the network.")
parser.add_argument("--clusters", type=int, default=12, help="number of groups and of centers")
parser.add_argument("--added", type=int, default=3, help="number of centers that are added")
parser.add_argument("--seed", type=int, default=4, help="seed of the data and of the start")
parser.add_argument("--out", type=Path, default=Path("universal.png"), help="the picture to write")
args = parser.parse_args()
k, random = args.clusters, np.random.default_rng(args.seed)
X, _ = make_blobs(900, 2, centers=k, cluster_std=0.045, center_box=(0, 1), random_state=args.seed)

# %%
# Exact iterations from random samples end in an optimum that is not the best.
stuck = TransformerKMeans(k, init="random", n_init=1, random_state=args.seed).fit(X)

# %%
# Samples far from their center become centers, and the network moves all k + m of them, for two steps.
near = cdist(X, stuck.cluster_centers_, "sqeuclidean").min(1)
added = X[random.choice(len(X), args.added, replace=False, p=near / near.sum())]
network = load_checkpoint("universal")
path = [torch.tensor(np.vstack([stuck.cluster_centers_, added]), dtype=torch.float32)[None]]
samples = torch.tensor(X, dtype=torch.float32)[None]
with torch.no_grad():
    for _ in range(2):
        path.append(network.step(samples, path[-1]))
path = np.concatenate([centers.numpy() for centers in path])  # (3, k + m, 2)

# %%
# One after the other, the center goes that the samples miss least; exact iterations follow.
kept = list(range(k + args.added))
for _ in range(args.added):
    loss = [cdist(X, np.delete(path[-1][kept], i, 0), "sqeuclidean").min(1).sum() for i in range(len(kept))]
    del kept[int(np.argmin(loss))]
moved = TransformerKMeans(k, init=path[-1][kept].astype(float), n_init=1).fit(X)
universal = TransformerKMeans(k, init="random", n_init=1, random_state=args.seed, weights="universal").fit(X)
for name, fit in {"exact": stuck, "one move": moved, "universal": universal}.items():
    print(f"{name + ':':10} inertia {fit.inertia_:.4f}")

# %%
# Four pictures of the way.
figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
titles = (
    f"1. stuck, inertia {stuck.inertia_:.2f}",
    f"2. {args.added} more centers, 2 steps",
    f"3. {args.added} removed",
    f"4. exact again, inertia {moved.inertia_:.2f}",
)
for ax, title in zip(axes, titles, strict=True):
    ax.scatter(*X.T, s=4, color="0.75", linewidths=0)
    ax.set_title(title)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
axes[0].scatter(*stuck.cluster_centers_.T, s=45, color="C3")
for way in path.transpose(1, 2, 0):
    axes[1].plot(*way, color="C0", linewidth=1.5)
axes[1].scatter(*path[-1].T, s=45, color="C0")
axes[1].scatter(*added.T, s=45, facecolor="none", edgecolor="C1", linewidths=1.5)
gone = sorted(set(range(k + args.added)) - set(kept))
axes[2].scatter(*path[-1][kept].T, s=45, color="C0")
axes[2].scatter(*path[-1][gone].T, s=45, color="C3", marker="x")
axes[3].scatter(*moved.cluster_centers_.T, s=45, color="C2")
figure.savefig(args.out, dpi=100)
