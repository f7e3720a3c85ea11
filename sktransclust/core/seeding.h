// Greedy k-means++: what candidates would gain as the next center, by bounds first, then what one of them gains.
//
// Candidates are samples, so their coordinates are exact in T. A group of samples meets them by scores, as in
// kernel.cpp. For a sample x and a candidate c, no score is below |x - c|^2 - |x|^2 - 2 e (|x|^2 + |c|^2), where
// e = 1.1 (d + 4) u. The part of the candidate is taken off its norm and that of the sample is in its `limit`. So
// a score that is not below the limit cannot belong to a smaller distance than the one so far, and else the squared
// distance becomes less by no more than the difference. What the best candidate gains, and only that as a rule, is
// found in float64 from direct differences, of the samples that are marked for it.
//
// What is found for a block of samples depends on that block alone: any division of the blocks among threads, whose
// results are added up in their order, has the same bits.

#ifndef SKTRANSCLUST_SEEDING_H
#define SKTRANSCLUST_SEEDING_H

#include "cells.h"

namespace {

template <typename T> struct Seeding : Lanes<T> {
    using Rows<T>::p;
    using Rows<T>::local;
    using Rows<T>::UNIT;
    using Rows<T>::LEAST;
    using Rows<T>::values;
    using Lanes<T>::LANES;
    using Lanes<T>::GROUP;

    typedef typename Lanes<T>::Vector Vector;
    typedef typename Lanes<T>::Unaligned Unaligned;
    typedef typename Lanes<T>::Index Index;
    typedef typename Lanes<T>::Indices Indices;
    static const int MOST = 6;  // candidates of a panel
    static const int64_t CELLS = SEEDING_BLOCK / CELL;  // of a block

    const Seeds &s;
    const double error;  // 2 e, with room for roundings in T and in float64
    const int64_t n_panels, width;
    T *tile;           // (n_features, GROUP)
    T *bound;          // (n_panels * width, GROUP): of the gains of a block
    T *weight;         // (GROUP,)
    T *keys;           // (n_panels * width, n_features): candidates times -2
    T *norms;          // (n_panels * width,): infinite where there is no candidate
    T *copy;           // (n_features,): a sample in local coordinates
    double *center;    // (n_features,): the sample whose distances are asked for

    Seeding(const Problem &problem, const Seeds &seeds)
        : Lanes<T>(problem), s(seeds), error(4 * (double)(p.n_features + 8) * (double)UNIT),
          n_panels((s.n_candidates + MOST - 1) / MOST), width((s.n_candidates + n_panels - 1) / n_panels) {}

    int64_t scratch_bytes() const {
        const int64_t n_keys = n_panels * width, d = p.n_features;
        const int64_t in_t = GROUP * (d + n_keys + 1) + n_keys * (d + 1) + d;
        return in_t * (int64_t)sizeof(T) + d * (int64_t)sizeof(double);
    }

    void use_scratch(void *scratch) {
        const int64_t n_keys = n_panels * width, d = p.n_features;
        tile = (T *)scratch;
        bound = tile + GROUP * d;
        weight = bound + GROUP * n_keys;  // up to here, all are whole registers
        center = (double *)(weight + GROUP);
        keys = (T *)(center + d);
        norms = keys + n_keys * d;
        copy = norms + n_keys;
    }

    void take_candidates() {
        for (int64_t j = 0; j < n_panels * width; j++) {
            double norm = 0.0;
            for (int64_t f = 0; f < p.n_features; f++) {
                const T value = j < s.n_candidates ? local(s.candidates[j], f) : (T)0;
                keys[j * p.n_features + f] = value * -2;
                norm += (double)value * (double)value;
            }
            norms[j] = j < s.n_candidates ? (T)(norm - error * norm) : (T)INFINITY;
        }
    }

    void take_center(int64_t row) {
        for (int64_t f = 0; f < p.n_features; f++) center[f] = (double)local(row, f);
    }

    // How many of some samples are there.
    int64_t present(int64_t first, int64_t count) const {
        const int64_t rest = p.n_samples - first;
        return rest < count ? rest : count;
    }

    // A sample in local coordinates.
    const T *place_of(int64_t row) const {
        if (this->in_place) return values + row * p.row_stride;
        for (int64_t f = 0; f < p.n_features; f++) copy[f] = local(row, f);
        return copy;
    }

    double squared_distance(const T *place) const {
        return this->add_up([=](int64_t f) {
            const double difference = (double)place[f] - center[f];
            return difference * difference;
        });
    }

    double squared_length(const T *place) const {
        return this->add_up([=](int64_t f) { return (double)place[f] * (double)place[f]; });
    }

    // Add up a term of each feature, eight side by side.
    template <typename Term> double add_up(Term term) const {
        double part[8] = {}, rest = 0.0;
        int64_t f = 0;
        for (; f + 8 <= p.n_features; f += 8)
            for (int i = 0; i < 8; i++) part[i] += term(f + i);
        for (; f < p.n_features; f++) rest += term(f);
        if (p.n_features < 8) return rest;
        for (int i = 0; i < 4; i++) part[i] += part[i + 4];
        return ((part[0] + part[2]) + (part[1] + part[3])) + rest;
    }

    // Make the center the first one of a block.
    void begin(int64_t block) {
        const int64_t first = block * SEEDING_BLOCK, stop = first + present(first, SEEDING_BLOCK);
        for (int64_t row = first; row < stop; row++) {
            const T *const place = place_of(row);
            ((T *)s.squares)[row] = (T)squared_length(place);
            set_nearest(row, squared_distance(place));
        }
        for (int64_t cell = first; s.order && cell < stop; cell += CELL) find_reach(cell);
    }

    void set_nearest(int64_t row, double squared) const {
        const double square = (double)((const T *)s.squares)[row];
        const double room = error * (squared + square) + (double)LEAST;
        const int64_t sample = s.order ? s.order[row] : row;
        s.nearest[row] = s.drawn[sample] = squared;
        mark_stale(sample / SEEDING_BLOCK);
        // With so many features that e is no small number, nothing is ruled out.
        ((T *)s.limits)[row] = error < 0.25 ? (T)(squared - square + room) : (T)INFINITY;
    }

    // Other threads may do the same.
    void mark_stale(int64_t block) const {
#if VECTOR_BYTES
        __atomic_store_n(s.stale + block, (uint8_t)1, __ATOMIC_RELAXED);
#else
        *(volatile uint8_t *)(s.stale + block) = 1;
#endif
    }

    // How far samples of the cell from `first` on are from their nearest centers.
    void find_reach(int64_t first) const {
        const int64_t count = present(first, CELL);
        double farthest = 0.0;
        for (int64_t row = first; row < first + count; row++) {
            const double squared = s.nearest[row];
            farthest = farthest < squared ? squared : farthest;
        }
        ((T *)s.reaches)[first / CELL] = (T)(sqrt(farthest) * (1 + 4 * (double)UNIT) + (double)LEAST);
    }

    void add_masses(int64_t block) const {
        const int64_t first = block * SEEDING_BLOCK, count = present(first, SEEDING_BLOCK);
        const double *const nearest = s.drawn + first;
        double part[8] = {};
        s.stale[block] = 0;
        if (s.weights)
            for (int64_t i = 0; i < count; i++) part[i % 8] += nearest[i] * s.weights[first + i];
        else
            for (int64_t i = 0; i < SEEDING_BLOCK; i += 8)
                for (int64_t k = 0; k < 8; k++) part[k] += nearest[i + k];
        s.sums[block] = ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
    }

    // Mark the samples of a block that may be closer to candidates, and bound what these would gain.
    void bound_gains(int64_t block) {
        const int64_t begin = block * SEEDING_BLOCK, end = begin + present(begin, SEEDING_BLOCK);
        for (int64_t i = 0; i < n_panels * width * GROUP; i++) bound[i] = 0;
        const uint16_t open = s.open[block] = s.order ? open_cells(begin) : (uint16_t)-1;
        for (int64_t first = begin; first < end; first += GROUP) {
            if (!(open >> (first - begin) / CELL & 1)) continue;
            const int64_t count = present(first, GROUP);
            this->load_range(tile, first, count);
            if (p.weights) load_weights(first, count);
            Indices marks[VECTORS] = {};
            for (int64_t panel = 0; panel < n_panels; panel++) meet_panel(panel, first, marks);
            store_marks(s.marks + first, marks);
        }
        for (int64_t j = 0; j < s.n_candidates; j++) {
            double sum = 0.0;
            for (int64_t lane = 0; lane < GROUP; lane++) sum += (double)bound[j * GROUP + lane];
            // With room for the roundings of SEEDING_BLOCK / GROUP additions and what vanishes in products.
            s.gains[block * s.n_candidates + j] =
                (sum * (1 + 256 * (double)UNIT) + SEEDING_BLOCK * (double)LEAST) / s.weight_scale;
        }
    }

    // The cells of a block in which some sample may be closer to a candidate: a sample within r of the middle is at
    // least as far from a candidate as the middle is, less r.
    uint16_t open_cells(int64_t begin) const {
        const int64_t first = begin / CELL, stride = cell_stride(p.n_samples);
        T most[CELLS];
        int32_t is_open[CELLS] = {};
        for (int64_t i = 0; i < CELLS; i++) {
            const T away = (((const T *)p.radii)[first + i] + ((const T *)s.reaches)[first + i]) * (1 + 4 * UNIT);
            most[i] = away * away * (1 + 4 * UNIT) + LEAST;
        }
        for (int64_t j = 0; j < s.n_candidates; j++) {
            T squared[CELLS] = {};
            for (int64_t f = 0; f < p.n_features; f++) {
                const T *const middle = (const T *)p.cells + f * stride + first;
                const T place = keys[j * p.n_features + f] * (T)-0.5;
                for (int64_t i = 0; i < CELLS; i++) squared[i] += (middle[i] - place) * (middle[i] - place);
            }
            for (int64_t i = 0; i < CELLS; i++) is_open[i] |= !(squared[i] * (T)(1 - error) > most[i]);
        }
        uint16_t bits = 0;
        for (int64_t i = 0; i < CELLS; i++) bits |= (uint16_t)(is_open[i] << i);
        return bits;
    }

    // Weights in T, not below the true ones but for rounding.
    void load_weights(int64_t first, int64_t count) {
        for (int64_t lane = 0; lane < GROUP; lane++)
            weight[lane] = lane < count ? (T)(p.weights[first + lane] * s.weight_scale) + LEAST : (T)0;
    }

    void meet_panel(int64_t panel, int64_t first, Indices *marks) {
        const T *const limits = (const T *)s.limits + first;
        switch (width) {
            case 1: return meet<1>(panel, limits, marks);
            case 2: return meet<2>(panel, limits, marks);
            case 3: return meet<3>(panel, limits, marks);
            case 4: return meet<4>(panel, limits, marks);
            case 5: return meet<5>(panel, limits, marks);
            default: return meet<6>(panel, limits, marks);
        }
    }

    template <int WIDTH> void meet(int64_t panel, const T *limits, Indices *marks) {
        const Vector *const column = (const Vector *)tile;
        const T *const key = keys + panel * p.n_features * WIDTH, *const norm = norms + panel * WIDTH;
        Vector score[WIDTH][VECTORS];
        for (int j = 0; j < WIDTH; j++)
            for (int v = 0; v < VECTORS; v++) score[j][v] = norm[j] - Vector{};
        for (int64_t f = 0; f < p.n_features; f++)
            for (int j = 0; j < WIDTH; j++)
                for (int v = 0; v < VECTORS; v++) score[j][v] += column[f * VECTORS + v] * key[j * p.n_features + f];
        Vector *const sum = (Vector *)(bound + panel * WIDTH * GROUP);
        for (int j = 0; j < WIDTH; j++) {
            const Indices bit = ((Index)1 << (panel * WIDTH + j)) - Indices{};
            for (int v = 0; v < VECTORS; v++) {
                const Vector less = ((const Unaligned *)limits)[v] - score[j][v];
                const Vector gain = p.weights ? less * ((const Vector *)weight)[v] : less;
                sum[j * VECTORS + v] += less > 0 ? gain : Vector{};
                marks[v] |= less > 0 ? bit : Indices{};
            }
        }
    }

    static void store_marks(uint16_t *place, const Indices *marks) {
        for (int v = 0; v < VECTORS; v++) {
#if VECTOR_BYTES
            typedef uint16_t Marks __attribute__((vector_size(2 * LANES)));
            const Marks narrow = __builtin_convertvector(marks[v], Marks);
#else
            const uint16_t narrow = (uint16_t)marks[v];
#endif
            memcpy(place + v * LANES, &narrow, sizeof narrow);
        }
    }

    // Find what the center, which is a candidate, gains in a block, and which samples are closer to it.
    void find_gain(int64_t block, int64_t candidate) {
        const int64_t begin = block * SEEDING_BLOCK;
        int64_t rows[SEEDING_BLOCK + 1], n_closer = 0;
        const int64_t count = find_marked(block, candidate, rows);
        double gain = 0.0;
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = rows[i];
            prefetch(values + rows[i + AHEAD < count ? i + AHEAD : count - 1] * p.row_stride);
            const double squared = squared_distance(place_of(row));
            const double less = s.nearest[row] - squared;
            s.closer[begin + n_closer] = squared;
            s.places[begin + n_closer] = (uint16_t)(row - begin);
            n_closer += less > 0;
            gain += less > 0 ? (p.weights ? less * p.weights[row] : less) : 0.0;
        }
        s.n_closer[block] = n_closer;
        s.found[block] = gain;
    }

