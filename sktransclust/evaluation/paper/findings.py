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
}
