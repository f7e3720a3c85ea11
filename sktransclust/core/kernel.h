// What `compiled.py` hands to a kernel, and what a set of kernels is.

#ifndef SKTRANSCLUST_KERNEL_H
#define SKTRANSCLUST_KERNEL_H

#include <stdint.h>

// Samples and centers; `compiled.py` mirrors this structure field by field. T is the data's type.
struct Problem {
    const void *values;       // T, (n_samples, n_features), of any strides
    int64_t row_stride;       // in elements, as is the next one
    int64_t column_stride;
    const void *shift;        // T, (n_features,)
    double scale;             // a power of two: local coordinates are (value - shift) * scale
    const void *lengths;      // T, (n_samples,): of the samples in local coordinates; null if unknown
    const double *weights;    // (n_samples,); null for 1
    const void *panels;       // T, (n_panels, n_features, panel_width): keys times -2
    const void *key_norms;    // T, (n_panels, panel_width): their squared lengths, infinite past the last key
    const double *centers;    // (n_clusters, n_features): in the reference frame
    double reference_scale;   // 0 if that is the score frame; else reference coordinates are value * reference_scale
    int64_t n_clusters;
    int64_t n_features;
    int64_t n_panels;
    int64_t panel_width;      // 1 to 6
    double bound[3];          // coefficients of 1, r and r^2 in the bound; r is the length of a sample
    double longest;           // longer samples are doubtful
    const int32_t *previous;  // (n_samples,): labels to count changes against; null to assign alone
    int32_t *labels;          // (n_samples,): written where they are certain
    double *sums;             // (n_clusters, n_features): certain samples are added, unless assigning alone
    double *cluster_weights;  // (n_clusters,)
};

// Labels samples start..stop and writes the indices of doubtful ones, in order, to `doubtful`, of shape
// (stop - start,). Adds to `n_changed`. Returns how many are doubtful, or -1 for lack of memory.
typedef int64_t (*Assign)(const Problem *problem, int64_t start, int64_t stop, int64_t *doubtful,
                          int64_t *n_changed);

// The kernels of one instruction set.
struct Kernels {
    const char *name;
    Assign assign_float;
    Assign assign_double;
};

#endif
