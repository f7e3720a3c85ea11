// Samples in the lanes of registers: a group of them is transposed, so that a feature of all is VECTORS loads.
//
// In an unnamed namespace, for each instruction set compiles a copy of its own; the macros are those of kernel.cpp.

#ifndef SKTRANSCLUST_LANES_H
#define SKTRANSCLUST_LANES_H

#include "rows.h"

#include <stdlib.h>
#include <string.h>

namespace {

template <typename T> struct IndexOf;  // the integer of T's width
template <> struct IndexOf<float> { typedef int32_t Type; };
template <> struct IndexOf<double> { typedef int64_t Type; };

template <typename T> struct Lanes : Rows<T> {
    using Rows<T>::p;
    using Rows<T>::values;
    using Rows<T>::shift;
    using Rows<T>::scale;

    typedef typename IndexOf<T>::Type Index;
#if VECTOR_BYTES
    typedef T Vector __attribute__((vector_size(VECTOR_BYTES), may_alias));
    typedef Index Indices __attribute__((vector_size(VECTOR_BYTES), may_alias));
    typedef T Quarter __attribute__((vector_size(16), may_alias));
    typedef T Unaligned __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
#else
    typedef T Vector, Unaligned;
    typedef Index Indices;
#endif
    static const int64_t LANES = sizeof(Vector) / sizeof(T);
    static const int64_t GROUP = VECTORS * LANES;

    explicit Lanes(const Problem &problem) : Rows<T>(problem) {}

    // Transpose up to GROUP samples; the lanes of absent ones repeat the last one.
    void load_group(T *group, const int64_t *rows, int64_t count) const {
        const T *places[GROUP];
        for (int64_t lane = 0; lane < GROUP; lane++)
            places[lane] = values + rows[lane < count ? lane : count - 1] * p.row_stride;
        load(group, places);
    }

    void load_range(T *group, int64_t first, int64_t count) const {
        const T *places[GROUP];
        for (int64_t lane = 0; lane < GROUP; lane++)
            places[lane] = values + (first + (lane < count ? lane : count - 1)) * p.row_stride;
        load(group, places);
    }

    // Nothing but these samples' own features is read, for an array may end where the memory does.
    void load(T *group, const T *const *places) const {
#if VECTOR_BYTES
        const int step = sizeof(Quarter) / sizeof(T);
        if (p.column_stride == 1 && p.n_features >= step) return transpose<step>(group, places);
        if (p.column_stride == 1 && p.n_features == 3) return transpose<step < 3 ? step : 3>(group, places);
        if (p.column_stride == 1 && p.n_features == 2) return transpose<2>(group, places);
#endif
        for (int64_t f = 0; f < p.n_features; f++) gather(group + f * GROUP, places, f);
    }

    // One feature of the samples at `places`.
    void gather(T *__restrict lanes, const T *const *places, int64_t f) const {
        const T *const first = places[0] + f * p.column_stride;
        bool beside = p.row_stride == 1;
        for (int64_t lane = 0; lane < GROUP; lane++) beside = beside && places[lane] == places[0] + lane;
        if (beside)
            for (int64_t lane = 0; lane < GROUP; lane++) lanes[lane] = (first[lane] - shift[f]) * scale;
        else
            for (int64_t lane = 0; lane < GROUP; lane++)
                lanes[lane] = (first[places[lane] - places[0]] - shift[f]) * scale;
    }

#if VECTOR_BYTES
    // COUNT features, at most as many as 16 bytes hold, of as many samples at once. A few samples after the others:
    // caches fetch what lies in one piece.
    template <int COUNT> void transpose(T *group, const T *const *places) const {
        const int64_t last = p.n_features - COUNT;
        for (int64_t lane = 0; lane < GROUP; lane += sizeof(Quarter) / sizeof(T)) {
            for (int64_t f = 0; f < last; f += COUNT) transpose<COUNT>(group + lane, places + lane, f);
            transpose<COUNT>(group + lane, places + lane, last);  // perhaps some features again
        }
    }

    template <int COUNT> void transpose(T *group, const T *const *places, int64_t f) const {
        if (this->in_place) return transpose<COUNT>(group, places, f, [](Quarter values) { return values; });
        const Quarter offset = read<COUNT>(shift + f);
        transpose<COUNT>(group, places, f, [=](Quarter values) { return (values - offset) * scale; });
    }

    template <int COUNT, typename Map> void transpose(T *group, const T *const *places, int64_t f, Map local) const {
        const int step = sizeof(Quarter) / sizeof(T);
        Quarter in[step], out[step];
        for (int i = 0; i < step; i++) in[i] = local(read<COUNT>(places[i] + f));
        turn(in, out);
        for (int i = 0; i < COUNT; i++) memcpy(group + (f + i) * GROUP, &out[i], sizeof out[i]);
    }

    template <int COUNT> static Quarter read(const T *values) {
        Quarter quarter = {};
        if (COUNT == sizeof(Quarter) / sizeof(T))
            memcpy(&quarter, values, sizeof quarter);
        else
            for (int i = 0; i < COUNT; i++) quarter[i] = values[i];
        return quarter;
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
};

// Give a worker its scratch memory, aligned to whole registers, and let it work; returns what that does, or -1 for
// lack of memory.
template <typename Worker, typename Work> int64_t with_scratch(Worker &worker, Work work) {
    const size_t alignment = 64;
    void *const memory = malloc((size_t)worker.scratch_bytes() + alignment);
    if (!memory) return -1;
    worker.use_scratch((void *)(((uintptr_t)memory + alignment - 1) / alignment * alignment));
    const int64_t result = work();
    free(memory);
    return result;
}

}  // namespace

#endif