    static const int64_t AHEAD = 8;

    int64_t find_marked(int64_t block, int64_t candidate, int64_t *rows) const {
        const int64_t begin = block * SEEDING_BLOCK, end = begin + present(begin, SEEDING_BLOCK);
        int64_t count = 0;
        for (int64_t first = begin; first < end; first += CELL) {
            if (!(s.open[block] >> (first - begin) / CELL & 1)) continue;
            for (int64_t row = first; row < first + present(first, CELL); row++) {
                rows[count] = row;
                count += s.marks[row] >> candidate & 1;
            }
        }
        return count;
    }

    void prefetch(const T *place) const {
#if VECTOR_BYTES
        __builtin_prefetch(place);
#else
        (void)place;
#endif
    }

    // Make the candidate whose gain was found last a center of a block.
    void move(int64_t block) const {
        const int64_t begin = block * SEEDING_BLOCK;
        int64_t cell = -1;
        for (int64_t i = 0; i < s.n_closer[block]; i++) {
            const int64_t place = s.places[begin + i];
            set_nearest(begin + place, s.closer[begin + i]);
            if (s.order && cell >= 0 && place / CELL != cell) find_reach(begin + cell * CELL);
            cell = place / CELL;
        }
        if (s.order && cell >= 0) find_reach(begin + cell * CELL);
    }
};

