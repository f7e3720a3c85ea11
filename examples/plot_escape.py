"""
Escape where Lloyd's iterations are stuck
=========================================

Lloyd's iterations never leave the valley they start in: two centers that share a cluster keep sharing it. A
trained network takes longer steps. Here both begin with the same random samples as centers, and exact
iterations finish both, so that each ends in a solution of k-means.

Run it with ``python examples/plot_escape.py``; ``--help`` lists the settings.
"""

# %%
import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from sktransclust import TransformerKMeans
from sktransclust.checkpoint import load_checkpoint

# %%
# The settings. The start that is drawn was chosen as one where Lloyd's iterations get stuck; the numbers that
# are printed count many starts.
parser = argparse.ArgumentParser(description="Learned steps and Lloyd's iterations from the same start.")
parser.add_argument("--weights", default="binary-l2-d2-k4", help="a checkpoint for two features")
parser.add_argument("--seed", type=int, default=1, help="seed of the data")
parser.add_argument("--start", type=int, default=13, help="seed of the start that is drawn")
parser.add_argument("--starts", type=int, default=100, help="number of starts that are counted")
parser.add_argument("--out", type=Path, default=Path("escape.png"), help="the picture to write")
args = parser.parse_args()

# %%
# As many round clusters as the network is for.
network = load_checkpoint(args.weights)
k = network.config.n_clusters
X, _ = make_blobs(400, 2, centers=k, cluster_std=0.06, center_box=(0, 1), random_state=args.seed)


# %%
# Both fits of a start are given the same initial centers.
def random_start(seed):
    """Return k different samples."""
    return np.random.default_rng(seed).choice(X, k, replace=False)


def fit_both(start):
    """Fit by Lloyd's iterations alone, and with learned steps before them."""
    settings = {"n_clusters": k, "init": start, "n_init": 1}
    learned = TransformerKMeans(**settings, weights=network, embedding=network.config.embedding)
    return TransformerKMeans(**settings).fit(X), learned.fit(X)


start = random_start(args.start)
lloyd, learned = fit_both(start)
for name, model in {"Lloyd": lloyd, "learned": learned}.items():
    print(f"{name + ':':8} from inertia {model.inertia_history_[0]:.4f} to {model.inertia_:.4f}")

# %%
# One start proves little, so count.
fits = [fit_both(random_start(seed)) for seed in range(args.starts)]
inertias = np.array([[model.inertia_ for model in pair] for pair in fits])
ratio = inertias[:, 1] / inertias[:, 0]
means = inertias.mean(axis=0)
print(f"mean inertia of {args.starts} starts: Lloyd {means[0]:.4f}, learned {means[1]:.4f}")
print(f"learned lower: {np.sum(ratio < 1 - 1e-6)}, learned higher: {np.sum(ratio > 1 + 1e-6)}")


# %%
# Circles are the start, disks the end, and the curves the inertia on the way.
def draw(ax, model, title):
    """Draw samples by their cluster, and the way of each center."""
    colors = plt.get_cmap("tab10")(np.arange(k))
    ax.scatter(*X.T, s=10, color=colors[model.labels_], alpha=0.5, linewidths=0)
    for begin, end, color in zip(start, model.cluster_centers_, colors, strict=True):
        ax.annotate("", end, begin, arrowprops={"arrowstyle": "->", "color": "0.3"})
        ax.scatter(*begin, s=50, facecolor="white", edgecolor=color, linewidths=1.5, zorder=3)
        ax.scatter(*end, s=70, facecolor=color, edgecolor="black", linewidths=1.2, zorder=4)
    ax.set(title=title, xticks=[], yticks=[], aspect="equal")


fig, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
draw(left, lloyd, f"Lloyd's iterations: inertia {lloyd.inertia_:.2f}")
draw(middle, learned, f"learned steps, then Lloyd's: inertia {learned.inertia_:.2f}")
right.plot(lloyd.inertia_history_, color="black", label="Lloyd's iterations")
right.plot(learned.inertia_history_, color="tab:red", label="learned steps, then Lloyd's")
right.axvline(learned.n_steps, color="0.6", linestyle=":", label="exact iterations begin")
right.set(title="inertia before each update", xlabel="update", yscale="log")
right.legend()
fig.savefig(args.out, dpi=100)
print(f"wrote {args.out}")
