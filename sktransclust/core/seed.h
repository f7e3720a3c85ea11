// Greedy k-means++, one center after the other.

#ifndef SKTRANSCLUST_SEED_H
#define SKTRANSCLUST_SEED_H

#include "kernel.h"

// Makes the only candidate the first center. Returns -1 for lack of memory, as does the next one.
int64_t begin_seeds(const Kernels &kernels, int kind, const Problem &problem, Seeds &seeds);

// Chooses further centers, each of them the candidate that gains most, and writes their samples and gains. `shares`
// are uniform numbers in [0, 1), of shape (count, n_candidates), that draw the candidates.
int64_t extend_seeds(const Kernels &kernels, int kind, const Problem &problem, Seeds &seeds, const double *shares,
                     int64_t count, int64_t *samples, double *gains);

#endif
