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

#include <math.h>
#include <stdlib.h>
#include <string.h>

namespace {

const int64_t TILE_BYTES = 1 << 16;   // of transposed samples, which meet
const int64_t BLOCK_BYTES = 1 << 17;  // of panels at a time: both stay in the second cache
const int64_t MOST_GROUPS = 16;       // of one tile
const int64_t PART_BYTES = 1 << 17;   // of samples that are labelled, then added up

template <typename T> struct IndexOf;  // the integer of T's width
template <> struct IndexOf<float> { typedef int32_t Type; };
template <> struct IndexOf<double> { typedef int64_t Type; };

template <typename T> struct Kernel : Bounds<T> {
    using Rows<T>::p;
    using Rows<T>::values;
    using Rows<T>::shift;
    using Rows<T>::scale;
    using Rows<T>::point;
    using Rows<T>::find_point;
    using Rows<T>::squared_distance;
    using Bounds<T>::UNIT;

    typedef typename IndexOf<T>::Type Index;
#if VECTOR_BYTES
    typedef T Vector __attribute__((vector_size(VECTOR_BYTES), may_alias));
    typedef Index Indices __attribute__((vector_size(VECTOR_BYTES), may_alias));
    typedef T Quarter __attribute__((vector_size(16), may_alias));
#else
    typedef T Vector;
    typedef Index Indices;
#endif
    static const int64_t LANES = sizeof(Vector) / sizeof(T);
    static const int64_t GROUP = VECTORS * LANES;

    int64_t n_groups, n_part;
    int64_t *pending;  // (n_part,): samples whose scores are needed
    T *tile;         // (n_groups, n_features, GROUP)
    T *best;         // (n_groups, GROUP), as are the next ones
    T *second;
    T *length;
    Index *index;
    T *upper;        // as the next one, of the distances of a sample of the tile
    T *lower;

    explicit Kernel(const Problem &problem) : Bounds<T>(problem) {
        const int64_t fitting = TILE_BYTES / (p.n_features * GROUP * (int64_t)sizeof(T));
        n_groups = fitting < 1 ? 1 : fitting > MOST_GROUPS ? MOST_GROUPS : fitting;
        const int64_t tiles = PART_BYTES / (n_groups * GROUP * p.n_features * (int64_t)sizeof(T));
        n_part = n_groups * GROUP * (tiles < 1 ? 1 : tiles);
    }

    int64_t scratch_bytes() const {
        return n_groups * GROUP * (p.n_features + 6) * (int64_t)sizeof(T) +
               (p.n_features + n_part + p.n_clusters) * (int64_t)sizeof(double);
    }

    void use_scratch(T *scratch) {
        const int64_t n = n_groups * GROUP;
        best = scratch;
        second = best + n;
        length = second + n;
        upper = length + n;
        lower = upper + n;
        index = (Index *)(lower + n);
        tile = lower + 2 * n;
        point = (double *)(tile + n * p.n_features);
        pending = (int64_t *)(point + p.n_features);
        this->drift = (T *)(pending + n_part);
    }

    // Transpose up to GROUP samples; the lanes of absent ones repeat the last one. Nothing but these samples' own
    // features is read, for an array may end where the memory does.
    void load_group(T *group, const int64_t *rows, int64_t count) const {
        const T *places[GROUP];
        for (int64_t lane = 0; lane < GROUP; lane++)
            places[lane] = values + rows[lane < count ? lane : count - 1] * p.row_stride;
        int64_t done = 0;
#if VECTOR_BYTES
        const int64_t step = sizeof(Quarter) / sizeof(T);
        if (p.column_stride == 1 && p.n_features >= step) {
            for (; done + step <= p.n_features; done += step) transpose(group, places, done);
            if (done < p.n_features) transpose(group, places, p.n_features - step);  // some features again
            return;
        }
#endif
        for (; done < p.n_features; done++) gather(group + done * GROUP, places, done);
    }

    // One feature of the samples at `places`.
    void gather(T *lanes, const T *const *places, int64_t f) const {
        const T *const first = places[0] + f * p.column_stride;
        if (p.row_stride == 1 && places[GROUP - 1] - places[0] == GROUP - 1)  // side by side, for rows ascend
            memcpy(lanes, first, GROUP * sizeof(T));
        else
            for (int64_t lane = 0; lane < GROUP; lane++) lanes[lane] = first[places[lane] - places[0]];
        for (int64_t lane = 0; lane < GROUP; lane++) lanes[lane] = (lanes[lane] - shift[f]) * scale;
    }

#if VECTOR_BYTES
    // As many features as 16 bytes hold, in squares of as many samples.
    void transpose(T *group, const T *const *places, int64_t f) const {
        const int step = sizeof(Quarter) / sizeof(T);
        Quarter offset, in[step], out[step];
        memcpy(&offset, shift + f, sizeof offset);
        for (int64_t lane = 0; lane < GROUP; lane += step) {
            for (int i = 0; i < step; i++) {
                memcpy(&in[i], places[lane + i] + f, sizeof offset);
                in[i] = (in[i] - offset) * scale;
            }
            turn(in, out);
            for (int i = 0; i < step; i++) memcpy(group + (f + i) * GROUP + lane, &out[i], sizeof offset);
        }
    }

    typedef float Quarter4 __attribute__((vector_size(16), may_alias));
    typedef double Quarter2 __attribute__((vector_size(16), may_alias));

    static void turn(const Quarter4 *in, Quarter4 *out) {
        const Quarter4 low01 = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5);
        const Quarter4 low23 = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
        const Quarter4 high01 = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
        const Quarter4 high23 = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
        out[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
        out[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
        out[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
        out[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
    }

    static void turn(const Quarter2 *in, Quarter2 *out) {
        out[0] = __builtin_shufflevector(in[0], in[1], 0, 2);
        out[1] = __builtin_shufflevector(in[0], in[1], 1, 3);
    }
#endif

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

    // Let a group meet panels begin..end. The lowest index wins among equal scores, but such are doubtful.
    template <int WIDTH> void meet(int64_t group, int64_t begin, int64_t end) {
        const Vector *const column = (const Vector *)(tile + group * p.n_features * GROUP);
        Vector *const best_of = (Vector *)(best + group * GROUP);
        Vector *const second_of = (Vector *)(second + group * GROUP);
        Indices *const index_of = (Indices *)(index + group * GROUP);
        for (int64_t panel = begin; panel < end; panel++) {
            const T *const key = (const T *)p.panels + panel * p.n_features * WIDTH;
            const T *const norm = (const T *)p.key_norms + panel * WIDTH;
            Vector score[WIDTH][VECTORS];
            for (int j = 0; j < WIDTH; j++)
                for (int v = 0; v < VECTORS; v++) score[j][v] = norm[j] - Vector{};
            for (int64_t f = 0; f < p.n_features; f++)
                for (int j = 0; j < WIDTH; j++)
                    for (int v = 0; v < VECTORS; v++)
                        score[j][v] += column[f * VECTORS + v] * key[j * p.n_features + f];
            for (int v = 0; v < VECTORS; v++) {
                // Held in registers only now, so that the loop above has them all.
                Vector first = best_of[v], next = second_of[v];
                Indices where = index_of[v];
                for (int j = 0; j < WIDTH; j++) {
                    const Vector s = score[j][v], larger = s < first ? first : s;
                    const Indices name = (Index)(panel * WIDTH + j) - Indices{};
                    next = larger < next ? larger : next;
                    where = s < first ? name : where;
                    first = s < first ? s : first;
                }
                best_of[v] = first;
                second_of[v] = next;
                index_of[v] = where;
            }
        }
    }

    void meet_all(int64_t groups) {
        for (int64_t i = 0; i < groups * GROUP; i++) {
            best[i] = second[i] = (T)INFINITY;
            index[i] = 0;
        }
        int64_t at_once = BLOCK_BYTES / (p.n_features * p.panel_width * (int64_t)sizeof(T));
        if (at_once < 1) at_once = 1;
        for (int64_t begin = 0; begin < p.n_panels; begin += at_once) {
            const int64_t end = begin + at_once < p.n_panels ? begin + at_once : p.n_panels;
            for (int64_t group = 0; group < groups; group++) switch (p.panel_width) {
                case 1: meet<1>(group, begin, end); break;
                case 2: meet<2>(group, begin, end); break;
                case 3: meet<3>(group, begin, end); break;
                case 4: meet<4>(group, begin, end); break;
                case 5: meet<5>(group, begin, end); break;
                default: meet<6>(group, begin, end);
            }
        }
    }

    // The gap above which two scores of the i-th sample of the tile are in true order. No score overflows for
    // a sample that is not too long; comparisons with a NaN or an infinite length are false.
    T gap(int64_t i) const {
        const T r = length[i];
        return r <= (T)p.longest ? (r * (T)p.bound[2] + (T)p.bound[1]) * r + (T)p.bound[0] : (T)INFINITY;
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

    // Bounds from the scores of a tile. The squared distance to a center is its score plus r^2; the scores'
    // errors are at most half the gap, and what is left of it and of `length_error` covers the roundings here.
    void find_bounds(int64_t count) {
        for (int64_t i = 0; i < count; i++) {
            const T r = length[i], square = r * r, error = gap(i) + (T)p.length_error * square;
            const T most = best[i] + square + error, least = second[i] + square - error;
            upper[i] = root(most > 0 ? most : 0) * (T)(1 + 4 * UNIT);
            lower[i] = root(least > 0 ? least : 0) * (T)(1 - 4 * UNIT);
        }
    }

    static T root(T square) { return sizeof(T) == 4 ? (T)sqrtf((float)square) : (T)sqrt((double)square); }

    // Label the samples `rows` by their scores, and append the doubtful ones to a list; returns its new end.
    int64_t *label_tile(const int64_t *rows, int64_t count, int64_t *doubtful) {
        const int64_t groups = (count + GROUP - 1) / GROUP;
        for (int64_t group = 0; group < groups; group++) {
            const int64_t offset = group * GROUP, rest = count - offset;
            load_group(tile + offset * p.n_features, rows + offset, rest < GROUP ? rest : GROUP);
            find_lengths(group, rows + offset, rest < GROUP ? rest : GROUP);
        }
        meet_all(groups);
        if (p.until) find_bounds(count);
        for (int64_t i = 0; i < count; i++) {
            const bool certain = second[i] - best[i] > gap(i);
            // Without a decision by scores, and where a center that repeats another has none, nothing is known.
            if (p.until && certain && p.distinct)
                this->set_bounds(rows[i], index[i], upper[i], lower[i]);
            else if (p.until)
                this->forget_bounds(rows[i]);
            if (certain || settle(rows[i], i)) {
                p.labels[rows[i]] = (int32_t)index[i];
            } else {
                p.labels[rows[i]] = -1;
                *doubtful++ = rows[i];
            }
        }
        return doubtful;
    }

    // Squared distances in T have a relative error of no more than (n_features + 3) u, for the centers are
    // samples: with twice that in hand they tell which samples cannot be closer than they are.
    int64_t find_closer(int64_t start, int64_t stop, const double *nearest, int64_t *found, double *squared,
                        int64_t *n_found, double *gains) {
        const double room = 1 + 2 * (double)(p.n_features + 4) * UNIT;
        for (int64_t first = start; first < stop; first += GROUP) {
            const int64_t count = stop - first < GROUP ? stop - first : GROUP;
            for (int64_t lane = 0; lane < count; lane++) pending[lane] = first + lane;
            load_group(tile, pending, count);
            for (int64_t j = 0; j < p.n_clusters; j++) {
                const double *const center = p.centers + j * p.n_features;
                const int64_t begin = j * (stop - start);
                find_distances(center);
                for (int64_t lane = 0; lane < count; lane++) {
                    const int64_t row = first + lane;
                    if (!((double)best[lane] < nearest[row] * room)) continue;
                    find_point(row);
                    const double exact = squared_distance(center);
                    if (!(exact < nearest[row])) continue;
                    found[begin + n_found[j]] = row;
                    squared[begin + n_found[j]++] = exact;
                    gains[j] += p.weights[row] * (nearest[row] - exact);
                }
            }
        }
        return 0;
    }

    // Squared distances, by differences, of the first group to a center.
    void find_distances(const double *center) {
        const Vector *const column = (const Vector *)tile;
        Vector sum[VECTORS] = {};
        for (int64_t f = 0; f < p.n_features; f++)
            for (int v = 0; v < VECTORS; v++) {
                const Vector difference = column[f * VECTORS + v] - (T)center[f];
                sum[v] += difference * difference;
            }
        memcpy(best, sum, sizeof sum);
    }

    int64_t assign(int64_t start, int64_t stop, int64_t *doubtful, int64_t *n_changed) {
        int64_t *end = doubtful, changed = 0;
        if (p.bounded) this->round_drift();
        for (int64_t first = start; first < stop; first += n_part) {
            const int64_t last = stop - first < n_part ? stop : first + n_part;
            int64_t n_pending = last - first;
            if (p.bounded)
                n_pending = this->screen(first, last, pending);
            else
                for (int64_t i = 0; i < n_pending; i++) pending[i] = first + i;
            for (int64_t i = 0; i < n_pending; i += n_groups * GROUP) {
                const int64_t rest = n_pending - i;
                end = label_tile(pending + i, rest < n_groups * GROUP ? rest : n_groups * GROUP, end);
            }
            if (!p.previous) continue;
            if (p.bounded && p.only_changes)  // all others keep their labels
                for (int64_t i = 0; i < n_pending; i++) changed += this->count_row(pending[i]);
            else
                for (int64_t row = first; row < last; row++) changed += this->count_row(row);
        }
        *n_changed += changed;
        return end - doubtful;
    }
};

template <typename T> double pack(const Problem *problem) {
    const Problem &p = *problem;
    T *const panels = (T *)p.panels, *const norms = (T *)p.key_norms;
    const int64_t d = p.n_features, k = p.n_clusters;
    double largest = 0.0;
    for (int64_t j = 0; j < p.n_panels * p.panel_width; j++) {
        T *const panel = panels + j * d;
        double norm = 0.0;
        for (int64_t f = 0; f < d; f++) {
            const double key = j < k ? p.keys[j * d + f] : 0.0;
            norm += key * key;
            panel[f] = (T)key * -2;
        }
        norms[j] = j < k ? (T)norm : (T)INFINITY;
        largest = norm > largest ? norm : largest;
    }
    // A center that repeats an earlier one cannot win.
    for (int64_t j = k - 1; j > 0; j--)
        for (int64_t i = 0; i < j; i++) {
            if (norms[i] != norms[j]) continue;
            int64_t f = 0;
            while (f < d && p.centers[i * d + f] == p.centers[j * d + f]) f++;
            if (f == d) norms[j] = (T)INFINITY;
        }
    return sqrt(largest);
}

// Give work a kernel with scratch memory; returns what that does, or -1 for lack of memory.
template <typename T, typename Work> int64_t with_kernel(const Problem *problem, Work work) {
    const size_t alignment = 64;
    Kernel<T> kernel(*problem);
    void *const memory = malloc((size_t)kernel.scratch_bytes() + alignment);
    if (!memory) return -1;
    kernel.use_scratch((T *)(((uintptr_t)memory + alignment - 1) / alignment * alignment));
    const int64_t result = work(kernel);
    free(memory);
    return result;
}

template <typename T>
int64_t assign(const Problem *problem, int64_t start, int64_t stop, int64_t *doubtful, int64_t *n_changed) {
    return with_kernel<T>(
        problem, [=](Kernel<T> &kernel) { return kernel.assign(start, stop, doubtful, n_changed); });
}

template <typename T>
int64_t closer(const Problem *problem, int64_t start, int64_t stop, const double *nearest, int64_t *rows,
               double *squared, int64_t *counts, double *gains) {
    return with_kernel<T>(problem, [=](Kernel<T> &kernel) {
        return kernel.find_closer(start, stop, nearest, rows, squared, counts, gains);
    });
}

}  // namespace

extern const Kernels SKTRANSCLUST_KERNELS;
const Kernels SKTRANSCLUST_KERNELS = {SKTRANSCLUST_NAME,
                                      sizeof(Problem),
                                      {pack<float>, pack<double>},
                                      {assign<float>, assign<double>},
                                      {squares<float>, squares<double>},
                                      {sums<float>, sums<double>},
                                      {closer<float>, closer<double>},
                                      {moments<float>, moments<double>}};
