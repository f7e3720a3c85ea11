// The library's functions: the kernels that this machine can run, best last.

#include "kernel.h"

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
