// Bounds on distances that spare a sample its scores: Hamerly's two, kept so that most are only read.
//
// For a sample of label j let u be at least the distance to its center, and l at most that to any other one,
// when both were found. Since then center j has moved by no more than a, and every other one by no more than b
// (a distance changes by no more than its center moves), so the label is certain while
// u + a < (l - b) (1 - certainty), and that while a + b < l (1 - certainty) - u. The sums a + b are kept for
// each center from the beginning, as its `drift`, so one number a sample is enough: `until`, the drift of its
// center when the bounds were found plus the right-hand side. Where that fails, the distance to the sample's
// own center, found anew, often decides; `lower` is l plus the drift of the other centers when it was found.
// Each rounding is directed away from a decision. What is not a number decides nothing.

#ifndef SKTRANSCLUST_BOUNDS_H
#define SKTRANSCLUST_BOUNDS_H

#include "rows.h"

#include <string.h>

namespace {

template <typename T> struct Bounds : Rows<T> {
    using Rows<T>::p;
    using Rows<T>::values;
    using Rows<T>::shift;
    using Rows<T>::plain_rows;
    using Rows<T>::local;

    static constexpr double UNIT = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;
    static constexpr double LEAST = sizeof(T) == 4 ? 0x1p-126 : 0x1p-1022;  // normal number
    static const int64_t MANY_SCORES = 1000;  // features and comparisons of all; then one distance is cheap

    T *drift;  // (n_clusters,): scratch memory, the problem's rounded up to T

    explicit Bounds(const Problem &problem) : Rows<T>(problem), drift(nullptr) {}

    void round_drift() {
        for (int64_t j = 0; j < p.n_clusters; j++) drift[j] = (T)(p.drift[j] * (1 + 4 * UNIT) + LEAST);
    }

    // Round what was computed in float64, from numbers whose sizes sum to `sizes`, down to T.
    static T down(double value, double sizes) {
        return (T)(value - 0x1p-50 * sizes - 2 * UNIT * (value < 0 ? -value : value));
    }

    void set_until(int64_t row, int64_t label, double upper, double lower) const {
        const double rest = lower * (1 - p.certainty) - upper;
        ((T *)p.until)[row] = down(rest + p.drift[label], lower + upper + p.drift[label]);
    }

    void set_bounds(int64_t row, int64_t label, double upper, double lower) const {
        set_until(row, label, upper, lower);
        ((T *)p.lower)[row] = down(lower + p.others[label], lower + p.others[label]);
    }

    void forget_bounds(int64_t row) const {
        ((T *)p.until)[row] = ((T *)p.lower)[row] = (T)-INFINITY;
    }

    // Write the labels that the bounds tell, and list the other samples.
    int64_t screen(int64_t first, int64_t last, int64_t *pending) const {
        const T *const until = (const T *)p.until;
        const int32_t *const previous = p.previous;
        memcpy(p.labels + first, previous + first, (size_t)(last - first) * sizeof *previous);
        int64_t n_pending = 0;
        for (int64_t row = first; row < last; row++) {
            pending[n_pending] = row;
            n_pending += !(drift[previous[row]] < until[row]);
        }
        if (p.n_clusters * (p.n_features + 5) < MANY_SCORES) return n_pending;
        int64_t n_left = 0;
        for (int64_t i = 0; i < n_pending; i++)
            if (!tighten(pending[i])) pending[n_left++] = pending[i];
        return n_left;
    }

    // Find the distance to the sample's own center; returns whether that keeps the label.
    bool tighten(int64_t row) const {
        const int64_t label = p.previous[row];
        const double bound = ((const T *)p.lower)[row];
        const double lower = bound - p.others[label] - 0x1p-50 * (bound + p.others[label]);
        if (!(lower > 0)) return false;
        // Rounding a key changes the distance by at most u times its length.
        const double squared = (double)own_squared_distance(row, label) * (1 + p.length_error);
        const double upper = (sqrt(squared + 8 * p.n_features * LEAST) + 2 * UNIT * p.reach) * (1 + 0x1p-50);
        if (!(upper < lower * (1 - p.certainty))) return false;
        set_until(row, label, upper, lower);
        return true;
    }

    T own_squared_distance(int64_t row, int64_t label) const {
        const T *const key = (const T *)p.panels + label * p.n_features;  // times -2
        T part[8] = {};  // side by side: these are lanes of registers
        int64_t f = 0;
        if (plain_rows) {
            const T *const value = values + row * p.row_stride;
            for (; f + 8 <= p.n_features; f += 8)
                for (int i = 0; i < 8; i++) {
                    const T difference = value[f + i] - shift[f + i] + key[f + i] * (T)0.5;
                    part[i] += difference * difference;
                }
        }
        for (; f < p.n_features; f++) {
            const T difference = local(row, f) + key[f] * (T)0.5;
            part[0] += difference * difference;
        }
        return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    }
};

}  // namespace

#endif
