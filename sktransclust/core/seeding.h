// Greedy k-means++: what a few candidates would gain as the next center, and the samples' moves to the best of them.
//
// Candidates are samples, so their coordinates are exact in T. A group of samples meets them by scores first, as in
// kernel.cpp. For a sample x and a candidate c, no score is below |x - c|^2 - |x|^2 - 2 e (|x|^2 + |c|^2), where
// e = 1.1 (d + 4) u. The part of the candidate is taken off its norm and that of the sample is in its `limit`, so that
// a score that is not below the limit cannot belong to a smaller distance than the one so far. The other samples'
// distances are found in float64, by differences.
//
// What is found for a block of samples depends on that block alone: any division of the blocks among threads, whose
// results are added up in their order, has the same bits.

#ifndef SKTRANSCLUST_SEEDING_H
#define SKTRANSCLUST_SEEDING_H

#include "lanes.h"

namespace {

template <typename T> struct Seeding : Lanes<T> {
    using Rows<T>::p;
    using Rows<T>::local;
    using Rows<T>::UNIT;
    using Rows<T>::LEAST;
    using Lanes<T>::GROUP;

    typedef typename Lanes<T>::Vector Vector;
    typedef typename Lanes<T>::Unaligned Unaligned;
    typedef typename Lanes<T>::Index Index;
    typedef typename Lanes<T>::Indices Indices;
#if VECTOR_BYTES
    typedef double Wide __attribute__((vector_size(VECTOR_BYTES), may_alias));
    typedef double UnalignedWide __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(double)), may_alias));
#else
    typedef double Wide, UnalignedWide;
