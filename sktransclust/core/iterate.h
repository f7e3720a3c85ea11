// Iterations of Lloyd's algorithm: what is kept from one to the next, and what the last one finds.

#ifndef SKTRANSCLUST_ITERATE_H
#define SKTRANSCLUST_ITERATE_H

#include "kernel.h"

// `library.py` mirrors this structure field by field. All arrays are the caller's.
struct State {
    int64_t chunk_rows;
    int64_t n_threads;
    // What the last iteration left; valid while the labels are its labels.
    int64_t valid;
    int64_t n_since;         // labels that changed since the sums were added up anew
    double *last;            // (n_clusters, n_features): its centers
    double *own;             // (n_clusters,): how far each center has moved, added up, rounded up
    double *drift;           // (n_clusters,): plus how far all others have; see kernel.h, as for the next ones
    double *others;
    double *still;
    int32_t *movers;         // (n_clusters,)
    double *sums;            // (n_clusters, n_features): of the samples of each label, as are the next two
    double *cluster_weights; // (n_clusters,)
    double *masses;          // (n_clusters,)
    double *peaks;           // (2, n_clusters): the largest weight and mass since sums were added up anew
    // Until when iterations follow each other without the caller; see `end_iteration`.
    int64_t n_ahead;         // how many may
    double tol;
    double least_spread;
    double *passed;          // (n_ahead,): the spreads of those that another one followed
    int64_t n_passed;
    // What the last one finds.
    double *centers;         // (n_clusters, n_features): where it began; those of the problem
    int64_t n_changed;
    int64_t *doubtful;       // (n_samples,): samples that are left to the caller
    double *means;           // (n_clusters, n_features): the old center where a cluster is empty
    double shift;            // the sum of the squared distances from centers to means
    double spread;           // the inertia of the centers, less the weighted squared lengths of the samples
};

// Labels all samples but the doubtful ones; returns how many these are, or -1 for lack of memory.
int64_t begin_iteration(const Kernels &kernels, int kind, Problem &problem, State &state);

// Takes up the caller's labels of the first `n_decided` doubtful samples, which have to be all, and finds the means.
// Goes on from these as long as labels change, the shift exceeds `tol`, the spread `least_spread`, and no cluster is
// empty. Returns 0 then, or how many samples of a further iteration are doubtful, or -1 for lack of memory.
int64_t end_iteration(const Kernels &kernels, int kind, Problem &problem, State &state, const int32_t *decided,
                      int64_t n_decided);

#endif
