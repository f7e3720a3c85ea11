// Samples in cells: many of them side by side, near each other, for which one look at the keys decides.
//
// Let all samples of a cell be within r of its middle, and the nearest key be at most u from that. Then the nearest
// key of each sample is at most u + r from it, and less than u + 2 r from the middle, or little more where roundings
// count. Only such keys come into question for the samples; where that is a single one, they are not looked at.
//
// The samples are in an order in which neighbours follow each other (cells.py).
//
// In an unnamed namespace, for each instruction set compiles a copy of its own.

#ifndef SKTRANSCLUST_CELLS_H
#define SKTRANSCLUST_CELLS_H

#include "tile.h"

namespace {

// How far apart the middles of a feature are; there is room for whole registers of them.
inline int64_t cell_stride(int64_t n_samples) { return (n_samples + 64 * CELL - 1) / (64 * CELL) * 64; }

// Where the group of samples that begins with a row lies in lanes.
template <typename T, int64_t GROUP> T *group_of(const Problem &p, int64_t row) {
    return (T *)p.lanes + row / GROUP * p.n_features * GROUP;
}

template <typename T> struct CellKernel : Tile<T> {
    using Rows<T>::p;
    using Rows<T>::UNIT;
    using Lanes<T>::GROUP;
    using Tile<T>::n_keys;
    using Tile<T>::tile;
    using Tile<T>::best;
    using Tile<T>::second;
    using Tile<T>::length;
    using Tile<T>::room;
    using Tile<T>::index;

    typedef typename Lanes<T>::Vector Vector;
    typedef typename Lanes<T>::Index Index;
    typedef typename Lanes<T>::Indices Indices;

    static_assert(CELL % GROUP == 0, "a cell is one group of lanes or several");

    T *middles;      // (n_features, GROUP): of as many cells
    T *scores;       // (n_keys, GROUP): of their middles
    T *limit;        // (GROUP,): keys with larger scores do not come into question
    int32_t *names;  // (GROUP, most): for each of the cells, the keys that do
    int64_t most;
    int64_t count[GROUP];

    explicit CellKernel(const Problem &problem) : Tile<T>(problem), most(n_keys + 6) {}

    int64_t scratch_bytes() const {
        return Tile<T>::scratch_bytes() + (n_keys + p.n_features + 1) * GROUP * (int64_t)sizeof(T) +
               GROUP * most * (int64_t)sizeof(int32_t) + 64;
    }

    void use_scratch(void *scratch) {
        const uintptr_t end = (uintptr_t)Tile<T>::use_scratch(scratch);
        middles = (T *)((end + 63) / 64 * 64);
        scores = middles + p.n_features * GROUP;
        limit = scores + n_keys * GROUP;
        names = (int32_t *)(limit + GROUP);
    }

    // Find the scores of all keys for the middles of cells.
    void score_middles(int64_t first) {
        const int64_t stride = cell_stride(p.n_samples);
        for (int64_t f = 0; f < p.n_features; f++)
            memcpy(middles + f * GROUP, (const T *)p.cells + f * stride + first, GROUP * sizeof(T));
        memcpy(length, middle_lengths() + first, GROUP * sizeof(T));
        this->begin_tile(1);
        const Vector *const column = (const Vector *)middles;
        Vector *score_of = (Vector *)scores;
        Vector least[VECTORS];
        for (int v = 0; v < VECTORS; v++) least[v] = (T)INFINITY - Vector{};
        for (int64_t j = 0; j < n_keys; j++, score_of += VECTORS) {
            const T *const key = (const T *)p.panels + j * p.n_features;
            Vector score[VECTORS];
            for (int v = 0; v < VECTORS; v++) score[v] = ((const T *)p.key_norms)[j] - Vector{};
            for (int64_t f = 0; f < p.n_features; f++)
                for (int v = 0; v < VECTORS; v++) score[v] += column[f * VECTORS + v] * key[f];
            for (int v = 0; v < VECTORS; v++) {
                least[v] = score[v] < least[v] ? score[v] : least[v];
                score_of[v] = score[v];
            }
        }
        for (int v = 0; v < VECTORS; v++) ((Vector *)best)[v] = least[v];
    }

    // The largest score of a key that comes into question for a sample of a cell; rounded up, as find_bounds says.
    void find_limits(int64_t first) {
        const T error = (T)p.length_error, doubt_of_all = 1 + 2 * (T)p.certainty;
        for (int64_t i = 0; i < GROUP; i++) {
            const T radius = ((const T *)p.radii)[first + i];
            const T square = length[i] * length[i], doubt = room[i] + error * square;
            const T farthest = best[i] + square + doubt;
            const T own = this->root(farthest > 0 ? farthest : 0) * (1 + 4 * UNIT);
            const T most_away = ((own + radius) * doubt_of_all + radius) * (1 + 8 * UNIT);
            const T squared = most_away * most_away;
            limit[i] = squared - square + doubt + 8 * UNIT * (squared + square);
        }
    }

    // List the keys that come into question for each cell. What is not a number excludes nothing.
    void list_keys() {
        for (int64_t i = 0; i < GROUP; i++) count[i] = 0;
        for (int64_t j = 0; j < n_keys; j++) {
            const T *const score = scores + j * GROUP;
            if (exceeds_all(score)) continue;
            for (int64_t i = 0; i < GROUP; i++) {
                names[i * most + count[i]] = (int32_t)j;
                count[i] += !(score[i] > limit[i]);
            }
        }
    }

    bool exceeds_all(const T *score) const {
        const Indices no = {}, yes = 1 - no;
        Indices within = no;
        const Vector *const most_of = (const Vector *)limit;
        for (int v = 0; v < VECTORS; v++) within |= ((const Vector *)score)[v] > most_of[v] ? no : yes;
        return !any_of(within);
    }

    static bool any_of(Indices lanes) {
        int64_t parts[(sizeof(Indices) + 7) / 8] = {}, any = 0;
        memcpy(parts, &lanes, sizeof lanes);
        for (int64_t part : parts) any |= part;
        return any != 0;
    }

    void label_whole(int64_t cell, int64_t first, int64_t last, int32_t label, int64_t *changed) {
        if (p.only_changes && p.cell_labels[cell] == label) return;
        for (int64_t row = first; row < last; row++) *changed += this->relabel(row, label);
        p.cell_labels[cell] = label;
    }

    // Let the samples of a cell meet some keys, in as few and as narrow panels as these need.
    int64_t *label_each(int64_t cell, int64_t first, int64_t last, int32_t *keys, int64_t n_of, int64_t *doubtful,
                        int64_t *changed) {
        const int64_t n_panels = (n_of + 5) / 6, width = (n_of + n_panels - 1) / n_panels;
        for (int64_t i = n_of; i < n_panels * width; i++) keys[i] = (int32_t)n_keys;  // none
        p.cell_labels[cell] = -1;
        const T longest = (middle_lengths()[cell] + ((const T *)p.radii)[cell]) * (1 + 4 * UNIT);
        const T enough = this->gap(longest);
        const bool few = p.only_changes && n_panels == 1;
        for (int64_t begin = first; begin < last; begin += GROUP) {
            const int64_t present = last - begin < GROUP ? last - begin : GROUP;
            tile = group_of<T, GROUP>(p, begin);
            if (few && present == GROUP && keep(width, keys, p.labels + begin, enough)) continue;
            for (int64_t i = 0; i < GROUP; i++)
                length[i] = ((const T *)p.lengths)[begin + (i < present ? i : present - 1)];
            this->begin_tile(1);
            this->meet_panels(width, 0, keys, 0, n_panels);
            doubtful = relabel_group(begin, present, keys, n_of, doubtful, changed);
        }
        return doubtful;
    }

    int64_t *relabel_group(int64_t first, int64_t present, const int32_t *keys, int64_t n_of, int64_t *doubtful,
                           int64_t *changed) {
        for (int64_t i = 0; i < present; i++) {
            if (second[i] - best[i] > room[i] || this->settle(first + i, length[i], keys, n_of, index + i))
                *changed += this->relabel(first + i, (int32_t)index[i]);
            else
                *doubtful++ = first + i;
        }
        return doubtful;
    }

    bool keep(int64_t width, const int32_t *keys, const int32_t *labels, T enough) const {
        switch (width) {
            case 2: return keep<2>(keys, labels, enough);
            case 3: return keep<3>(keys, labels, enough);
            case 4: return keep<4>(keys, labels, enough);
            case 5: return keep<5>(keys, labels, enough);
            default: return keep<6>(keys, labels, enough);
        }
    }

    // Whether the samples of the tile keep their labels without doubt, which the keys then are of; in registers.
    template <int WIDTH> bool keep(const int32_t *keys, const int32_t *labels, T enough) const {
        const Vector *const column = (const Vector *)tile;
        const Indices no = {}, yes = 1 - no;
        Vector first[VECTORS], next[VECTORS];
        Indices where[VECTORS], open = no;
        for (int v = 0; v < VECTORS; v++) {
            first[v] = next[v] = (T)INFINITY - Vector{};
            where[v] = no;
        }
        for (int j = 0; j < WIDTH; j++) {
            const T *const key = (const T *)p.panels + keys[j] * p.n_features;
            for (int v = 0; v < VECTORS; v++) {
                Vector s = ((const T *)p.key_norms)[keys[j]] - Vector{};
                for (int64_t f = 0; f < p.n_features; f++) s += column[f * VECTORS + v] * key[f];
                const Vector larger = s < first[v] ? first[v] : s;
                const Indices this_one = (Index)keys[j] - no;
                next[v] = larger < next[v] ? larger : next[v];
                where[v] = s < first[v] ? this_one : where[v];
                first[v] = s < first[v] ? s : first[v];
            }
        }
        for (int v = 0; v < VECTORS; v++) {
            Index before[Lanes<T>::LANES];
            for (int64_t i = 0; i < Lanes<T>::LANES; i++) before[i] = labels[v * Lanes<T>::LANES + i];
            Indices own;
            memcpy(&own, before, sizeof own);
            open |= (next[v] - first[v] > enough ? no : yes) | (own ^ where[v]);
        }
        return !any_of(open);
    }

    const T *middle_lengths() const { return (const T *)p.cells + p.n_features * cell_stride(p.n_samples); }

    int64_t assign(int64_t start, int64_t stop, int64_t *doubtful, int64_t *changed) {
        int64_t *end = doubtful;
        for (int64_t first = start; first < stop; first += GROUP * CELL) {
            const int64_t cell = first / CELL;
            score_middles(cell);
            find_limits(cell);
            list_keys();
            for (int64_t i = 0; i < GROUP && first + i * CELL < stop; i++) {
                const int64_t begin = first + i * CELL, last = stop - begin < CELL ? stop : begin + CELL;
                int32_t *const keys = names + i * most;
                if (count[i] == 1)
                    label_whole(cell + i, begin, last, keys[0], changed);
                else
                    end = label_each(cell + i, begin, last, keys, count[i], end, changed);
            }
        }
        return end - doubtful;
    }
};

// What is known of a cell: its samples in lanes, the middle, which is their mean, with its length, and the radius.
template <typename T> struct Enclosure : Lanes<T> {
    using Rows<T>::p;
    using Rows<T>::UNIT;
    using Rows<T>::local;
    using Lanes<T>::GROUP;

    const int64_t stride;

    explicit Enclosure(const Problem &problem) : Lanes<T>(problem), stride(cell_stride(p.n_samples)) {}

    void find(int64_t cell, int64_t first, int64_t last) const {
        for (int64_t row = first; row < last; row += GROUP) {
            this->load_range(group_of<T, GROUP>(p, row), row, last - row < GROUP ? last - row : GROUP);
        }
        T *const middle = (T *)p.cells + cell;
        T square = 0;
        for (int64_t f = 0; f < p.n_features; f++) {
            T sum = 0;
            for (int64_t row = first; row < last; row++) sum += local(row, f) / (T)(last - first);
            middle[f * stride] = sum;
            square += sum * sum;
        }
        middle[p.n_features * stride] = Bounds<T>::root(square);
        ((T *)p.radii)[cell] = radius(middle, first, last);
    }

    T radius(const T *middle, int64_t first, int64_t last) const {
        T farthest = 0;
        for (int64_t row = first; row < last; row++) {
            T square = 0;
            for (int64_t f = 0; f < p.n_features; f++) {
                const T difference = local(row, f) - middle[f * stride];
                square += difference * difference;
            }
            farthest = farthest < square ? square : farthest;
        }
        const T least = (T)(8 * p.n_features) * Rows<T>::LEAST;
        return Bounds<T>::root(farthest * (1 + (T)(p.n_features + 4) * UNIT) + least) * (1 + 4 * UNIT);
    }
};

template <typename T> void enclose(const Problem *problem, int64_t start, int64_t stop) {
    const Enclosure<T> enclosure(*problem);
    for (int64_t first = start; first < stop; first += CELL)
        enclosure.find(first / CELL, first, stop - first < CELL ? stop : first + CELL);
}

}  // namespace

#endif