#endif
    static const int64_t WIDES = GROUP * sizeof(double) / sizeof(Wide);
    static const int64_t GROUPS = SEEDING_BLOCK / GROUP;  // of a block
    static const int MOST = 6;                            // candidates of a panel

    const Seeds &s;
    const double error;  // 2 e, with room for roundings in T and in float64
    const int64_t n_panels, width;
    T *tile;          // (n_features, GROUP)
    T *keys;          // (n_panels * width, n_features): candidates times -2
    T *norms;         // (n_panels * width,): infinite where there is no candidate
    double *wide;     // (n_features, GROUP): the tile in float64
    double *exact;    // (n_candidates, n_features): the candidates
    double *gain;     // (n_candidates, GROUP)
    double *weight;   // (GROUP,), as are the next ones
    double *squared;  // distances
    double *lengths;  // squared

    Seeding(const Problem &problem, const Seeds &seeds)
        : Lanes<T>(problem), s(seeds), error(4 * (double)(p.n_features + 8) * (double)UNIT),
          n_panels((s.n_candidates + MOST - 1) / MOST), width((s.n_candidates + n_panels - 1) / n_panels) {}

    int64_t scratch_bytes() const {
        const int64_t in_t = GROUP * p.n_features + n_panels * width * (p.n_features + 1);
        const int64_t in_float64 = (p.n_features + 3) * GROUP + s.n_candidates * (p.n_features + GROUP);
        return in_t * (int64_t)sizeof(T) + in_float64 * (int64_t)sizeof(double);
    }

    void use_scratch(void *scratch) {
        weight = (double *)scratch;
        squared = weight + GROUP;
        lengths = squared + GROUP;
        gain = lengths + GROUP;
        wide = gain + s.n_candidates * GROUP;
        tile = (T *)(wide + p.n_features * GROUP);  // up to here, all are whole registers
        exact = (double *)(tile + p.n_features * GROUP);
        keys = (T *)(exact + s.n_candidates * p.n_features);
        norms = keys + n_panels * width * p.n_features;
        for (int64_t lane = 0; lane < GROUP; lane++) weight[lane] = 1.0;
        take_candidates();
    }

    void take_candidates() {
        for (int64_t j = 0; j < n_panels * width; j++) {
            double norm = 0.0;
            for (int64_t f = 0; f < p.n_features; f++) {
                const T value = j < s.n_candidates ? local(s.candidates[j], f) : (T)0;
                keys[j * p.n_features + f] = value * -2;
                norm += (double)value * (double)value;
                if (j < s.n_candidates) exact[j * p.n_features + f] = (double)value;
            }
            norms[j] = j < s.n_candidates ? (T)(norm - error * norm) : (T)INFINITY;
        }
    }

    // Load a group and what belongs to it; absent samples weigh nothing. Returns how many samples are there.
    int64_t load(int64_t first) {
        const int64_t count = p.n_samples - first < GROUP ? p.n_samples - first : GROUP;
        this->load_range(tile, first, count);
        if (p.weights) load_weights(first, count);
        return count;
    }

    void load_weights(int64_t first, int64_t count) {
        for (int64_t lane = 0; lane < GROUP; lane++) weight[lane] = lane < count ? p.weights[first + lane] : 0.0;
    }

    void widen() {
        if (sizeof(T) == sizeof(double))
            wide = (double *)tile;
        else
            for (int64_t i = 0; i < p.n_features * GROUP; i++) wide[i] = (double)tile[i];
    }

    void find_gains(int64_t block) {
        for (int64_t i = 0; i < s.n_candidates * GROUP; i++) gain[i] = 0.0;
        const int64_t begin = block * SEEDING_BLOCK;
        for (int64_t g = 0; g < GROUPS && begin + g * GROUP < p.n_samples; g++) {
            load(begin + g * GROUP);
            const uint64_t marks = meet_all((const T *)s.limits + begin + g * GROUP);
            s.marks[block * GROUPS + g] = marks;
            if (marks) add_gains(marks, s.nearest + begin + g * GROUP);
        }
        for (int64_t j = 0; j < s.n_candidates; j++) {
            double sum = 0.0;
            for (int64_t lane = 0; lane < GROUP; lane++) sum += gain[j * GROUP + lane];
            s.gains[block * s.n_candidates + j] = sum;
        }
    }

    // Which candidates may be closer to a sample of the group than the centers so far, as bits.
    uint64_t meet_all(const T *limits) const {
        uint64_t marks = 0;
        for (int64_t panel = 0; panel < n_panels; panel++) switch (width) {
            case 1: marks |= meet<1>(panel, limits); break;
            case 2: marks |= meet<2>(panel, limits); break;
            case 3: marks |= meet<3>(panel, limits); break;
            case 4: marks |= meet<4>(panel, limits); break;
            case 5: marks |= meet<5>(panel, limits); break;
            default: marks |= meet<6>(panel, limits);
        }
        return marks;
    }

    template <int WIDTH> uint64_t meet(int64_t panel, const T *limits) const {
        const Vector *const column = (const Vector *)tile;
        const T *const key = keys + panel * p.n_features * WIDTH, *const norm = norms + panel * WIDTH;
        Vector score[WIDTH][VECTORS];
        for (int j = 0; j < WIDTH; j++)
            for (int v = 0; v < VECTORS; v++) score[j][v] = norm[j] - Vector{};
        for (int64_t f = 0; f < p.n_features; f++)
            for (int j = 0; j < WIDTH; j++)
                for (int v = 0; v < VECTORS; v++) score[j][v] += column[f * VECTORS + v] * key[j * p.n_features + f];
        Indices below[WIDTH], any = Indices{};
        for (int j = 0; j < WIDTH; j++) {
            below[j] = Indices{};
            for (int v = 0; v < VECTORS; v++) below[j] |= score[j][v] < ((const Unaligned *)limits)[v];
            any |= below[j];
        }
        uint64_t marks = 0;
        if (!is_any(any)) return marks;
        for (int j = 0; j < WIDTH; j++) marks |= (uint64_t)is_any(below[j]) << (panel * WIDTH + j);
        return marks;
    }

    static bool is_any(Indices lanes) {
        uint64_t part[(sizeof lanes + 7) / 8] = {}, any = 0;
        memcpy(part, &lanes, sizeof lanes);
        for (size_t i = 0; i < sizeof part / sizeof *part; i++) any |= part[i];
        return any != 0;
    }

    void add_gains(uint64_t marks, const double *nearest) {
        widen();
        for (int64_t j = 0; j < s.n_candidates; j++) {
            if (!(marks >> j & 1)) continue;
            find_squares(exact + j * p.n_features);
            Wide *const sum = (Wide *)(gain + j * GROUP);
            for (int w = 0; w < WIDES; w++) {
                const Wide less = ((const UnalignedWide *)nearest)[w] - ((const Wide *)squared)[w];
                sum[w] += ((const Wide *)weight)[w] * (less > 0 ? less : Wide{});
            }
        }
    }

    // Squared distances of the group to a candidate.
    void find_squares(const double *center) {
        add_squares(squared, [=](Wide value, int64_t f) { return value - center[f]; });
    }

    void find_lengths() {
        add_squares(lengths, [](Wide value, int64_t) { return value; });
    }

    // Add up the squares of what is made of each feature, odd and even ones side by side.
    template <typename Made> void add_squares(double *squares, Made made) {
        const Wide *const column = (const Wide *)wide;
        Wide even[WIDES], odd[WIDES];
        for (int w = 0; w < WIDES; w++) even[w] = odd[w] = Wide{};
        int64_t f = 0;
        for (; f + 2 <= p.n_features; f += 2)
            for (int w = 0; w < WIDES; w++) {
                const Wide first = made(column[f * WIDES + w], f), second = made(column[(f + 1) * WIDES + w], f + 1);
                even[w] += first * first;
                odd[w] += second * second;
            }
        for (int w = 0; w < WIDES; w++) {
            const Wide last = f < p.n_features ? made(column[f * WIDES + w], f) : Wide{};
            ((Wide *)squares)[w] = even[w] + odd[w] + last * last;
        }
    }

    // Make the candidate a center of the samples of a block that are closer to it, and add the block up anew.
    void move(int64_t block, int64_t candidate) {
        const int64_t begin = block * SEEDING_BLOCK;
        bool moved = false;
        for (int64_t g = 0; g < GROUPS && begin + g * GROUP < p.n_samples; g++)
            if (s.marks[block * GROUPS + g] >> candidate & 1) {
                move_group(begin + g * GROUP, exact + candidate * p.n_features);
                moved = true;
            }
        if (!moved) return;
        Wide sum[WIDES];
        for (int w = 0; w < WIDES; w++) sum[w] = Wide{};
        for (int64_t g = 0; g < GROUPS && begin + g * GROUP < p.n_samples; g++) {
            const int64_t first = begin + g * GROUP, rest = p.n_samples - first;
            if (p.weights) load_weights(first, rest < GROUP ? rest : GROUP);
            const UnalignedWide *const nearest = (const UnalignedWide *)(s.nearest + first);
            for (int w = 0; w < WIDES; w++) sum[w] += nearest[w] * ((const Wide *)weight)[w];
        }
        for (int w = 0; w < WIDES; w++) ((Wide *)squared)[w] = sum[w];
        s.sums[block] = 0.0;
        for (int64_t lane = 0; lane < GROUP; lane++) s.sums[block] += squared[lane];
    }

    void move_group(int64_t first, const double *center) {
        const int64_t count = load(first);
        widen();
        find_squares(center);
        find_lengths();
        double *const nearest = s.nearest + first;
        T *const limit = (T *)s.limits + first;
        for (int64_t lane = 0; lane < count; lane++) {
            nearest[lane] = squared[lane] < nearest[lane] ? squared[lane] : nearest[lane];
            const double room = error * (nearest[lane] + lengths[lane]) + (double)LEAST;
            // With so many features that e is no small number, nothing is ruled out.
            limit[lane] = error < 0.25 ? (T)(nearest[lane] - lengths[lane] + room) : (T)INFINITY;
        }
    }
};

