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
// Where the centers near each one are known (neighbours.h), a sample at u from its own meets only those whose
// distance from that one is g < 2 u, or little more: from any other it is at least as far as g - u.
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
    static const int64_t FEW = 64;
    static const int64_t MANY_SCORES = 1000;  // features and comparisons of all; then one distance is cheap

    T *drift;   // (n_clusters,), as the next ones: scratch memory, the problem's rounded up to T
    T *others;
    T *still;
    T *around;  // at most the distance to the nearest other center
    const T sure;  // 1 less what bounds have to differ by

    explicit Bounds(const Problem &problem) : Lanes<T>(problem), drift(nullptr), sure((T)(1 - problem.certainty)) {}

    void round_drift() {
        for (int64_t j = 0; j < p.n_clusters; j++) {
            drift[j] = up(p.drift[j]);
            others[j] = up(p.others[j]);
            if (p.n_movers) still[j] = up(p.still[j]);
            around[j] = p.n_near ? gap_to(j, 1) : (T)0;
        }
    }

    static T up(double value) { return (T)(value * (1 + 4 * (double)UNIT) + (double)LEAST); }

    // A difference of two numbers, or a sum, rounded down.
    static T minus(T a, T b) { return (a - b) - 3 * UNIT * ((a < 0 ? -a : a) + b); }
    static T plus(T a, T b) { return (a + b) - 3 * UNIT * ((a < 0 ? -a : a) + b); }

    void set_bounds(int64_t row, int64_t label, T upper, T lower) const {
        ((T *)p.until)[row] = plus(minus(lower * sure, upper), drift[label]);
        ((T *)p.lower)[row] = plus(lower, others[label]);
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
    // that distance, rounded up, to `own`. What is found holds for the dropped and for the others, so that nothing
    // waits for a branch: numbers are brought together for a few samples, and then computed side by side.
    int64_t tighten(int64_t *pending, int64_t n_pending, T *own) const {
        int64_t n_left = 0;
        for (int64_t first = 0; first < n_pending; first += FEW) {
            const int64_t count = n_pending - first < FEW ? n_pending - first : FEW;
            const int64_t *const rows = pending + first;
            T upper[FEW], lower[FEW], empty[FEW], until[FEW], drifts[FEW];
            own_squared_distances(rows, count, upper);
            for (int64_t i = 0; i < count; i++) {
                const int64_t label = p.labels[rows[i]];
                lower[i] = minus(((const T *)p.lower)[rows[i]], others[label]);
                empty[i] = around[label];
                drifts[i] = drift[label];
            }
            // Rounding a key changes the distance by at most u times its length.
            const T error = (T)(1 + p.length_error), least = (T)(8 * p.n_features) * LEAST;
            const T off = 2 * UNIT * (T)p.reach, certain = sure;
            for (int64_t i = 0; i < count; i++) {
                upper[i] = (root(upper[i] * error + least) + off) * (1 + 8 * UNIT);
                const T away = minus(empty[i], upper[i]);
                lower[i] = (away > lower[i] ? away : lower[i]);
                until[i] = plus(minus(lower[i] * certain, upper[i]), drifts[i]);
            }
            for (int64_t i = 0; i < count; i++) {
                const int64_t row = rows[i];
                ((T *)p.until)[row] = until[i];
                if (p.n_near) ((T *)p.lower)[row] = plus(lower[i], others[p.labels[row]]);
                const bool told = upper[i] < lower[i] * certain;
                pending[n_left] = row;
                own[n_left] = upper[i];
                n_left += !told;
            }
        }
        return n_left;
    }

    // At most the distance from a center to the i-th of those near it, and to any behind that.
    T gap_to(int64_t label, int64_t i) const {
        const double gap = p.gaps[label * (p.n_near + 1) + i] * (1 - 4 * (double)UNIT);
        return gap < (double)MOST ? (T)gap : MOST;
    }

    // How many panels of the centers near one have to be met by samples that are no farther from it than `upper`;
    // -1 if those are too few.
    int64_t panels_near(int64_t label, T upper) const {
        for (int64_t end = p.panel_width; end <= p.n_near; end += p.panel_width)
            if (upper < minus(gap_to(label, end), upper) * sure) return end / p.panel_width;
        return -1;
    }

    static T root(T square) { return sizeof(T) == 4 ? (T)sqrtf((float)square) : (T)sqrt((double)square); }

    void own_squared_distances(const int64_t *rows, int64_t count, T *squared) const {
        if (plain_rows && p.n_features == 2) return few_squared<2>(rows, count, squared);
        if (plain_rows && p.n_features == 3) return few_squared<3>(rows, count, squared);
        for (int64_t i = 0; i < count; i++) squared[i] = own_squared_distance(rows[i], p.labels[rows[i]]);
    }

    template <int D> void few_squared(const int64_t *rows, int64_t count, T *squared) const {
        for (int64_t i = 0; i < count; i++) {
            const T *const value = values + rows[i] * p.row_stride;
            const T *const key = (const T *)p.panels + p.labels[rows[i]] * D;
            T sum = 0;
            for (int f = 0; f < D; f++) {
                const T difference = value[f] - shift[f] + key[f] * (T)0.5;
                sum += difference * difference;
            }
            squared[i] = sum;
        }
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
