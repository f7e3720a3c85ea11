// Centers as panels of keys, and how far rounding lets their scores decide.
//
// In an unnamed namespace, for each instruction set compiles a copy of its own.

#ifndef SKTRANSCLUST_PACK_H
#define SKTRANSCLUST_PACK_H

#include "lanes.h"

#include <math.h>

namespace {

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
}

const int64_t PACKED_AT_ONCE = 64;  // features, so that what is written to lies close together in either layout

// Write keys times -2, where `place(j, f)` says, and their squared lengths.
template <typename T, typename Place> void write_keys(Problem &p, int64_t n_places, Place place) {
    T *const panels = (T *)p.panels, *const norms = (T *)p.key_norms;
    const int64_t k = p.n_clusters, d = p.n_features;
    double largest = 0.0;
    for (int64_t j = 0; j < n_places; j++) {
        double norm = 0.0;
        for (int64_t f = 0; j < k && f < d; f++) norm += p.keys[j * d + f] * p.keys[j * d + f];
        norms[j] = j < k ? (T)norm : (T)INFINITY;
        largest = norm > largest ? norm : largest;
    }
    p.reach = sqrt(largest);
    for (int64_t begin = 0; begin < d; begin += PACKED_AT_ONCE) {
        const int64_t end = begin + PACKED_AT_ONCE < d ? begin + PACKED_AT_ONCE : d;
        for (int64_t j = 0; j < n_places; j++)
            for (int64_t f = begin; f < end; f++) panels[place(j, f)] = j < k ? (T)p.keys[j * d + f] * -2 : (T)0;
    }
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
        const int64_t n_keys = p.n_panels * p.panel_width;
        write_keys<T>(p, n_keys + 1, [=](int64_t j, int64_t f) { return j * d + f; });  // and one for no center
    }
    find_repeats<T>(p);
    find_limits<T>(p);
}

}  // namespace

#endif
