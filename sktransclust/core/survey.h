// What is asked of all samples once: the extent of each feature, and sums that depend on no centers.
//
// In an unnamed namespace, for each instruction set compiles a copy of its own.

#ifndef SKTRANSCLUST_SURVEY_H
#define SKTRANSCLUST_SURVEY_H

#include "lanes.h"

namespace {

// Numbers in lines, whose columns are added up and compared in any order; a column belongs to one feature.
template <typename T> struct Extent : Rows<T> {
    using Rows<T>::p;
    using Rows<T>::values;

    static const int64_t WIDTH = 256;

    double sums[WIDTH];
    T low[WIDTH], high[WIDTH];

    explicit Extent(const Problem &problem) : Rows<T>(problem) { clear(); }

    void clear() {
        for (int64_t i = 0; i < WIDTH; i++) {
            sums[i] = 0.0;
            low[i] = (T)INFINITY;
            high[i] = (T)-INFINITY;
        }
    }

    void see(const T *line, int64_t width) {
        for (int64_t i = 0; i < width; i++) {
            const T value = line[i];
            sums[i] += (double)value;
            low[i] = value < low[i] ? value : low[i];
            high[i] = value > high[i] ? value : high[i];
        }
    }

    void see_apart(const T *line, int64_t width, int64_t step) {
        T beside[WIDTH];
        for (int64_t i = 0; i < width; i++) beside[i] = line[i * step];
        see(beside, width);
    }

    // Let column i count for feature first + i % period.
    void fold(double *found, int64_t first, int64_t period) {
        const int64_t d = p.n_features;
        for (int64_t i = 0; i < WIDTH; i++) {
            double *const feature = found + first + i % period;
            feature[0] += sums[i];
            feature[d] = (double)low[i] < feature[d] ? (double)low[i] : feature[d];
            feature[2 * d] = (double)high[i] > feature[2 * d] ? (double)high[i] : feature[2 * d];
        }
        clear();
    }

    void by_rows(int64_t start, int64_t stop, double *found) {
        const int64_t d = p.n_features, beside = p.row_stride == d && d <= WIDTH ? WIDTH / d : 1;
        for (int64_t f = 0; f < d; f += WIDTH) {
            const int64_t width = d - f < WIDTH ? d - f : WIDTH;
            int64_t row = start;
            for (; row + beside <= stop; row += beside) see(values + row * p.row_stride + f, beside * width);
            for (; row < stop; row++) see(values + row * p.row_stride + f, width);
            fold(found, f, width);
        }
    }

    void by_features(int64_t start, int64_t stop, double *found) {
        for (int64_t f = 0; f < p.n_features; f++) {
            for (int64_t row = start; row < stop; row += WIDTH)
                see_apart(values + row * p.row_stride + f * p.column_stride, stop - row < WIDTH ? stop - row : WIDTH,
                          p.row_stride);
            fold(found, f, 1);
        }
    }
};

template <typename T> void survey(const Problem *problem, int64_t start, int64_t stop, double *found) {
    Extent<T> extent(*problem);
    if (problem->column_stride == 1)
        extent.by_rows(start, stop, found);
    else
        extent.by_features(start, stop, found);
}

template <typename T> struct MomentsOf : Lanes<T> {
    using Rows<T>::p;
    using Lanes<T>::GROUP;

    static const int64_t SIDE = GROUP < 8 ? GROUP : 8;  // numbers that are added up beside each other

    T *group;  // (n_features, GROUP)

    explicit MomentsOf(const Problem &problem) : Lanes<T>(problem), group(nullptr) {}

    int64_t scratch_bytes() const { return GROUP * p.n_features * (int64_t)sizeof(T); }
    void use_scratch(void *scratch) { group = (T *)scratch; }

    static double total(double *part) {
        for (int64_t half = SIDE / 2; half > 0; half /= 2)
            for (int64_t i = 0; i < half; i++) part[i] += part[i + half];
        return part[0];
    }

    // Add a group's samples to the sums, and find their squared lengths; those of absent ones are 0.
    void add_group(int64_t first, int64_t count, double *squares) const {
        this->load_range(group, first, count);
        for (int64_t lane = 0; lane < GROUP; lane++) squares[lane] = 0.0;
        for (int64_t f = 0; f < p.n_features; f++) {
            T *const column = group + f * GROUP;
            for (int64_t lane = count; lane < GROUP; lane++) column[lane] = 0;
            double part[SIDE] = {};
            for (int64_t lane = 0; lane < GROUP; lane += SIDE)
                for (int64_t i = 0; i < SIDE; i++) {
                    const double value = (double)column[lane + i];
                    part[i] += value;
                    squares[lane + i] += value * value;
                }
            p.sums[f] += total(part);
        }
    }

    void add(int64_t start, int64_t stop, double *found) const {
        T *const lengths = (T *)p.lengths;
        for (int64_t first = start; first < stop; first += GROUP) {
            const int64_t count = stop - first < GROUP ? stop - first : GROUP;
            double squares[GROUP], part[SIDE] = {}, weighted[SIDE] = {};
            add_group(first, count, squares);
            for (int64_t lane = 0; lane < count; lane++) lengths[first + lane] = (T)sqrt(squares[lane]);
            for (int64_t lane = 0; lane < GROUP; lane++) part[lane % SIDE] += squares[lane];
            found[0] += total(part);
            if (!p.weights) continue;
            for (int64_t lane = 0; lane < count; lane++) weighted[lane % SIDE] += p.weights[first + lane] * squares[lane];
            found[1] += total(weighted);
        }
        if (!p.weights) found[1] = found[0];
    }
};

template <typename T> int64_t moments(const Problem *problem, int64_t start, int64_t stop, double *squares) {
    MomentsOf<T> all(*problem);
    return with_scratch(all, [&] {
        all.add(start, stop, squares);
        return (int64_t)0;
    });
}

}  // namespace

#endif
