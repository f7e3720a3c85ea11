// The hard attention of samples on keys, and the sums of the update, in one pass over the samples.
//
// The meaning is that of `nearest.py`, with its error bound; samples for which the bound decides
// nothing are left to it. Compiled once for each instruction set: the build defines
// SKTRANSCLUST_KERNELS (the name of the table at the end), SKTRANSCLUST_NAME, VECTOR_BYTES (of a
// register; 0 for a compiler without vector extensions) and VECTORS (registers of samples at once).
//
// Samples lie in the lanes of registers. A group of samples (VECTORS registers) is transposed, so
// that a feature of all its samples is VECTORS loads, and meets a panel of up to 6 keys, whose
// scores stay in registers while the features are added up; then each lane updates its best score,
// its second best one and the index of the best. Nothing of the standard library that a header may
// define is used: the linker would keep one copy of it, perhaps for instructions that are not there.

#include "bounds.h"
#include "kernel.h"
#include "pack.h"
#include "seeding.h"
#include "sparse.h"
#include "survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

namespace {

const int64_t TILE_BYTES = 1 << 16;   // of transposed samples, which meet
const int64_t BLOCK_BYTES = 1 << 17;  // of panels at a time: both stay in the second cache
const int64_t FEW_FEATURES = 8;
const int64_t NEAR_BYTES = 1 << 13;   // of keys that stay in the first cache
const int64_t MOST_GROUPS = 16;       // of one tile
const int64_t PART_BYTES = 1 << 17;   // of samples that are labelled, then added up

template <typename T> struct Kernel : Bounds<T> {
    using Rows<T>::p;
    using Rows<T>::point;
    using Rows<T>::find_point;
    using Rows<T>::squared_distance;
    using Lanes<T>::GROUP;
    using Lanes<T>::load_group;
    using Rows<T>::UNIT;

    typedef typename Lanes<T>::Vector Vector;
    typedef typename Lanes<T>::Index Index;
    typedef typename Lanes<T>::Indices Indices;

    int64_t n_groups, n_part, n_keys;
    int64_t *pending;  // (n_part,): samples whose scores are needed
    int64_t *sorted;   // (n_part,): `pending` by label
    int64_t *starts;   // (n_clusters + 1,): of the samples of each label in it
    T *own;            // (n_part,): at least the distances of `pending` to their own centers
    T *sorted_own;     // (n_part,): these by label
    int32_t *every;    // (n_keys,): the keys in their order
    T *tile;           // (n_groups, n_features, GROUP)
    T *best;           // (n_groups, GROUP), as are the next ones
    T *second;
    T *length;
    T *room;           // the gap above which two scores of a sample are in true order
    T *upper;          // as the next one, of the distances of a sample of the tile
    T *lower;
    T *slack;          // how far the centers may move before the label is uncertain
    Index *index;

    explicit Kernel(const Problem &problem) : Bounds<T>(problem), n_keys(p.n_panels * p.panel_width) {
        const int64_t fitting = TILE_BYTES / (p.n_features * GROUP * (int64_t)sizeof(T));
        n_groups = fitting < 1 ? 1 : fitting > MOST_GROUPS ? MOST_GROUPS : fitting;
        const int64_t tiles = PART_BYTES / (n_groups * GROUP * p.n_features * (int64_t)sizeof(T));
        n_part = n_groups * GROUP * (tiles < 1 ? 1 : tiles);
    }

    int64_t scratch_bytes() const {
        const int64_t numbers = n_groups * GROUP * (p.n_features + 8) + 2 * n_part + 4 * p.n_clusters + 2;
        return numbers * (int64_t)sizeof(T) + n_keys * (int64_t)sizeof(int32_t) +
               (p.n_features + 2 * n_part + p.n_clusters + 1) * (int64_t)sizeof(double);
    }

    void use_scratch(void *scratch) {
        const int64_t n = n_groups * GROUP;
        best = (T *)scratch;
        second = best + n;
        length = second + n;
        room = length + n;
        upper = room + n;
        lower = upper + n;
        slack = lower + n;
        index = (Index *)(slack + n);
        tile = slack + 2 * n;
        point = (double *)(tile + n * p.n_features);
        pending = (int64_t *)(point + p.n_features);
        sorted = pending + n_part;
        starts = sorted + n_part;
        own = (T *)(starts + p.n_clusters + 1);
        sorted_own = own + n_part;
        this->drift = sorted_own + n_part;
        this->others = this->drift + p.n_clusters;
        this->still = this->others + p.n_clusters;
        this->around = this->still + p.n_clusters;
        every = (int32_t *)(this->around + p.n_clusters);
        for (int64_t j = 0; j < n_keys; j++) every[j] = (int32_t)j;
    }

    // Lengths by a sum of squares in any order, like those of nearest.py: their relative error of at most
    // (n_features / 2 + 2) u changes the bound in the second order, for which its factor 2.1 leaves room.
    void find_lengths(int64_t group, const int64_t *rows, int64_t count) {
        T *const __restrict found = length + group * GROUP;
        if (p.lengths && p.n_features > FEW_FEATURES) {  // of few, they are found sooner than read
            for (int64_t lane = 0; lane < GROUP; lane++)
                found[lane] = lane < count ? ((const T *)p.lengths)[rows[lane]] : (T)0;
            return;
        }
        const Vector *const column = (const Vector *)(tile + group * p.n_features * GROUP);
        Vector squares[VECTORS] = {};
        for (int64_t f = 0; f < p.n_features; f++)
            for (int v = 0; v < VECTORS; v++) squares[v] += column[f * VECTORS + v] * column[f * VECTORS + v];
        memcpy(found, squares, sizeof squares);
        for (int64_t lane = 0; lane < GROUP; lane++) found[lane] = this->root(found[lane]);
    }

    // Let a group meet the keys of panels begin..end of a list. The first wins among equal scores, but such are
    // doubtful.
    template <int WIDTH> void meet(int64_t group, const int32_t *keys, int64_t begin, int64_t end) {
        const Vector *const column = (const Vector *)(tile + group * p.n_features * GROUP);
        Vector *const best_of = (Vector *)(best + group * GROUP);
        Vector *const second_of = (Vector *)(second + group * GROUP);
        Indices *const index_of = (Indices *)(index + group * GROUP);
        for (int64_t panel = begin; panel < end; panel++) {
            const int32_t *const name = keys + panel * WIDTH;
            const T *key[WIDTH];
            Vector score[WIDTH][VECTORS];
            for (int j = 0; j < WIDTH; j++) {
                key[j] = (const T *)p.panels + name[j] * p.n_features;
                for (int v = 0; v < VECTORS; v++) score[j][v] = ((const T *)p.key_norms)[name[j]] - Vector{};
            }
            for (int64_t f = 0; f < p.n_features; f++)
                for (int j = 0; j < WIDTH; j++)
                    for (int v = 0; v < VECTORS; v++) score[j][v] += column[f * VECTORS + v] * key[j][f];
            for (int v = 0; v < VECTORS; v++) {
                // Held in registers only now, so that the loop above has them all.
                Vector first = best_of[v], next = second_of[v];
                Indices where = index_of[v];
                for (int j = 0; j < WIDTH; j++) {
                    const Vector s = score[j][v], larger = s < first ? first : s;
                    const Indices this_one = (Index)name[j] - Indices{};
                    next = larger < next ? larger : next;
                    where = s < first ? this_one : where;
                    first = s < first ? s : first;
                }
                best_of[v] = first;
                second_of[v] = next;
                index_of[v] = where;
            }
        }
    }

    void meet_panels(int64_t group, const int32_t *keys, int64_t begin, int64_t end) {
        switch (p.panel_width) {
            case 1: meet<1>(group, keys, begin, end); break;
            case 2: meet<2>(group, keys, begin, end); break;
            case 3: meet<3>(group, keys, begin, end); break;
            case 4: meet<4>(group, keys, begin, end); break;
            case 5: meet<5>(group, keys, begin, end); break;
            default: meet<6>(group, keys, begin, end);
        }
    }

    // Load samples as a tile, and let it meet no key yet.
    void load_tile(const int64_t *rows, int64_t count) {
        for (int64_t offset = 0; offset < count; offset += GROUP) {
            const int64_t rest = count - offset, present = rest < GROUP ? rest : GROUP;
            load_group(tile + offset * p.n_features, rows + offset, present);
            find_lengths(offset / GROUP, rows + offset, present);
        }
        begin_tile((count + GROUP - 1) / GROUP);
    }

    void begin_tile(int64_t groups) {
        const typename Rows<T>::Gap gap(p);
        for (int64_t i = 0; i < groups * GROUP; i++) {
            best[i] = second[i] = (T)INFINITY;
            index[i] = 0;
            room[i] = gap(length[i]);
        }
    }

    // Let the groups of a tile meet all panels of a list.
    void meet_all(int64_t count, const int32_t *keys, int64_t n_panels) {
        const int64_t groups = (count + GROUP - 1) / GROUP;
        int64_t at_once = BLOCK_BYTES / (p.n_features * p.panel_width * (int64_t)sizeof(T));
        if (at_once < 1) at_once = 1;
        for (int64_t begin = 0; begin < n_panels; begin += at_once) {
            const int64_t end = begin + at_once < n_panels ? begin + at_once : n_panels;
            for (int64_t group = 0; group < groups; group++) meet_panels(group, keys, begin, end);
        }
    }

    // At least the distances that the best scores of a tile mean, and at most those of the second ones. A distance's
    // square is the score plus r^2; the scores' errors are at most half the gap, and what is left of it and of
    // `length_error` covers the roundings here. Without branches, so that compilers use registers.
    void find_bounds(int64_t count) const {
        const T error = (T)p.length_error;
        const T *const __restrict r = length, *const __restrict gaps = room;
        const T *const __restrict first = best, *const __restrict next = second;
        T *const __restrict most = upper, *const __restrict least = lower;
        for (int64_t i = 0; i < count; i++) {
            const T square = r[i] * r[i], doubt = gaps[i] + error * square;
            const T farthest = first[i] + square + doubt, nearest = next[i] + square - doubt;
            most[i] = this->root(farthest > 0 ? farthest : 0) * (1 + 4 * UNIT);
            const T distance = this->root(nearest > 0 ? nearest : 0) * (1 - 4 * UNIT);
            least[i] = distance < Bounds<T>::MOST ? distance : Bounds<T>::MOST;
        }
    }

    // Give the samples `rows` of the tile the labels that their scores tell, and append the doubtful ones to a
    // list; returns its new end.
    int64_t *label_tile(const int64_t *rows, int64_t count, int64_t *doubtful, int64_t *changed) {
        if (p.until) keep_bounds(rows, count);
        for (int64_t i = 0; i < count; i++) {
            if (second[i] - best[i] > room[i] || settle_by_near(rows[i], i))
                *changed += this->relabel(rows[i], (int32_t)index[i]);
            else
                *doubtful++ = rows[i];
        }
        return doubtful;
    }

    bool settle_by_near(int64_t row, int64_t i) {
        const int64_t n_panels = p.n_near ? this->panels_near(index[i], upper[i]) : -1;
        if (n_panels < 0) return this->settle(row, length[i], every, p.n_clusters, index + i);
        return this->settle(row, length[i], p.near + index[i] * p.n_near, n_panels * p.panel_width, index + i);
    }

    // Without a decision by scores, and where a center that repeats another has none, nothing is known.
    void keep_bounds(const int64_t *rows, int64_t count) const {
        const T *const __restrict gaps = room, *const __restrict first = best, *const __restrict next = second;
        const T *const __restrict most = upper;
        T *const __restrict least = lower, *const __restrict slacks = slack;
        const T certain = this->sure, never = (T)-INFINITY;
        const bool known = p.distinct;
        for (int64_t i = 0; i < count; i++) {
            const bool told = (next[i] - first[i] > gaps[i]) & known;
            slacks[i] = told ? this->minus(least[i] * certain, most[i]) : never;
            least[i] = told ? least[i] : never;
        }
        for (int64_t i = 0; i < count; i++) {
            ((T *)p.until)[rows[i]] = this->plus(slack[i], this->drift[index[i]]);
            ((T *)p.lower)[rows[i]] = this->plus(least[i], this->others[index[i]]);
        }
    }

    // Label samples by the scores of all keys.
    int64_t *label_by_all(const int64_t *rows, int64_t count, int64_t *doubtful, int64_t *changed) {
        for (int64_t i = 0; i < count; i += n_groups * GROUP) {
            const int64_t rest = count - i, present = rest < n_groups * GROUP ? rest : n_groups * GROUP;
            load_tile(rows + i, present);
            meet_all(present, every, p.n_panels);
            if (p.until) find_bounds(present);
            doubtful = label_tile(rows + i, present, doubtful, changed);
        }
        return doubtful;
    }

    // Label a range of samples, and do no more.
    int64_t label_range(int64_t start, int64_t stop, int64_t *doubtful) {
        int64_t *end = doubtful;
        // A group at a time where its features and all keys stay in the first cache.
        const int64_t size = n_keys * p.n_features * (int64_t)sizeof(T) <= NEAR_BYTES ? GROUP : n_groups * GROUP;
        for (int64_t first = start; first < stop; first += size) {
            const int64_t count = stop - first < size ? stop - first : size;
            const int64_t groups = (count + GROUP - 1) / GROUP;
            for (int64_t group = 0, rest = count; group < groups; group++, rest -= GROUP) {
                this->load_range(tile + group * p.n_features * GROUP, first + group * GROUP, rest < GROUP ? rest : GROUP);
                find_lengths(group, nullptr, 0);
            }
            begin_tile(groups);
            meet_all(count, every, p.n_panels);
            for (int64_t offset = 0; offset < count; offset += GROUP)
                end = label_group(first, offset, count - offset < GROUP ? count - offset : GROUP, end);
        }
        return end - doubtful;
    }

    int64_t *label_group(int64_t first, int64_t offset, int64_t count, int64_t *doubtful) {
        int32_t *const labels = p.labels + first + offset;
        int32_t any = 0;
        const T *const least = best + offset, *const next = second + offset, *const needed = room + offset;
        if (count == GROUP)
            for (int64_t i = 0; i < GROUP; i++) labels[i] = (int32_t)index[offset + i];
        else
            for (int64_t i = 0; i < count; i++) labels[i] = (int32_t)index[offset + i];
        for (int64_t i = 0; i < GROUP; i++) any |= !(next[i] - least[i] > needed[i]);
        if (!any) return doubtful;
        for (int64_t i = 0; i < count; i++) {
            if (next[i] - least[i] > needed[i]) continue;
            if (this->settle(first + offset + i, length[offset + i], every, p.n_clusters, index + offset + i))
                labels[i] = (int32_t)index[offset + i];
            else
                *doubtful++ = first + offset + i;
        }
        return doubtful;
    }

    // Drop from `pending` the samples that no mover can take from their centers, and no other key either.
    int64_t keep_from_movers(int64_t n_pending) {
        int64_t n_left = 0;
        for (int64_t begin = 0; begin < n_pending; begin += n_groups * GROUP) {
            const int64_t rest = n_pending - begin, count = rest < n_groups * GROUP ? rest : n_groups * GROUP;
            load_tile(pending + begin, count);
            meet_all(count, p.movers, p.n_movers / p.panel_width);
            for (int64_t i = 0; i < count; i++) {
                const bool is_own = index[i] == p.labels[pending[begin + i]] && best[i] < (T)INFINITY;
                second[i] = is_own ? second[i] : best[i];
            }
            find_bounds(count);
            for (int64_t i = 0; i < count; i++) {
                const int64_t row = pending[begin + i], label = p.labels[row];
                const T mine = own[begin + i], mover = lower[i];
                const T other = this->minus(((const T *)p.lower)[row], this->still[label]);
                const T least = mover < other ? mover : other;
                if (p.distinct && mine < least * this->sure)
                    this->set_bounds(row, label, mine, least);
                else
                    pending[n_left++] = row;
            }
        }
        return n_left;
    }

    // Put the pending samples of each label side by side, and their distances `own` too.
    void sort_by_label(int64_t n_pending) {
        for (int64_t j = 0; j <= p.n_clusters; j++) starts[j] = 0;
        for (int64_t i = 0; i < n_pending; i++) starts[p.labels[pending[i]] + 1]++;
        for (int64_t j = 1; j < p.n_clusters; j++) starts[j] += starts[j - 1];
        for (int64_t i = 0; i < n_pending; i++) {
            const int64_t place = starts[p.labels[pending[i]]]++;
            sorted[place] = pending[i];
            sorted_own[place] = own[i];
        }
        int64_t *const list = pending;
        pending = sorted;
        sorted = list;
        T *const distances = own;
        own = sorted_own;
        sorted_own = distances;
    }

    // Label samples, which lie side by side if they have the same label, by the scores of the keys near that one.
    int64_t *label_by_near(int64_t n_pending, int64_t *doubtful, int64_t *changed) {
        for (int64_t begin = 0, count; begin < n_pending; begin += count) {
            const int64_t *const rows = pending + begin, label = p.labels[rows[0]];
            const int64_t most = n_pending - begin < GROUP ? n_pending - begin : GROUP;
            T farthest = own[begin];
            for (count = 1; count < most && p.labels[rows[count]] == label; count++)
                farthest = own[begin + count] > farthest ? own[begin + count] : farthest;
            const int64_t n_panels = this->panels_near(label, farthest);
            load_tile(rows, count);
            if (n_panels < 0)
                meet_all(count, every, p.n_panels);
            else
                meet_panels(0, p.near + label * p.n_near, 0, n_panels);
            find_bounds(count);
            const T unseen = n_panels < 0 ? Bounds<T>::MOST : this->gap_to(label, n_panels * p.panel_width);
            for (int64_t i = 0; i < count; i++) {
                const T away = this->minus(unseen, own[begin + i]);
                lower[i] = away < lower[i] ? away : lower[i];
            }
            doubtful = label_tile(rows, count, doubtful, changed);
        }
        return doubtful;
    }

    int64_t assign(int64_t start, int64_t stop, int64_t *doubtful, int64_t *n_changed) {
        if (!p.sums && !p.until && !p.lengths) return label_range(start, stop, doubtful);
        int64_t *end = doubtful;
        if (p.until) this->round_drift();
        for (int64_t first = start; first < stop; first += n_part) {
            const int64_t last = stop - first < n_part ? stop : first + n_part;
            int64_t n_pending = last - first;
            if (p.bounded)
                n_pending = find_pending(first, last);
            else
                for (int64_t i = 0; i < n_pending; i++) pending[i] = first + i;
            end = p.bounded && p.n_near ? label_by_near(n_pending, end, n_changed)
                                        : label_by_all(pending, n_pending, end, n_changed);
        }
        return end - doubtful;
    }

    int64_t find_pending(int64_t first, int64_t last) {
        const int64_t n_pending = this->screen(first, last, pending);
        if (!p.n_near && p.n_clusters * (p.n_features + 5) < Bounds<T>::MANY_SCORES) return n_pending;
        const int64_t n_left = this->tighten(pending, n_pending, own);
        if (p.n_near) sort_by_label(n_left);
        return p.n_movers ? keep_from_movers(n_left) : n_left;
    }
};

template <typename T>
int64_t assign(const Problem *problem, int64_t start, int64_t stop, int64_t *doubtful, int64_t *n_changed) {
    const auto run = [&](auto kernel) {
        return with_scratch(kernel, [&] { return kernel.assign(start, stop, doubtful, n_changed); });
    };
    return problem->offsets ? run(SparseKernel<T>(*problem)) : run(Kernel<T>(*problem));
}

}  // namespace

extern const Kernels SKTRANSCLUST_KERNELS;
const Kernels SKTRANSCLUST_KERNELS = {SKTRANSCLUST_NAME,
                                      {pack<float>, pack<double>},
                                      {assign<float>, assign<double>},
                                      {decide<float>, decide<double>},
                                      {squares<float>, squares<double>},
                                      {sums<float>, sums<double>},
                                      {survey<float>, survey<double>},
                                      {moments<float>, moments<double>},
                                      {sparse_squares<float>, sparse_squares<double>},
                                      {sparse_moments<float>, sparse_moments<double>},
                                      {sparse_pairs<float>, sparse_pairs<double>},
                                      {begin_seeding<float>, begin_seeding<double>},
                                      {bound_gains<float>, bound_gains<double>},
                                      {find_gain<float>, find_gain<double>},
                                      {add_center<float>, add_center<double>}};
