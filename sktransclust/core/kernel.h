// What `compiled.py` hands to a kernel, and what a set of kernels is.

#ifndef SKTRANSCLUST_KERNEL_H
#define SKTRANSCLUST_KERNEL_H

#include <stdint.h>

// Samples and centers; `library.py` mirrors this structure field by field. T is the data's type.
struct Problem {
    int64_t n_samples;
    const void *values;       // T, (n_samples, n_features), of any strides
    int64_t row_stride;       // in elements, as is the next one
    int64_t column_stride;
    int64_t n_features;
    // Of sparse samples: `values` are their stored entries, and strides and shift mean nothing.
    const int64_t *offsets;   // (n_samples + 1,): where each sample's entries begin; null for dense samples
    const void *columns;      // of each entry, int32 or int64
    int64_t wide_columns;     // whether int64
    int64_t n_terms;          // the most products that a score is a sum of
    const void *shift;        // T, (n_features,)
    double scale;             // a power of two: local coordinates are (value - shift) * scale
    double reference_scale;   // 0 if that is the reference frame also; else value * reference_scale is in it
    void *lengths;            // T, (n_samples,): of the samples in local coordinates; null if unknown
    const double *weights;    // (n_samples,); null for 1
    int64_t n_clusters;
    const double *centers;    // (n_clusters, n_features): in the reference frame
    const double *keys;       // the same in local coordinates
    // From here to `length_error` filled in by `pack`.
    void *panels;             // T, (n_panels * panel_width, n_features): keys times -2, then zeros; the other way
                              // round, (n_features, n_panels * panel_width), for sparse samples
    void *key_norms;          // T, (n_panels * panel_width,): squared lengths of keys; infinite where none can win
    int64_t n_panels;         // panels and norms have room for n_clusters + 16 keys
    int64_t panel_width;      // 1 to 6; what a register holds for sparse samples
    double reach;             // the largest length of a key
    int64_t distinct;         // whether no center repeats another
    double bound[3];          // coefficients of 1, r and r^2 in the bound; r is the length of a sample
    double longest;           // longer samples are doubtful
    double certainty;         // what bounds have to differ by, relatively, to decide
    double length_error;      // relative error of a squared length, with room for a few roundings
    // Bounds that are kept from one iteration to the next; see bounds.h.
    void *until;              // T, (n_samples,): the drift below which a sample keeps its label; null for none
    void *lower;              // T, (n_samples,): at most the distance to other centers, plus their drift
    const double *drift;      // (n_clusters,): how far centers and all others have moved, added up, rounded up
    const double *others;     // (n_clusters,): the part of all others
    int64_t bounded;          // whether the bounds hold for the labels
    // Of the last moves; see bounds.h.
    const int32_t *movers;    // (n_movers,): the centers that have moved farthest; a multiple of panel_width
    int64_t n_movers;
    const double *still;      // (n_clusters,): as `others`, but without the last moves of the movers
    // Of each center; see neighbours.h.
    const int32_t *near;      // (n_clusters, n_near): itself, then the nearest others in their order
    int64_t n_near;           // a multiple of panel_width; 0 for none
    const double *gaps;       // (n_clusters, n_near + 1): at most their distances, and that to any other
    // Of samples that lie in cells; see cells.h.
    void *cells;              // T, (n_features + 1, room for n_cells): their middles, in local coordinates, and the
                              // lengths of these; null for none
    void *radii;              // T, (n_cells,): at least the distances of their samples from these, with the same room
    void *lanes;              // T, (room for n_cells, n_features * CELL): the samples as registers take them
    int32_t *cell_labels;     // (n_cells,): the label that all samples have; -1 where they have several
    int32_t *labels;          // (n_samples,): overwritten by new ones
    int64_t only_changes;     // add up what changes: samples of another label than before leave their old cluster
    double *sums;             // (n_clusters, n_features); null to assign alone
    double *cluster_weights;  // (n_clusters,)
    double *masses;           // (n_clusters,): weights times lengths; used where lengths are known
    uint8_t *touched;         // (n_clusters,): set to 1 where something is added; null if nobody asks
};

const int64_t SPARSE_POINTS = 8;    // that lie side by side; known to `library.py` too, as is the next one
const int64_t SEEDING_BLOCK = 512;  // samples of a block
const int64_t CELL = 32;            // samples of a cell