// Let one of these do blocks start..stop, after what it needs for all; returns 0, or -1 for lack of memory.
template <typename T, typename Prepare, typename Work>
int64_t on_blocks(const Problem *problem, const Seeds *seeds, int64_t start, int64_t stop, Prepare prepare, Work work) {
    Seeding<T> seeding(*problem, *seeds);
    return with_scratch(seeding, [&]() -> int64_t {
        prepare(seeding);
        for (int64_t block = start; block < stop; block++) work(seeding, block);
        return 0;
    });
}

template <typename T> int64_t begin_seeding(const Problem *p, const Seeds *s, int64_t start, int64_t stop) {
    return on_blocks<T>(
        p, s, start, stop, [=](Seeding<T> &seeding) { seeding.take_center(s->candidates[0]); },
        [](Seeding<T> &seeding, int64_t block) { seeding.begin(block); });
}

template <typename T>
int64_t bound_gains(const Problem *p, const Seeds *s, int64_t start, int64_t stop, int64_t candidate) {
    const auto prepare = [=](Seeding<T> &seeding) {
        seeding.take_candidates();
        if (candidate >= 0) seeding.take_center(s->candidates[candidate]);
    };
    return on_blocks<T>(p, s, start, stop, prepare, [=](Seeding<T> &seeding, int64_t block) {
        seeding.bound_gains(block);
        if (candidate >= 0) seeding.find_gain(block, candidate);
    });
}

template <typename T>
int64_t find_gain(const Problem *p, const Seeds *s, int64_t start, int64_t stop, int64_t candidate) {
    return on_blocks<T>(
        p, s, start, stop, [=](Seeding<T> &seeding) { seeding.take_center(s->candidates[candidate]); },
        [=](Seeding<T> &seeding, int64_t block) { seeding.find_gain(block, candidate); });
}

template <typename T> int64_t add_masses(const Problem *p, const Seeds *s, int64_t start, int64_t stop) {
    const Seeding<T> seeding(*p, *s);
    for (int64_t block = start; block < stop; block++)
        if (s->stale[block]) seeding.add_masses(block);
    return 0;
}

template <typename T> int64_t add_center(const Problem *p, const Seeds *s, int64_t start, int64_t stop) {
    const Seeding<T> seeding(*p, *s);
    for (int64_t block = start; block < stop; block++) seeding.move(block);
    return 0;
}

}  // namespace

#endif
