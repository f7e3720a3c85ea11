// What is asked of all samples once.

#ifndef SKTRANSCLUST_SURVEY_ALL_H
#define SKTRANSCLUST_SURVEY_ALL_H

#include "kernel.h"

// Who does it; `library.py` mirrors this structure field by field.
struct Crew {
    int64_t chunk_rows;
    int64_t n_threads;
};

// Writes to `found` the sum, the least and the largest of each feature's values, (3, n_features). Of the problem,
// the values and their shape are used. Returns -1 for lack of memory, else 0, as does the next one.
int64_t survey_all(const Kernels &kernels, int kind, const Problem &problem, const Crew &crew, double *found);

// Writes lengths, and to `found` the sum of the samples, then the sum of their squared lengths, plain and weighted.
// The score frame has to be the reference frame.
int64_t moments_of_all(const Kernels &kernels, int kind, const Problem &problem, const Crew &crew, double *found);

#endif