template <typename T>
int64_t find_gains(const Problem *problem, const Seeds *seeds, int64_t start, int64_t stop) {
    Seeding<T> seeding(*problem, *seeds);
    return with_scratch(seeding, [&]() -> int64_t {
        for (int64_t block = start; block < stop; block++) seeding.find_gains(block);
        return 0;
    });
}

template <typename T>
int64_t add_center(const Problem *problem, const Seeds *seeds, int64_t start, int64_t stop, int64_t candidate) {
    Seeding<T> seeding(*problem, *seeds);
    return with_scratch(seeding, [&]() -> int64_t {
        for (int64_t block = start; block < stop; block++) seeding.move(block, candidate);
        return 0;
    });
}

// The first sample up to which the sum of weighted squared distances is not below a share of the whole sum.
int64_t draw(const Problem *problem, const Seeds *seeds, double share) {
    const int64_t last_block = (problem->n_samples - 1) / SEEDING_BLOCK;
    double total = 0.0, sum = 0.0;
    for (int64_t block = 0; block <= last_block; block++) total += seeds->sums[block];
    const double target = share * total;
    int64_t block = 0;
    while (block < last_block && sum + seeds->sums[block] < target) sum += seeds->sums[block++];
    const int64_t begin = block * SEEDING_BLOCK;
    const int64_t end = block < last_block ? begin + SEEDING_BLOCK : problem->n_samples;
    int64_t found = begin;  // rounding may leave the sum of the block just below the target: then the last of any mass
    for (int64_t row = begin; row < end; row++) {
        const double mass = problem->weights ? problem->weights[row] * seeds->nearest[row] : seeds->nearest[row];
        sum += mass;
        if (mass > 0) found = row;
        if (sum >= target) return row;
    }
    return found;
}

}  // namespace

#endif
