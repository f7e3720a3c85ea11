// A tile of samples, which lie in the lanes of registers, and the keys that it meets.
//
// A group of samples (VECTORS registers) is transposed, so that a feature of all its samples is VECTORS loads, and
// meets a panel of up to 6 keys, whose scores stay in registers while the features are added up; then each lane
// updates its best score, its second best one and the index of the best.
//
// In an unnamed namespace, for each instruction set compiles a copy of its own.

#ifndef SKTRANSCLUST_TILE_H
#define SKTRANSCLUST_TILE_H

#include "bounds.h"

namespace {

const int64_t TILE_BYTES = 1 << 16;   // of transposed samples, which meet
const int64_t BLOCK_BYTES = 1 << 17;  // of panels at a time: both stay in the second cache
const int64_t FEW_FEATURES = 8;
const int64_t MOST_GROUPS = 16;       // of one tile

template <typename T> struct Tile : Bounds<T> {
    using Rows<T>::p;
    using Rows<T>::point;
    using Lanes<T>::GROUP;
    using Lanes<T>::load_group;
    using Rows<T>::UNIT;

    typedef typename Lanes<T>::Vector Vector;
    typedef typename Lanes<T>::Index Index;
    typedef typename Lanes<T>::Indices Indices;

    int64_t n_groups, n_keys;
    T *tile;           // (n_groups, n_features, GROUP)
    T *best;           // (n_groups, GROUP), as are the next ones
    T *second;
    T *length;
    T *room;           // the gap above which two scores of a sample are in true order
    T *upper;          // as the next one, of the distances of a sample of the tile
    T *lower;
    Index *index;

    explicit Tile(const Problem &problem) : Bounds<T>(problem), n_keys(p.n_panels * p.panel_width) {
        const int64_t fitting = TILE_BYTES / (p.n_features * GROUP * (int64_t)sizeof(T));
        n_groups = fitting < 1 ? 1 : fitting > MOST_GROUPS ? MOST_GROUPS : fitting;
    }

    int64_t scratch_bytes() const {
        return n_groups * GROUP * (p.n_features + 7) * (int64_t)sizeof(T) + p.n_features * (int64_t)sizeof(double);
    }

    // Use the beginning of some memory, aligned to registers; returns where that ends.
    void *use_scratch(void *scratch) {
        const int64_t n = n_groups * GROUP;
        best = (T *)scratch;
        second = best + n;
        length = second + n;
        room = length + n;
        upper = room + n;
        lower = upper + n;
        index = (Index *)(lower + n);
        tile = lower + 2 * n;
        point = (double *)(tile + n * p.n_features);
        return point + p.n_features;
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

    void meet_panels(int64_t width, int64_t group, const int32_t *keys, int64_t begin, int64_t end) {
        switch (width) {
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
            for (int64_t group = 0; group < groups; group++) meet_panels(p.panel_width, group, keys, begin, end);
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
};

}  // namespace

#endif
