// The hard attention of samples on keys, and the sums of the update, in one pass over the samples.
//
// The meaning is that of `nearest.py`, with its error bound; samples for which the bound decides
// nothing are left to it. Compiled once for each instruction set: the build defines
// SKTRANSCLUST_KERNELS (the name of the table at the end), SKTRANSCLUST_NAME, VECTOR_BYTES (of a
// register; 0 for a compiler without vector extensions) and VECTORS (registers of samples at once).
//
// Nothing of the standard library that a header may define is used: the linker would keep one copy of it, perhaps
// for instructions that are not there.

#include "cells.h"
#include "kernel.h"
#include "pack.h"
#include "seeding.h"
#include "sparse.h"
#include "survey.h"
#include "tile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

namespace {

const int64_t NEAR_BYTES = 1 << 13;   // of keys that stay in the first cache
const int64_t PART_BYTES = 1 << 17;   // of samples that are labelled, then added up

template <typename T> struct Kernel : Tile<T> {
    using Rows<T>::p;
    using Lanes<T>::GROUP;
    using Tile<T>::n_groups;
    using Tile<T>::n_keys;
    using Tile<T>::tile;
    using Tile<T>::best;
    using Tile<T>::second;
    using Tile<T>::length;
    using Tile<T>::room;
    using Tile<T>::upper;
    using Tile<T>::lower;
    using Tile<T>::index;
    using Tile<T>::load_tile;
    using Tile<T>::meet_all;
    using Tile<T>::find_bounds;

    int64_t n_part;
    int64_t *pending;  // (n_part,): samples whose scores are needed
    int64_t *sorted;   // (n_part,): `pending` by label
    int64_t *starts;   // (n_clusters + 1,): of the samples of each label in it
    T *own;            // (n_part,): at least the distances of `pending` to their own centers
    T *sorted_own;     // (n_part,): these by label
    T *slack;          // (n_groups, GROUP): how far the centers may move before the label is uncertain
    int32_t *every;    // (n_keys,): the keys in their order

    explicit Kernel(const Problem &problem) : Tile<T>(problem) {
        const int64_t tiles = PART_BYTES / (n_groups * GROUP * p.n_features * (int64_t)sizeof(T));
        n_part = n_groups * GROUP * (tiles < 1 ? 1 : tiles);
    }

    int64_t scratch_bytes() const {
        return Tile<T>::scratch_bytes() + (2 * n_part + p.n_clusters + 1) * (int64_t)sizeof(int64_t) +
               (2 * n_part + n_groups * GROUP + 4 * p.n_clusters) * (int64_t)sizeof(T) +
               n_keys * (int64_t)sizeof(int32_t);
    }

    void use_scratch(void *scratch) {
        pending = (int64_t *)Tile<T>::use_scratch(scratch);
        sorted = pending + n_part;
        starts = sorted + n_part;
        own = (T *)(starts + p.n_clusters + 1);
        sorted_own = own + n_part;
        slack = sorted_own + n_part;
        this->drift = slack + n_groups * GROUP;
        this->others = this->drift + p.n_clusters;
        this->still = this->others + p.n_clusters;
        this->around = this->still + p.n_clusters;
        every = (int32_t *)(this->around + p.n_clusters);
        for (int64_t j = 0; j < n_keys; j++) every[j] = (int32_t)j;
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
                this->find_lengths(group, nullptr, 0);
            }
            this->begin_tile(groups);
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
                this->meet_panels(p.panel_width, 0, p.near + label * p.n_near, 0, n_panels);
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
    if (problem->offsets) return run(SparseKernel<T>(*problem));
    return problem->cells ? run(CellKernel<T>(*problem)) : run(Kernel<T>(*problem));
}

}  // namespace

extern const Kernels SKTRANSCLUST_KERNELS;
const Kernels SKTRANSCLUST_KERNELS = {SKTRANSCLUST_NAME,
                                      {pack<float>, pack<double>},
                                      {assign<float>, assign<double>},
                                      {enclose<float>, enclose<double>},
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
                                      {add_center<float>, add_center<double>},
                                      {add_masses<float>, add_masses<double>}};
