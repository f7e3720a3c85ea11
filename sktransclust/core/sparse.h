// The hard attention of sparse samples: each stored entry of a sample meets all keys of its feature at once.
//
// For each feature the keys lie side by side, in whole registers, so that some registers of scores stay where
// they are while the entries of a sample go by. No bounds are kept: an entry costs little more than to read it.
// As in kernel.cpp, scores decide where the error bound of nearest.py allows, with as many terms as the longest
// sample has entries; the other samples are left to the caller.

#ifndef SKTRANSCLUST_SPARSE_H
#define SKTRANSCLUST_SPARSE_H

#include "lanes.h"

namespace {

// What needs no scores, in float64 and in the reference frame. A squared distance is |x|^2 + |p|^2 - 2 x.p; where
// that cancels, |p|^2 and what the sample's entries change of it; where that cancels, the sum of all differences.
template <typename T> struct SparseRows : Rows<T> {
    using Rows<T>::p;
    using Rows<T>::column;
    using Rows<T>::reference_entry;

    static const int64_t BESIDE = SPARSE_POINTS;
    static constexpr double CANCELLED = 0x1p-16;

    explicit SparseRows(const Problem &problem, double *scratch = nullptr) : Rows<T>(problem) { this->point = scratch; }

    double square(int64_t row) const {
        double sum = 0.0;
        for (int64_t e = p.offsets[row]; e < p.offsets[row + 1]; e++) sum += reference_entry(e) * reference_entry(e);
        return sum;
    }

    double squared_distance_to(int64_t row, const double *other, double square_of_other) {
        double change = 0.0;
        for (int64_t e = p.offsets[row]; e < p.offsets[row + 1]; e++) {
            const double there = other[column(e)], difference = reference_entry(e) - there;
            change += difference * difference - there * there;
        }
        if (square_of_other + change >= square_of_other * CANCELLED) return square_of_other + change;
        this->find_point(row);
        return this->squared_distance(other);
    }

    // Inner products of a sample with points that lie side by side for each feature.
    void products(int64_t row, const double *beside, double *found) const {
        double sums[BESIDE] = {};
        for (int64_t e = p.offsets[row]; e < p.offsets[row + 1]; e++) {
            const double *const there = beside + column(e) * BESIDE, here = reference_entry(e);
            for (int64_t i = 0; i < BESIDE; i++) sums[i] += here * there[i];
        }
        for (int64_t i = 0; i < BESIDE; i++) found[i] = sums[i];
    }

    void pairs(int64_t row, const double *beside, const double *squares, double *squared) {
        const double here = square(row);
        double found[BESIDE];
        for (int64_t j = 0; j < p.n_clusters; j++) {
            if (j % BESIDE == 0) products(row, beside + j * p.n_features, found);
            const double sum = here + squares[j], left = sum - 2 * found[j % BESIDE];
            const double *const other = p.centers + j * p.n_features;
            squared[j] = left >= sum * CANCELLED ? left : squared_distance_to(row, other, squares[j]);
        }
    }
};

template <typename T> struct SparseKernel : Lanes<T> {
    using Rows<T>::p;
    using Rows<T>::entry;
    using Rows<T>::column;
    using Lanes<T>::LANES;

    typedef typename Lanes<T>::Vector Vector;
    typedef typename Lanes<T>::Unaligned Unaligned;
    typedef typename Lanes<T>::Index Index;
    typedef typename Lanes<T>::Indices Indices;

    static const int MOST = 6;       // registers of scores at once
    static const int64_t AHEAD = 8;  // entries whose keys are on their way
    static constexpr double MOST_REACH = sizeof(T) == 4 ? 0x1p63 : 0x1p511;  // whose square is finite

    Vector best, second;  // of each lane
    Indices index;
    SparseRows<T> exact;
    double *squares;      // (n_clusters,): of the centers' lengths, once they are needed
    double *squared;      // (n_clusters,): distances of a doubtful sample
    int32_t *near;        // (n_clusters + 1,): the centers that come into question for it
    bool has_squares;

    explicit SparseKernel(const Problem &problem) : Lanes<T>(problem), exact(problem), has_squares(false) {}

    int64_t scratch_bytes() const { return (3 * p.n_clusters + p.n_features + 1) * (int64_t)sizeof(double); }

    void use_scratch(void *scratch) {
        squares = (double *)scratch;
        squared = squares + p.n_clusters;
        exact.point = squared + p.n_clusters;
        near = (int32_t *)(exact.point + p.n_features);
    }

    // Let a sample meet the keys of some registers.
    template <int WIDTH> void meet(int64_t row, int64_t first) {
        const int64_t stride = p.n_panels * LANES;
        const T *const keys = (const T *)p.panels + first * LANES, *const norms = (const T *)p.key_norms + first * LANES;
        Vector score[WIDTH];
        for (int v = 0; v < WIDTH; v++) score[v] = ((const Unaligned *)norms)[v];
        const int64_t end = p.offsets[row + 1];
        for (int64_t e = p.offsets[row]; e < end; e++) {
#if VECTOR_BYTES
            if (e + AHEAD < end) __builtin_prefetch(keys + column(e + AHEAD) * stride);
#endif
            const Unaligned *const key = (const Unaligned *)(keys + column(e) * stride);
            const T value = entry(e);
            for (int v = 0; v < WIDTH; v++) score[v] += value * key[v];
        }
        for (int v = 0; v < WIDTH; v++) {
            const Vector larger = score[v] < best ? best : score[v];
            second = larger < second ? larger : second;
            index = score[v] < best ? (Index)(first + v) - Indices{} : index;
            best = score[v] < best ? score[v] : best;
        }
    }

    void meet_all(int64_t row) {
        best = second = (T)INFINITY - Vector{};
        index = Indices{};
        for (int64_t first = 0; first < p.n_panels; first += MOST) switch (p.n_panels - first) {
            case 1: meet<1>(row, first); break;
            case 2: meet<2>(row, first); break;
            case 3: meet<3>(row, first); break;
            case 4: meet<4>(row, first); break;
            case 5: meet<5>(row, first); break;
            default: meet<MOST>(row, first);
        }
    }

    // Put the lanes together; returns the label, and the difference of the two least scores.
    int32_t decide(T *difference) const {
        T firsts[LANES], seconds[LANES], least = (T)INFINITY, next = (T)INFINITY;
        Index registers[LANES];
        memcpy(firsts, &best, sizeof best);
        memcpy(seconds, &second, sizeof second);
        memcpy(registers, &index, sizeof index);
        int64_t label = 0;
        for (int64_t lane = 0; lane < LANES; lane++) {
            if (firsts[lane] < least) {
                next = least < seconds[lane] ? least : seconds[lane];
                least = firsts[lane];
                label = registers[lane] * LANES + lane;
            } else {
                next = firsts[lane] < next ? firsts[lane] : next;
            }
        }
        *difference = next - least;
        return (int32_t)label;
    }

    T length(int64_t row) const {
        if (p.lengths) return ((const T *)p.lengths)[row];
        double square = 0.0;
        for (int64_t e = p.offsets[row]; e < p.offsets[row + 1]; e++) square += (double)entry(e) * (double)entry(e);
        return (T)sqrt(square);
    }

    // Decide for a doubtful sample in float64, if rounding cannot matter: with r and R the lengths of the sample and
    // of the longest center, no squared distance is wrong by more than 3 (n_features + 8) u64 (r + R)^2. What that
    // does not tell apart is settled by all differences.
    bool settle_sparse(int64_t row, int32_t *label) {
        if (!(p.reach < MOST_REACH)) return false;  // an infinite norm need not mean a repeated center
        if (!has_squares) find_squares();
        double least = INFINITY, longest = 0.0;
        for (int64_t j = 0; j < p.n_clusters; j++) {
            squared[j] = INFINITY;
            if (((const T *)p.key_norms)[j] == (T)INFINITY) continue;  // repeats an earlier one
            squared[j] = exact.squared_distance_to(row, p.centers + j * p.n_features, squares[j]);
            longest = squares[j] > longest ? squares[j] : longest;
            least = squared[j] < least ? squared[j] : least;
        }
        const double most = 2 * (exact.square(row) + longest);  // at least (r + R)^2
        if (!(most > 1e-280 && most < 1e300)) return false;
        const double limit = least + 0x1p-50 * (double)(p.n_features + 8) * most;
        int64_t n_near = 0;
        for (int64_t j = 0; j < p.n_clusters; j++) {
            near[n_near] = (int32_t)j;
            n_near += squared[j] <= limit;
        }
        *label = near[0];
        return n_near == 1 || exact.settle(row, length(row), near, n_near, label);
    }

    void find_squares() {
        for (int64_t j = 0; j < p.n_clusters; j++) {
            squares[j] = 0.0;
            for (int64_t i = j * p.n_features; i < (j + 1) * p.n_features; i++) squares[j] += p.centers[i] * p.centers[i];
        }
        has_squares = true;
    }

    int64_t assign(int64_t start, int64_t stop, int64_t *doubtful, int64_t *n_changed) {
        int64_t *end = doubtful;
        for (int64_t row = start; row < stop; row++) {
            meet_all(row);
            T difference;
            int32_t label = decide(&difference);
            // What is not a number is in no order.
            if (difference > this->gap(length(row)) || settle_sparse(row, &label))
                *n_changed += this->relabel(row, label);
            else
                *end++ = row;
        }
        return end - doubtful;
    }
};

// As `squares` of dense samples; `squares` are those of the centers' lengths.
template <typename T>
void sparse_squares(const Problem *problem, int64_t start, int64_t stop, const double *squares, double *point,
                    double *squared) {
    SparseRows<T> rows(*problem, point);
    const int64_t d = problem->n_features;
    for (int64_t row = start; row < stop; row++) {
        const int32_t label = problem->labels[row];
        squared[row] = rows.squared_distance_to(row, problem->centers + label * d, squares[label]);
    }
}

// As `moments` of dense samples.
template <typename T>
int64_t sparse_moments(const Problem *problem, int64_t start, int64_t stop, double *squares) {
    SparseRows<T> rows(*problem, nullptr);
    T *const lengths = (T *)problem->lengths;
    for (int64_t row = start; row < stop; row++) {
        const double square = rows.square(row);
        lengths[row] = (T)sqrt(square);
        for (int64_t e = problem->offsets[row]; e < problem->offsets[row + 1]; e++)
            problem->sums[rows.column(e)] += rows.reference_entry(e);
        squares[0] += square;
        squares[1] += problem->weights ? problem->weights[row] * square : square;
    }
    return 0;
}

// The squared distances of samples start..stop to all centers, (stop - start, n_clusters). `beside` has the centers
// once more, (n_groups, n_features, SPARSE_POINTS) with zeros at the end, and `squares` those of their lengths.
template <typename T>
void sparse_pairs(const Problem *problem, int64_t start, int64_t stop, const double *beside, const double *squares,
                  double *point, double *squared) {
    SparseRows<T> rows(*problem, point);
    for (int64_t row = start; row < stop; row++)
        rows.pairs(row, beside, squares, squared + (row - start) * problem->n_clusters);
}

}  // namespace

#endif
