"""Words of the documentation's page that no table holds: what was chosen where the paper is silent."""

INTRODUCTION = """
Every figure and table of the paper by one command, with the extra ``paper``::

    sktransclust reproduce fig2 fig6 --profile laptop --out results
    sktransclust claims results

The first trains the models that the figures need, each once however many figures need it, and writes a
table (``fig2.csv``) and the figure drawn from that table alone (``fig2.svg``, ``fig2.png``). A run that was
stopped goes on with ``--resume``. The second prints what the paper claims, and whether it holds in the
tables. There are three profiles: ``smoke`` takes minutes and only proves that everything runs; ``laptop``
takes at most 6 hours on two cores for everything, with fewer and shorter trainings, and tasks of 128
samples where the paper has 512, and a quarter of its other numbers too; ``paper`` has the paper's own
settings and wants a GPU. ``--seeds N`` trains N models a curve.

Colors name the codes of the clusters: blue OH (one-hot), orange BN (binary), green NA (none). Solid lines
are models trained with L2 (sparsemax), dashed ones with NE (softmax). Lines are medians over the seeds,
ribbons the quartiles.

A step of one model of four features, with 8 tasks of 128 samples, takes one core 5.4 ms while nothing else
runs. All 342 models of the ``laptop`` profile take about 11 to 12 core-hours, to judge by what was done of
them on a busy machine: at most six hours with two cores, if each runs one command with its part of the
figures. All of them are trained, of one seed each.

Short trainings say nothing about the paper's claims. Eq. 20 of the models of Fig. 6 with a code is above 1.7
after 1000 steps and first below 1 between steps 4600 and 5400; over the last 800 of 8000 steps its mean is
0.90 (OH:L2), 0.92 (OH:NE and BN:L2) and 0.95 (BN:NE). Without a code it is 1.52 (L2) and 1.53 (NE).

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
    "fig2": """
With one seed, two of these verdicts are close: BN:NE ends at 0.999 for d = 4 and tau = 0.1, and OH and BN
with L2 at 1.01 for tau = 1.
""",
    "fig6": """
Black lines that are not in the paper: Lloyd's iterations from k-means++ seeding, and the final objective of
scikit-learn's ``KMeans`` with one start and with ten. All other lines begin with the same random samples as
centers.
""",
    "fig12": """
In the titles n is the paper's number of samples; tasks of the laptop profile have a quarter of it.
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

On normal tasks every scaling works: all eight models end below Lloyd. On Cauchy tasks the paper's scaling
ends 15 % above Lloyd in one step, and above it after 20. Division by one scalar is worse. To give the bulk
its size back is worse still, as long as the tails stay (Eq. 20 of 1.56). With the tails cut off, models with
both codes end below Lloyd, in one step by 1 % and after 20 steps by 4 % in the mean of the logarithm. So it
is the tails that make training on Cauchy tasks fail, and not that the bulk is small. Each line is one model,
of one seed.
""",
    "scalings": """
No training takes part: 32 tasks of 512 samples of each family and scaling, clustered by 20 of Lloyd's
iterations from random samples. *Margin* is how much farther (squared) than the nearest center the second
nearest is, for the median sample, in units of tau = 0.1; *smoothed / true loss* is Eq. 6 with L2 over the
inertia, for these centers; then the share of the inertia that the 1 % farthest samples have, and the
inertia of the start over that of these centers.

The range of n Cauchy samples grows in proportion to n, the length that their middle nine tenths fill does
not. Divided by each dimension's range, as in the paper, this bulk fills 3 % of a dimension, against 56 to
70 % for the other families. Squared distances in it are far below tau: with a margin of 0.04 tau the
smoothed loss hardly tells the nearest center from the next one, and it exceeds the true loss by 10 %,
against 0.1 to 0.3 %. There is also little to learn: Lloyd's iterations lower the inertia by a factor of
1.15 only, against 2.4 to 3.1. Division by one scalar, the largest of the 32 ranges, shrinks the bulk to 0.1 %
of a dimension and the margin to 0.002 tau, the smoothed loss is twelve times the true one, and 1 % of the
samples has 62 % of the inertia, against 3 %. Quantiles give the bulk its size back, but the tails stay, and
with them that share. Only clipped Cauchy tasks come near the other families in all five numbers.

So by the paper's scaling Cauchy tasks are unlike all others in what the loss sees. If the small bulk is why
training on them fails, both ways of scaling by quantiles should mend it; if the tails are, only the clipped
one. :ref:`The trainings above <cauchy>` say that it is the tails.
""",
    "bundled": """
All lines but "Lloyd from k-means++" and ``KMeans`` begin with the same random samples as centers. The
networks are for d = 32 and k = 10, trained on a mixture of tasks without Cauchy ones; see :doc:`learning`.
No exact iterations follow their steps here, as they do in the estimator.
""",
}