// What greedy k-means++ keeps of the samples; `library.py` mirrors this structure field by field. Arrays of shape
// (n_blocks, SEEDING_BLOCK) have a place for each sample; absent samples have a nearest center at distance 0.
//
// Samples in cells are blocks in the order of the problem, but for what draws depend on: that is in the order that the
// samples had before.
struct Seeds {
    double *nearest;      // (n_blocks, SEEDING_BLOCK): squared distances to the nearest center so far
    double *drawn;        // the same as before cells; the same memory without
    void *squares;        // T, (n_blocks, SEEDING_BLOCK): squared lengths, in local coordinates
    void *limits;         // T, (n_blocks, SEEDING_BLOCK): scores that are not below cannot mean a smaller distance
    uint16_t *marks;      // (n_blocks, SEEDING_BLOCK): a bit for each candidate that may be closer
    double *sums;         // (n_blocks,): weights times squared distances; as before cells
    double weight_scale;  // a power of two, times which weights are at most 1
    // The samples of each block that are closer to the candidate whose gain was found last.
    int64_t *n_closer;    // (n_blocks,)
    uint16_t *places;     // (n_blocks, SEEDING_BLOCK): first these samples, counted from the block's first
    double *closer;       // (n_blocks, SEEDING_BLOCK): and their squared distances
    double *found;        // (n_blocks,): by how much that candidate makes the sum less
    int64_t pending;      // whether it is a center by now
    double *gains;        // (n_blocks, n_candidates): bounds on how much candidates make the sum less
    int64_t *candidates;  // (n_candidates,): samples; at most 16
    int64_t n_candidates;
    int64_t n_threads;
    int64_t chunk_work;   // what is worth a thread, in features of samples times candidates
    const double *weights;  // (n_samples,): as before cells; null for 1
    // Of samples in cells; null without.
    const int64_t *order;   // (n_samples,): which sample each was before cells
    const int64_t *places_in_order;  // (n_samples,): where each sample is now
    void *reaches;          // T, (room for n_cells,): at least the distances of their samples to the nearest center
    uint16_t *open;         // (n_blocks,): a bit for each cell in which some sample may be closer to a candidate
    uint8_t *stale;         // (n_blocks,): whether the sum is to be found anew
};

// The kernels of one instruction set, each for float and for double.
struct Kernels {
    const char *name;
    // Fills in what `Problem` says.
    void (*pack[2])(Problem *);
    // Labels samples start..stop where that is beyond doubt and, unless assigning alone, adds those to their
    // clusters and the changes to `n_changed`. Writes the indices of the others to `doubtful`, of shape
    // (stop - start,); they keep their labels, or get any when assigning alone. Returns how many these are, or -1 for lack of memory.
    int64_t (*assign[2])(const Problem *, int64_t start, int64_t stop, int64_t *doubtful, int64_t *n_changed);
    // Writes the middles and the radii of the cells of samples start..stop.
    void (*enclose[2])(const Problem *, int64_t start, int64_t stop);
    // Does what `assign` does for the samples `rows`, given their new labels.
    void (*decide[2])(const Problem *, const int64_t *rows, const int32_t *labels, int64_t count,
                      int64_t *n_changed);
    // Writes the squared distances of samples start..stop to the centers of their labels. `point` is scratch
    // memory of n_features numbers, here and below.
    void (*squares[2])(const Problem *, int64_t start, int64_t stop, double *point, double *squared);
    // Adds samples start..stop to the clusters of their labels.
    void (*sums[2])(const Problem *, int64_t start, int64_t stop);
    // Adds the values of each feature to `found`, and compares them with the least and the largest there;
    // (3, n_features).
    void (*survey[2])(const Problem *, int64_t start, int64_t stop, double *found);
    // Writes lengths; adds the samples to `sums`, and their squared lengths, plain and weighted, to `squares`. The
    // score frame has to be the reference frame. Returns -1 for lack of memory, else 0.
    int64_t (*moments[2])(const Problem *, int64_t start, int64_t stop, double *squares);
    // Of sparse samples; see sparse.h.
    void (*sparse_squares[2])(const Problem *, int64_t start, int64_t stop, const double *squares, double *point,
                              double *squared);
    int64_t (*sparse_moments[2])(const Problem *, int64_t start, int64_t stop, double *squares);
    void (*sparse_pairs[2])(const Problem *, int64_t start, int64_t stop, const double *beside,
                            const double *squares, double *point, double *squared);
    // Greedy k-means++ on blocks start..stop; all return -1 for lack of memory, else 0. The first candidate becomes
    // the first center; or marks and bounds on gains are found, and what the next one finds unless `candidate` is
    // negative; or the gain of one of the same candidates, and the samples that are closer to it; or these get it as
    // their center; or the stale sums of blocks are found anew.
    int64_t (*begin_seeding[2])(const Problem *, const Seeds *, int64_t start, int64_t stop);
    int64_t (*bound_gains[2])(const Problem *, const Seeds *, int64_t start, int64_t stop, int64_t candidate);
    int64_t (*find_gain[2])(const Problem *, const Seeds *, int64_t start, int64_t stop, int64_t candidate);
    int64_t (*add_center[2])(const Problem *, const Seeds *, int64_t start, int64_t stop);
    int64_t (*add_masses[2])(const Problem *, const Seeds *, int64_t start, int64_t stop);
};

#endif
