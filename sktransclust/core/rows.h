// One sample after the other: coordinates in either frame, and what needs no scores.
//
// In an unnamed namespace, for each instruction set compiles a copy of its own.

#ifndef SKTRANSCLUST_ROWS_H
#define SKTRANSCLUST_ROWS_H

#include "kernel.h"

#include <math.h>

namespace {

template <typename T> struct Rows {
    static constexpr T UNIT = (T)(sizeof(T) == 4 ? 0x1p-24 : 0x1p-53);      // roundoff
    static constexpr T LEAST = (T)(sizeof(T) == 4 ? 0x1p-126 : 0x1p-1022);  // normal number

    const Problem &p;
    const T *const values, *const shift;
    const T scale;
    const bool plain_rows;  // features side by side, and no scaling
    const bool in_place;    // local coordinates are the values themselves, side by side
    double *point;          // (n_features,): a sample in the reference frame

    explicit Rows(const Problem &problem)
        : p(problem), values((const T *)p.values), shift((const T *)p.shift), scale((T)p.scale),
          plain_rows(p.column_stride == 1 && p.scale == 1.0), in_place(plain_rows && !shifts()), point(nullptr) {}

    bool shifts() const {
        for (int64_t f = 0; shift && f < p.n_features; f++)
            if (shift[f] != 0) return true;
        return false;
    }

    // x - shift is exact wherever x lies in the range that the frame was made for; see frame.py.
    T local(int64_t row, int64_t feature) const {
        return (values[row * p.row_stride + feature * p.column_stride] - shift[feature]) * scale;
    }

    // Of sparse samples, whose frames have no shift.
    T entry(int64_t e) const { return values[e] * scale; }

    double reference_entry(int64_t e) const {
        return p.reference_scale != 0.0 ? (double)values[e] * p.reference_scale : (double)entry(e);
    }

    int64_t column(int64_t e) const {
        return p.wide_columns ? ((const int64_t *)p.columns)[e] : ((const int32_t *)p.columns)[e];
    }

    // The gap above which two scores of a sample of length r are in true order. No score overflows for a sample
    // that is not too long; comparisons with a NaN or an infinite length are false.
    struct Gap {
        const T constant, linear, quadratic, longest;

        explicit Gap(const Problem &p)
            : constant((T)p.bound[0]), linear((T)p.bound[1]), quadratic((T)p.bound[2]), longest((T)p.longest) {}

        T operator()(T r) const {
            const T enough = (r * quadratic + linear) * r + constant;
            return r <= longest ? enough : (T)INFINITY;
        }
    };

    T gap(T r) const { return Gap(p)(r); }

    void find_point(int64_t row) const {
        if (p.offsets) return fill_point(row);
        const T *const value = values + row * p.row_stride;
        if (p.reference_scale != 0.0)
            for (int64_t f = 0; f < p.n_features; f++)
                point[f] = (double)value[f * p.column_stride] * p.reference_scale;
        else if (plain_rows)
            for (int64_t f = 0; f < p.n_features; f++) point[f] = (double)(value[f] - shift[f]);
        else
            for (int64_t f = 0; f < p.n_features; f++) point[f] = (double)local(row, f);
    }

    void fill_point(int64_t row) const {
        for (int64_t f = 0; f < p.n_features; f++) point[f] = 0.0;
        for (int64_t e = p.offsets[row]; e < p.offsets[row + 1]; e++) point[column(e)] = reference_entry(e);
    }

    double squared_distance(const double *center) const {
        double part[4] = {};  // side by side: an addition need not wait for the last one
        int64_t f = 0;
        for (; f + 4 <= p.n_features; f += 4)
            for (int i = 0; i < 4; i++) part[i] += (point[f + i] - center[f + i]) * (point[f + i] - center[f + i]);
        for (; f < p.n_features; f++) part[0] += (point[f] - center[f]) * (point[f] - center[f]);
        return (part[0] + part[1]) + (part[2] + part[3]);
    }

    // Decide for a doubtful sample by direct differences in float64, to the bit as nearest.py does; what could
    // overflow or vanish is left to it. Only the keys `names` come into question. Here each squared distance D has
    // an error of at most (n_features + 3) u64 D; those within that of the least one are added up again.
    template <typename Index>
    bool settle(int64_t row, T length, const int32_t *names, int64_t n_names, Index *label) const {
        if (!(length <= (T)p.longest)) return false;
        find_point(row);
        double least = INFINITY, next = INFINITY;
        for (int64_t i = 0; i < n_names; i++) {
            const int64_t j = names[i];
            if (((const T *)p.key_norms)[j] == (T)INFINITY) continue;  // repeats an earlier one, or is none
            const double squared = squared_distance(p.centers + j * p.n_features);
            if (squared < least) {
                next = least;
                least = squared;
                *label = (Index)j;
            } else if (squared < next) {
                next = squared;
            }
        }
        if (next == INFINITY) return least < 1e300;
        if (!(next > 1e-280 && next < 1e300)) return false;
        const double error = 2.1 * (double)(p.n_features + 4) * 0x1p-53 * next;
        if (next - least <= error) settle_near_tie(least + error, names, n_names, label);
        return true;
    }

    // Of the keys whose squared distances are at most `most`, the nearest one; ties go to the lowest index.
    template <typename Index>
    void settle_near_tie(double most, const int32_t *names, int64_t n_names, Index *label) const {
        double least = INFINITY;
        for (int64_t i = 0; i < n_names; i++) {
            const int64_t j = names[i];
            const double *const center = p.centers + j * p.n_features;
            if (((const T *)p.key_norms)[j] == (T)INFINITY || !(squared_distance(center) <= most)) continue;
            const double squared = sum_in_order(center);
            if (squared < least || (squared == least && j < *label)) {
                least = squared;
                *label = (Index)j;
            }
        }
    }

    // The squared distance of the point, added up in the order of the features.
    double sum_in_order(const double *center) const {
        double sum = 0.0;
        for (int64_t f = 0; f < p.n_features; f++) {
            const double difference = point[f] - center[f];
            const volatile double square = difference * difference;  // rounded, and not fused with the addition
            sum += square;
        }
        return sum;
    }

    // Add the sample, times a factor, to a cluster; the order of additions to a sum is that of the rows.
    void add_row(int64_t row, int64_t cluster, double factor) const {
        const double weight = p.weights ? factor * p.weights[row] : factor;
        double *const __restrict sum = p.sums + cluster * p.n_features;
        const T *const __restrict value = values + row * p.row_stride;
        if (p.touched) p.touched[cluster] = 1;
        p.cluster_weights[cluster] += weight;
        if (p.lengths) p.masses[cluster] += weight * (double)((const T *)p.lengths)[row];
        if (p.offsets) {
            for (int64_t e = p.offsets[row]; e < p.offsets[row + 1]; e++) sum[column(e)] += (double)entry(e) * weight;
        } else if (plain_rows) {
            for (int64_t f = 0; f < p.n_features; f++) sum[f] += (double)(value[f] - shift[f]) * weight;
        } else {
            for (int64_t f = 0; f < p.n_features; f++) sum[f] += (double)local(row, f) * weight;
        }
    }

    // Give a sample its label, and add up what that changes; returns whether it is another one than before.
    bool relabel(int64_t row, int32_t label) const {
        const int32_t before = p.labels[row];
        p.labels[row] = label;
        if (p.sums && !(p.only_changes && label == before)) {
            if (p.only_changes) add_row(row, before, -1.0);
            add_row(row, label, 1.0);
        }
        return label != before;
    }
};

// Of so few features that to find each point first would take longer.
template <int D, typename T> void few_squares(const Rows<T> &rows, int64_t start, int64_t stop, double *squared) {
    const Problem &p = rows.p;
    const bool scaled = p.reference_scale != 0.0;
    for (int64_t row = start; row < stop; row++) {
        const T *const value = rows.values + row * p.row_stride;
        const double *const center = p.centers + p.labels[row] * D;
        double sum = 0.0;
        for (int f = 0; f < D; f++) {
            const double place =
                scaled ? (double)value[f * p.column_stride] * p.reference_scale : (double)rows.local(row, f);
            sum += (place - center[f]) * (place - center[f]);
        }
        squared[row] = sum;
    }
}

template <typename T>
void squares(const Problem *problem, int64_t start, int64_t stop, double *point, double *squared) {
    Rows<T> rows(*problem);
    rows.point = point;
    if (problem->n_features == 2) return few_squares<2>(rows, start, stop, squared);
    if (problem->n_features == 3) return few_squares<3>(rows, start, stop, squared);
    for (int64_t row = start; row < stop; row++) {
        rows.find_point(row);
        squared[row] = rows.squared_distance(problem->centers + problem->labels[row] * problem->n_features);
    }
}

template <typename T>
void decide(const Problem *problem, const int64_t *rows, const int32_t *labels, int64_t count,
            int64_t *n_changed) {
    const Rows<T> all(*problem);
    for (int64_t i = 0; i < count; i++) *n_changed += all.relabel(rows[i], labels[i]);
}

template <typename T>
void sums(const Problem *problem, int64_t start, int64_t stop) {
    const Rows<T> rows(*problem);
    for (int64_t row = start; row < stop; row++) rows.add_row(row, problem->labels[row], 1.0);
}

}  // namespace

#endif
