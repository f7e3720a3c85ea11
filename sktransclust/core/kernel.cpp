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
#include "seeding.h"
#include "sparse.h"
#include "survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

namespace {

const int64_t TILE_BYTES = 1 << 16;   // of transposed samples, which meet
const int64_t BLOCK_BYTES = 1 << 17;  // of panels at a time: both stay in the second cache
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
    T *own;            // (n_part,): at least the distances of `pending` to their own centers
    int32_t *every;    // (n_keys,): the keys in their order
    T *tile;           // (n_groups, n_features, GROUP)
    T *best;           // (n_groups, GROUP), as are the next ones
    T *second;
    T *length;
    T *room;           // the gap above which two scores of a sample are in true order
    T *upper;          // as the next one, of the distances of a sample of the tile
    T *lower;
    Index *index;

    explicit Kernel(const Problem &problem) : Bounds<T>(problem), n_keys(p.n_panels * p.panel_width) {
        const int64_t fitting = TILE_BYTES / (p.n_features * GROUP * (int64_t)sizeof(T));
        n_groups = fitting < 1 ? 1 : fitting > MOST_GROUPS ? MOST_GROUPS : fitting;
        const int64_t tiles = PART_BYTES / (n_groups * GROUP * p.n_features * (int64_t)sizeof(T));
        n_part = n_groups * GROUP * (tiles < 1 ? 1 : tiles);
    }

    int64_t scratch_bytes() const {
        const int64_t numbers = n_groups * GROUP * (p.n_features + 7) + n_part + 3 * p.n_clusters + 2;
        return numbers * (int64_t)sizeof(T) + n_keys * (int64_t)sizeof(int32_t) +
               (p.n_features + n_part) * (int64_t)sizeof(double);
    }

    void use_scratch(void *scratch) {
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
        pending = (int64_t *)(point + p.n_features);
        own = (T *)(pending + n_part);
        this->drift = own + n_part;
        this->others = this->drift + p.n_clusters;
        this->still = this->others + p.n_clusters;
        every = (int32_t *)(this->still + p.n_clusters);
        for (int64_t j = 0; j < n_keys; j++) every[j] = (int32_t)j;
    }

