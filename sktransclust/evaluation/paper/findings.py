"""Why a claim of the paper fails in the tables of the documentation, by the claim's name."""

FINDINGS: dict[str, str] = {
    "smoothing-gap-vanishes-at-16": """
The number is the mean, over OH and BN, of the difference in Eq. 20 over the whole training. For the smoothed
loss the difference does vanish: at the end NE's is 2.5 to 2.6 times L2's at d = 4, and 1.10 to 1.11 times at
d = 16. For Eq. 20 the two codes disagree at d = 16: over the last tenth of the training L2 is 11 % below NE
with OH (0.871 and 0.978), and 7 % above it with BN (0.986 and 0.919), while at d = 4 it is below NE with both
(by 11 and 7 %). There is one seed, where the paper has ten; whether more of them would cancel these
differences was not tried.
""",
    "surfaces-are-unimodal": """
Three of the four surfaces have one minimum. That of OH at d = 4 has a second point that is lower than its
eight neighbours, near the border (a = 0.83, b = 0.17): its loss is 131, that of the minimum in the middle 28,
that of the highest point 2265. The dip is 1.1 deep: from there to the middle no point above 132.1 has to be
passed. The true loss has it too, so it does not come from the smoothing. This is the mean over 16 tasks on a
grid of 25 x 25, and the test is stricter than the paper's words, "fairly unimodal".
""",
    "twice-the-scale": """
The number of test samples is not the reason: on 32 tasks of 512 samples the same two models end above Lloyd
too, by 0.048 (OH) and 0.090 (BN), with a standard error of 0.02. What differs from the paper is their
training: 8000 steps of 8 tasks of 128 samples, where the paper has 10,000 of 32 tasks of 512, and a single
seed; at the end Eq. 20 was still falling. The margin shrinks as the components grow: on tasks of 128
samples both end below Lloyd at scales of 0.1 (by 0.218 and 0.150) and 0.15 (0.070 and 0.021), and above it
at 0.2 (0.035 and 0.073) and 0.3 (0.133 and 0.126). The networks that come with the package are trained on a
mixture in which a quarter of the tasks have scale 0.2, OH for 10,000 steps of 8 tasks, BN for 15,000 of 16,
with clipped gradients. At scale 0.2 they end below Lloyd with 512 samples, by 0.050 (OH) and 0.067 (BN), but
not with 128, where they are above it by 0.024 and 0.002. Which of these differences in training matters was
not tried.
""",
    "forward-speedup-at-1000": """
Measured on one core of a CPU that did other work too, one task at a time, median of five passes. BN's own
pass takes 23 ms at k = 100 and 108 ms at k = 1000, though its tokens grow from 39 to 42 numbers only: what
grows are the matrices of 1024 samples by k centers, which both codes have, and which bound the ratio. The
backward pass, 15.9 times as fast where the paper has 9.54, does better than the paper's.
""",
    "memory-saved-at-1000": """
A matrix of 1024 samples by 1000 centers takes 4.1 MB whatever the code. With fused attention, which holds
fewer of them, BN takes 34.1 MB in place of 45.5, and saves 73.9 %.
""",
    "cauchy-trained-models-diverge": """
On every family, all of these models fall a little for one to six steps and then rise without an end in sight;
at step 20, nine of ten with a code are above where they began. The tenth, OH:L2 on Laplace tasks, has risen
since step 6, and is still 0.023 below its beginning: within 20 steps, it is not yet a divergence by our test.
""",
    "smaller-tau-lowers-the-loss": """
At d = 4 it holds for every code and smoothing. At d = 32 it holds down to tau = 0.14; from there to 0.1 the
loss of three of the four models with a code changes by 2 % or less, up or down, and that of BN:L2 rises by
4.5 %, from 77.1 to 80.6 over the last tenth of the training, in which single validations scatter by 1 %
around their mean. There is one seed, where the paper has ten. The losses are of different smoothings: at d
= 32 they have met the true loss already, so that a smaller tau has little left to lower.
""",
    "smoothing-gap-vanishes-with-d": """
With tau = 0.25 it does, from 4.1 to 0.6 %. With tau = 0.1 there is little that could vanish: the difference
is 2.5 % at d = 4, 0.8 % at d = 8 and 3.1 % at d = 32, where models of one code end at 0.93 and 0.95 (BN)
and 0.86 and 0.95 (OH), a difference in the size of that between two trainings. The smoothed losses do meet:
at tau = 0.1 NE's is 1.5 times L2's at d = 4, and between 0.96 and 1.02 times at d = 32.
""",
    "codes-beat-lloyd-for-four-families": """
Fifteen of the sixteen models end below Lloyd, between 0.85 and 0.98. BN:NE on Laplace tasks ends at 1.002,
the mean over its last eight validations, which lie between 0.991 and 1.016: it matches Lloyd and does not
yet beat it. Trainings here have 8000 steps of 8 tasks of 128 samples, where the paper's have 10,000 of 32
tasks of 512, and one seed.
""",
    "gap-is-small-for-normal": """
The largest gap, 0.54, is at a point beside the trained weights, at which it is 0.42. See the last of these
three.
""",
    "gap-is-large-for-cauchy": """
See the next one: with tasks of 512 samples, the gap is 6.2.
""",
    "gap-grows-for-cauchy": """
Cauchy tasks scale by their range, which grows with the number of samples: the middle of those of 128
samples fills four times as much of a dimension as that of the paper's 512. On 16 tasks of 512 samples the
same two models have gaps of up to 0.54 (normal) and 6.2 (Cauchy) on a grid of 9 x 9, a factor of 11; on
that grid, tasks of 128 have 0.45 and 4.7. So it is the number of samples that makes the gap of Cauchy tasks
less than the paper's 5 here, and the factor less than 10. The gap of normal tasks exceeds the paper's 0.5,
by a tenth, with either number.
""",
    "number-of-samples-does-not-matter": """
Our test allows a spread of 10 %: eleven of the twelve curves lie within it, between 4 and 10 %. The
twelfth, OH:NE at d = 4, ends at 0.95, 0.89, 0.90 and 1.01 for 32, 64, 128 and 256 samples. No curve rises
or falls with the number throughout, and codes and dimensions do not agree on a direction. With one seed, a
spread of this size cannot be told from that between two trainings.
""",
    "codes-beat-lloyd-for-both-k": """
All sixteen models for k = 6 end below Lloyd, between 0.86 and 0.98, and fifteen of those for k = 10. The
one that fails is BN:NE on Laplace tasks, at 1.002; see Fig. 4.
""",
    "ne-fails-for-gumbel-and-laplace": """
With k = 10 NE ends above Lloyd on both families, at 1.05 to 2.6. With k = 6 it comes close to Lloyd: at
0.98 (OH) and 1.000 (BN) on Gumbel tasks, 0.99 and 1.005 on Laplace tasks. There L2 with the same code is
below NE on Gumbel tasks (0.94 and 0.91), and no better on Laplace tasks (1.01 and 1.00). Tasks here have
128 samples where the paper has 512, and there is one seed.
""",
    "oh-beats-lloyd-at-d-4": """
With k = 6 and 10 it does, at 0.89. With k = 16 it ends at 1.018, and was still falling (1.041 over the
eight validations before the last eight); with k = 25 it ends at 1.020, and has not changed for 1600 steps.
Trainings here have 8000 steps of 8 tasks of 128 samples, where the paper's have 10,000 of 32 tasks of 512,
and one seed.
""",
    "l2-beats-lloyd-at-d-32-tau-1": """
Seven of the eight models end below Lloyd, between 0.87 and 0.97. BN:L2 with k = 25 ends at 1.028, the mean
of its last eight validations, which lie between 0.99 and 1.06; over the eight before it was 1.128. Its
training is not over: see the last one.
""",
    "codes-beat-lloyd-at-d-32": """
Fourteen of the sixteen models end below Lloyd, between 0.86 and 0.99. The other two are those of BN with k =
25, at 1.011 (L2) and 1.013 (NE), from 1.037 and 1.082 over the eight validations before the last eight: they
reach Lloyd about when our 8000 steps end. With clipped gradients L2 ends below Lloyd, at 0.995, and NE does
not, at 1.033; one of its last eight validations is at 1.25. With one seed this does not tell whether clipping
helps.
""",
    "bn-is-faster-against-time-at-25": """
A step of BN takes 0.84, 0.78 and 0.65 times as long as one of OH with 64, 128 and 256 samples. Eq. 20 has
fallen to 1.65 after 29 s with BN against 32 s with OH, 26 against 27 and 41 against 43: a lead of at most
four validations. At 1.75 with 64 samples, and at 1.9 with 128, OH leads, by less. Our test looks later,
half-way down to the end: there OH is ahead with 64 and 128 samples, for BN needs 1.4 to 1.5 times as many
steps by then. Step times are medians of two rounds of ten steps.
""",
}
