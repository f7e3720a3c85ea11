"""Words of the documentation's page that no table holds: what was chosen where the paper is silent."""

INTRODUCTION = """
Every figure and table of the paper by one command, with the extra ``paper``::

    sktransclust reproduce fig2 fig6 --profile laptop --out results
    sktransclust claims results

The first trains the models that the figures need, each once however many figures need it, and writes a
table (``fig2.csv``) and the figure drawn from that table alone (``fig2.svg``, ``fig2.png``). A run that was
stopped goes on with ``--resume``. The second prints what the paper claims, and whether it holds in the
tables. There are three profiles: ``smoke`` takes minutes and only proves that everything runs; ``laptop``
is what two cores can do in a few hours, with fewer and shorter trainings, and tasks of 128 samples where
the paper has 512; ``paper`` has the paper's own settings and wants a GPU. ``--seeds N`` trains N models a
curve.

Colors name the codes of the clusters: blue OH (one-hot), orange BN (binary), green NA (none). Solid lines
are models trained with L2 (sparsemax), dashed ones with NE (softmax). Lines are medians over the seeds,
ribbons the quartiles.

One core trains the 342 models of the ``laptop`` profile in six to seven hours, to judge by the 9 and 20 ms
that a step of one model takes with 16 tasks of 4 and 32 features. That has not been done yet: figures that
need these models are marked below, with the command that makes them. What trainings that were stopped had
shown by then, one seed each, with 8 tasks of 128 samples a step and tau = 0.1: for d = 4 and k = 6, OH is
at 1.02 (Eq. 20) after 2500 steps; for d = 32 and k = 10, BN is at 1.25 to 1.27 after 3000 steps, and OH
with L2 at 1.10 to 1.12 after 4000. Up to step 1500 all of them stay above 1.6. So short trainings say
nothing about the paper's claims. With tau = 1 and d = 4, Eq. 20 of OH:NE rises from 3.54 at step 500 to
3.76 at step 2500, as in the paper.

What the paper does not state was chosen so: projections have no biases; Adam's learning rate is halved
where Eq. 20 stops falling; clipping, where there is any, is to the norm 1; the models of Fig. 3 are trained
with tau = 0.1, those of Fig. 5 are BN:L2; losses of surfaces are sums over the samples, scaled to 512 of
them, averaged over tasks. Tab. 2 and 3 look at networks that come with the package.
"""

NOTES: dict[str, str] = {
    "fig1": """
Above, the samples' self-attention holds its n x n matrix, as in the paper; below, the same layer with
PyTorch's fused attention. Percentages are what BN saves. Memory is the peak of the allocations that
PyTorch's profiler sees during a forward and backward pass in a fresh process, without the tensors of
exactly the size of the n x n matrices.
""",
    "fig6": """
Black lines that are not in the paper: Lloyd's iterations from k-means++ seeding, and the final objective of
scikit-learn's ``KMeans`` with one start and with ten. All other lines begin with the same random samples as
centers.
""",
    "fig17": """
The time of a step is measured for each model alone, in turn with the other one, and multiplied by the
number of steps.
""",
    "tab1": """
"fused" is the same layer with PyTorch's fused attention in place of the n x n matrix; see the note to Fig.
1.
""",
    "tab2": """
Each attention of a trained network is perturbed in its value, query and key projections and its key tokens,
by 1, 10 and 100 percent of their norm. The numbers are logarithms to base 10 of the largest ratio of
changes and of its bound, for the perturbation that comes closest to its bound. For the value projections
the bound is a factor of two to thirty above what happens. All other constants contain the exponential of
delta, and say nothing about trained networks, whose projections are large: they are met with hundreds to
ten thousands of orders of magnitude to spare.
""",
    "tab3": """
rho and rho' are the largest norms of query and key tokens, delta the largest difference of two scores of a
query.
""",
    "cauchy": """
Models are trained and tested on tasks scaled in one of four ways: each dimension divided by its range, as
in the paper (``per_dimension``); all dimensions divided by the largest range (``scalar``); each dimension
shifted and divided so that its 5 % quantile becomes 0 and its 95 % quantile 1, the rest lying outside
(``quantile``); and the same with the rest moved to the border (``clipped``). *Middle range* is the length,
in a dimension, of the interval that the middle nine tenths of the samples fill: where it is small, almost
all samples are in a corner of the cube.
""",
    "bundled": """
All lines but "Lloyd from k-means++" and ``KMeans`` begin with the same random samples as centers. The
networks are for d = 32 and k = 10, trained on a mixture of tasks without Cauchy ones; see :doc:`learning`.
No exact iterations follow their steps here, as they do in the estimator.
""",
}
