// The library's functions: the kernels that this machine can run, best last.

#include "iterate.h"
#include "seed.h"
#include "survey_all.h"

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

extern const Kernels kernels_baseline;
#if defined(HAVE_X86_VARIANTS)
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif

EXPORT const Kernels *sktransclust_kernels(int level) {
    switch (level) {
        case 0: return &kernels_baseline;
#if defined(HAVE_X86_VARIANTS)
        case 1: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &kernels_avx2 : nullptr;
        case 2:
            return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")
                       ? &kernels_avx512
                       : nullptr;
#endif
        default: return nullptr;
    }
}

// The sizes of the structures, since the library may be older than its caller.
EXPORT void sktransclust_sizes(int64_t *sizes) {
    sizes[0] = sizeof(Problem);
    sizes[1] = sizeof(State);
    sizes[2] = sizeof(Seeds);
    sizes[3] = sizeof(Kernels);
}

EXPORT int64_t sktransclust_begin_iteration(const Kernels *kernels, int kind, Problem *problem, State *state) {
    return begin_iteration(*kernels, kind, *problem, *state);
}

EXPORT int64_t sktransclust_end_iteration(const Kernels *kernels, int kind, Problem *problem, State *state,
                                          const int32_t *decided, int64_t n_decided) {
    return end_iteration(*kernels, kind, *problem, *state, decided, n_decided);
}

EXPORT int64_t sktransclust_survey(const Kernels *kernels, int kind, const Problem *problem, const Crew *crew,
                                   double *found) {
    return survey_all(*kernels, kind, *problem, *crew, found);
}

EXPORT int64_t sktransclust_moments(const Kernels *kernels, int kind, const Problem *problem, const Crew *crew,
                                    double *found) {
    return moments_of_all(*kernels, kind, *problem, *crew, found);
}

EXPORT int64_t sktransclust_begin_seeds(const Kernels *kernels, int kind, const Problem *problem, Seeds *seeds) {
    return begin_seeds(*kernels, kind, *problem, *seeds);
}

EXPORT int64_t sktransclust_extend_seeds(const Kernels *kernels, int kind, const Problem *problem, Seeds *seeds,
                                         const double *shares, int64_t count, int64_t *samples, double *gains) {
    return extend_seeds(*kernels, kind, *problem, *seeds, shares, count, samples, gains);
}
