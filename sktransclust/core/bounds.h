// Bounds on distances that spare a sample its scores: Hamerly's two, kept so that most are only read.
//
// For a sample of label j let u be at least the distance to its center, and l at most that to any other one,
// when both were found. Since then center j has moved by no more than a, and every other one by no more than b
// (a distance changes by no more than its center moves), so the label is certain while
// u + a < (l - b) (1 - certainty), and that while a + b < l (1 - certainty) - u. The sums a + b are kept for
// each center from the beginning, as its `drift`, so one number a sample is enough: `until`, the drift of its
// center when the bounds were found plus the right-hand side. Where that fails, the distance to the sample's
// own center, found anew, often decides; `lower` is l plus the drift of the other centers when it was found.
//
// Where a few centers, the movers, move much farther than all others, a sample looks at them alone: from the
// others it is at least as far as `lower` less `still`, in which the movers' last moves do not count.
//
// Each rounding is directed away from a decision. What is not a number decides nothing.

#ifndef SKTRANSCLUST_BOUNDS_H
#define SKTRANSCLUST_BOUNDS_H

#include "lanes.h"

namespace {

template <typename T> struct Bounds : Lanes<T> {
    using Rows<T>::p;
    using Rows<T>::values;
    using Rows<T>::shift;
    using Rows<T>::plain_rows;
    using Rows<T>::local;
    using Rows<T>::UNIT;
    using Rows<T>::LEAST;

    static constexpr T MOST = (T)(sizeof(T) == 4 ? 0x1p+126 : 0x1p+1022);
    static const int64_t BLOCK = 8;
    static const int64_t MANY_SCORES = 1000;  // features and comparisons of all; then one distance is cheap

    T *drift;   // (n_clusters,), as the next ones: scratch memory, the problem's rounded up to T
    T *others;
    T *still;
    const T sure;  // 1 less what bounds have to differ by

    explicit Bounds(const Problem &problem) : Lanes<T>(problem), drift(nullptr), sure((T)(1 - problem.certainty)) {}

    void round_drift() {
        for (int64_t j = 0; j < p.n_clusters; j++) {
            drift[j] = up(p.drift[j]);
            others[j] = up(p.others[j]);
            if (p.n_movers) still[j] = up(p.still[j]);
        }
    }

    static T up(double value) { return (T)(value * (1 + 4 * (double)UNIT) + (double)LEAST); }

    // A difference of two numbers, or a sum, rounded down.
    static T minus(T a, T b) { return (a - b) - 3 * UNIT * ((a < 0 ? -a : a) + b); }
    static T plus(T a, T b) { return (a + b) - 3 * UNIT * ((a < 0 ? -a : a) + b); }

    void set_until(int64_t row, int64_t label, T upper, T lower) const {
        ((T *)p.until)[row] = plus(minus(lower * sure, upper), drift[label]);
    }

    void set_bounds(int64_t row, int64_t label, T upper, T lower) const {
        set_until(row, label, upper, lower);
        ((T *)p.lower)[row] = plus(lower, others[label]);
    }

    void forget_bounds(int64_t row) const {
        ((T *)p.until)[row] = ((T *)p.lower)[row] = (T)-INFINITY;
    }

    // List the samples whose labels the bounds do not tell.
    int64_t screen(int64_t first, int64_t last, int64_t *__restrict pending) const {
        const T *const until = (const T *)p.until, *const drifts = drift;
        const int32_t *const labels = p.labels;
        int64_t n_pending = 0, row = first;
        for (; row + BLOCK <= last; row += BLOCK) {
            int32_t open[BLOCK], any = 0;  // in registers: most blocks have none
            for (int64_t i = 0; i < BLOCK; i++) {
                open[i] = !(drifts[labels[row + i]] < until[row + i]);
                any |= open[i];
            }
            if (!any) continue;
            for (int64_t i = 0; i < BLOCK; i++) {
                pending[n_pending] = row + i;
                n_pending += open[i];
            }
        }
        for (; row < last; row++) {
            pending[n_pending] = row;
            n_pending += !(drifts[labels[row]] < until[row]);
        }
        return n_pending;
    }

    // Drop from a list the samples that the distance to their own center, found anew, tells. Of the others, write
    // that distance, rounded up, to `own`.
    int64_t tighten(int64_t *pending, int64_t n_pending, T *own) const {
        int64_t n_left = 0;
        for (int64_t i = 0; i < n_pending; i++) {
            const int64_t row = pending[i], label = p.labels[row];
            const T lower = minus(((const T *)p.lower)[row], others[label]);
            // Rounding a key changes the distance by at most u times its length.
            const T squared = own_squared_distance(row, label) * (T)(1 + p.length_error);
            const T length = root(squared + (T)(8 * p.n_features) * LEAST);
            const T upper = (length + 2 * UNIT * (T)p.reach) * (1 + 8 * UNIT);
            if (upper < lower * sure) {
                set_until(row, label, upper, lower);
            } else {
                pending[n_left] = row;
                own[n_left++] = upper;
            }
        }
        return n_left;
    }

    static T root(T square) { return sizeof(T) == 4 ? (T)sqrtf((float)square) : (T)sqrt((double)square); }

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