    // Lengths by a sum of squares in any order, like those of nearest.py: their relative error of at most
    // (n_features / 2 + 2) u changes the bound in the second order, for which its factor 2.1 leaves room.
    void find_lengths(int64_t group, const int64_t *rows, int64_t count) {
        T *const found = length + group * GROUP;
        if (p.lengths) {
            for (int64_t lane = 0; lane < GROUP; lane++)
                found[lane] = lane < count ? ((const T *)p.lengths)[rows[lane]] : (T)0;
            return;
        }
        const Vector *const column = (const Vector *)(tile + group * p.n_features * GROUP);
        Vector squares[VECTORS] = {};
        for (int64_t f = 0; f < p.n_features; f++)
            for (int v = 0; v < VECTORS; v++) squares[v] += column[f * VECTORS + v] * column[f * VECTORS + v];
        memcpy(found, squares, sizeof squares);
        for (int64_t lane = 0; lane < GROUP; lane++) found[lane] = (T)sqrt((double)found[lane]);
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
        const int64_t n = (count + GROUP - 1) / GROUP * GROUP;
        for (int64_t i = 0; i < n; i++) {
            best[i] = second[i] = (T)INFINITY;
            index[i] = 0;
            room[i] = this->gap(length[i]);
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

    // Decide for a doubtful sample by direct differences in float64, which is what nearest.py does, if their
    // rounding cannot matter: each squared distance D has an error of at most (n_features + 3) u64 D. Ties and
    // near ties are left over, as is whatever could overflow or vanish.
    bool settle(int64_t row, int64_t i) {
        if (!(length[i] <= (T)p.longest)) return false;
        find_point(row);
        double least = INFINITY, next = INFINITY;
        for (int64_t j = 0; j < p.n_clusters; j++) {
            if (((const T *)p.key_norms)[j] == (T)INFINITY) continue;  // repeats an earlier one
            const double squared = squared_distance(p.centers + j * p.n_features);
            if (squared < least) {
                next = least;
                least = squared;
                index[i] = (Index)j;
            } else if (squared < next) {
                next = squared;
            }
        }
        const double error = 2.1 * (double)(p.n_features + 4) * 0x1p-53 * next;
        if (next == INFINITY) return least < 1e300;
        return next < 1e300 && ((next > 1e-280 && next - least > error) || is_exact(least + error));
    }

    // Whether the sample and the centers up to a squared distance lie on a lattice so coarse that their
    // squared distances, and what is added up for them, are integers below 2^53 in its unit.
    bool is_exact(double most) const {
        if (!lies_on_lattice(point)) return false;
        for (int64_t j = 0; j < p.n_clusters; j++) {
            const double *const center = p.centers + j * p.n_features;
            if (!(squared_distance(center) > most) && !lies_on_lattice(center)) return false;
        }
        return true;
    }

    bool lies_on_lattice(const double *place) const {
        for (int64_t f = 0; f < p.n_features; f++) {
            const double steps = place[f] / p.lattice;
            if (!(steps <= p.largest_integer && -steps <= p.largest_integer)) return false;
            if ((double)(int64_t)steps != steps) return false;
        }
        return true;
    }

    // At least, or at most, the distance that a score of the i-th sample of the tile means. Its square is the score
    // plus r^2; the scores' errors are at most half the gap, and what is left of it and of `length_error` covers
    // the roundings here.
    T farthest(int64_t i, T score) const {
        const T square = length[i] * length[i], most = score + square + (room[i] + (T)p.length_error * square);
        return this->root(most > 0 ? most : 0) * (1 + 4 * UNIT);
    }

    T nearest(int64_t i, T score) const {
        const T square = length[i] * length[i], least = score + square - (room[i] + (T)p.length_error * square);
        const T distance = this->root(least > 0 ? least : 0) * (1 - 4 * UNIT);
        return distance < Bounds<T>::MOST ? distance : Bounds<T>::MOST;
    }

    void find_bounds(int64_t count) {
        for (int64_t i = 0; i < count; i++) {
            upper[i] = farthest(i, best[i]);
            lower[i] = nearest(i, second[i]);
        }
    }

    // Give the samples `rows` of the tile the labels that their scores tell, and append the doubtful ones to a
    // list; returns its new end.
    int64_t *label_tile(const int64_t *rows, int64_t count, int64_t *doubtful, int64_t *changed) {
        for (int64_t i = 0; i < count; i++) {
            const bool certain = second[i] - best[i] > room[i];
            // Without a decision by scores, and where a center that repeats another has none, nothing is known.
            if (p.until && certain && p.distinct)
                this->set_bounds(rows[i], index[i], upper[i], lower[i]);
            else if (p.until)
                this->forget_bounds(rows[i]);
            if (certain || settle(rows[i], i))
                *changed += this->relabel(rows[i], (int32_t)index[i]);
            else
                *doubtful++ = rows[i];
        }
        return doubtful;
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

    // Drop from `pending` the samples that no mover can take from their centers, and no other key either.
    int64_t keep_from_movers(int64_t n_pending) {
        int64_t n_left = 0;
        for (int64_t begin = 0; begin < n_pending; begin += n_groups * GROUP) {
            const int64_t rest = n_pending - begin, count = rest < n_groups * GROUP ? rest : n_groups * GROUP;
            load_tile(pending + begin, count);
            meet_all(count, p.movers, p.n_movers / p.panel_width);
            for (int64_t i = 0; i < count; i++) {
                const int64_t row = pending[begin + i], label = p.labels[row];
                const T mine = own[begin + i];
                const T mover = nearest(i, index[i] == label && best[i] < (T)INFINITY ? second[i] : best[i]);
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

    int64_t assign(int64_t start, int64_t stop, int64_t *doubtful, int64_t *n_changed) {
        int64_t *end = doubtful;
        if (p.until) this->round_drift();
        for (int64_t first = start; first < stop; first += n_part) {
            const int64_t last = stop - first < n_part ? stop : first + n_part;
            int64_t n_pending = last - first;
            if (p.bounded)
                n_pending = find_pending(first, last);
            else
                for (int64_t i = 0; i < n_pending; i++) pending[i] = first + i;
            end = label_by_all(pending, n_pending, end, n_changed);
        }
        return end - doubtful;
    }

    int64_t find_pending(int64_t first, int64_t last) {
        const int64_t n_pending = this->screen(first, last, pending);
        if (p.n_clusters * (p.n_features + 5) < Bounds<T>::MANY_SCORES) return n_pending;
        const int64_t n_left = this->tighten(pending, n_pending, own);
        return p.n_movers ? keep_from_movers(n_left) : n_left;
    }
};

// A score and what is added up for it are at most (r + R)^2, of which the longest sample's must not overflow. The
// second order of rounding, of a sample's length also, is small only while n_terms times the unit roundoff is.
template <typename T> void find_limits(Problem &p) {
    const double unit = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53, unit64 = 0x1p-53;
    const double least = sizeof(T) == 4 ? 0x1p-126 : 0x1p-1022, most = sizeof(T) == 4 ? 0x1p64 : 0x1p512;
    const double factor = 2.1 * (double)(p.n_terms + 4), both = p.reach * (unit + unit64);
    p.bound[0] = factor * (both * p.reach + least);
    p.bound[1] = factor * (2 * both + least);
    p.bound[2] = factor * unit64;
    p.longest = (double)p.n_terms * 2 * unit <= 0x1p-7 ? most / 4 - p.reach : -1.0;
    p.certainty = factor * unit64 + 8 * unit;
    p.length_error = factor * unit;
    // Differences of such integers, squared and added up over the features, stay below 2^53.
    p.largest_integer = floor(sqrt(0x1p51 / (double)p.n_features));
    int larger, much;
    frexp(p.reach, &larger);
    frexp(p.largest_integer, &much);
    // Squares of the lattice's unit must not vanish.
    p.lattice = p.reach > 0x1p-400 && p.reach < 0x1p400 ? ldexp(1.0, larger + 2 - much) : 0.0;
}

// Write keys times -2 and their squared lengths, where `place(j, f)` says.
template <typename T, typename Place> void write_keys(Problem &p, int64_t n_places, Place place) {
    T *const panels = (T *)p.panels, *const norms = (T *)p.key_norms;
    double largest = 0.0;
    for (int64_t j = 0; j < n_places; j++) {
        double norm = 0.0;
        for (int64_t f = 0; f < p.n_features; f++) {
            const double key = j < p.n_clusters ? p.keys[j * p.n_features + f] : 0.0;
            norm += key * key;
            panels[place(j, f)] = (T)key * -2;
        }
        norms[j] = j < p.n_clusters ? (T)norm : (T)INFINITY;
        largest = norm > largest ? norm : largest;
    }
    p.reach = sqrt(largest);
}

// A center that repeats an earlier one cannot win.
template <typename T> void find_repeats(Problem &p) {
    T *const norms = (T *)p.key_norms;
    const int64_t d = p.n_features;
    for (int64_t j = p.n_clusters - 1; j > 0; j--)
        for (int64_t i = 0; i < j; i++) {
            if (norms[i] != norms[j]) continue;
            int64_t f = 0;
            while (f < d && p.centers[i * d + f] == p.centers[j * d + f]) f++;
            if (f == d) norms[j] = (T)INFINITY;
        }
    p.distinct = 1;
    for (int64_t j = 0; j < p.n_clusters; j++) p.distinct &= norms[j] < (T)INFINITY;
}

template <typename T> void pack(Problem *problem) {
    Problem &p = *problem;
    if (p.offsets) {
        p.panel_width = Lanes<T>::LANES;
        p.n_panels = (p.n_clusters + p.panel_width - 1) / p.panel_width;
        const int64_t stride = p.n_panels * p.panel_width;
        write_keys<T>(p, stride, [=](int64_t j, int64_t f) { return f * stride + j; });
    } else {
        p.n_panels = (p.n_clusters + 5) / 6;
        p.panel_width = (p.n_clusters + p.n_panels - 1) / p.n_panels;
        const int64_t d = p.n_features;
        write_keys<T>(p, p.n_panels * p.panel_width, [=](int64_t j, int64_t f) { return j * d + f; });
    }
    find_repeats<T>(p);
    find_limits<T>(p);
}

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
