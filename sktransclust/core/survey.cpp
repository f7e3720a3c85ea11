// What is asked of all samples once, by any number of threads with the same bits: chunk results in their order.

#include "survey_all.h"

#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <math.h>
#include <new>
#include <vector>

namespace {

// Let work(start, stop, numbers) find `size` numbers of each chunk, and merge(numbers) take them up in order.
template <typename Work, typename Merge>
void of_chunks(int64_t n_samples, const Crew &crew, int64_t size, Work work, Merge merge) {
    const int64_t n_chunks = (n_samples + crew.chunk_rows - 1) / crew.chunk_rows;
    std::vector<std::vector<double>> numbers(std::min(crew.n_threads, n_chunks), std::vector<double>(size));
    Turns turns;
    for_chunks(n_chunks, crew.n_threads, [&](int64_t chunk, int64_t thread) {
        double *const own = numbers[thread].data();
        const int64_t start = chunk * crew.chunk_rows;
        work(start, std::min(start + crew.chunk_rows, n_samples), own);
        turns.take(chunk, [&] { merge(own); });
    });
}

void start_survey(int64_t d, double *found) {
    std::fill_n(found, d, 0.0);
    std::fill_n(found + d, d, INFINITY);
    std::fill_n(found + 2 * d, d, -INFINITY);
}

}  // namespace

int64_t survey_all(const Kernels &kernels, int kind, const Problem &p, const Crew &crew, double *found) try {
    const int64_t d = p.n_features;
    const auto work = [&](int64_t start, int64_t stop, double *own) {
        start_survey(d, own);
        kernels.survey[kind](&p, start, stop, own);
    };
    start_survey(d, found);
    of_chunks(p.n_samples, crew, 3 * d, work, [=](const double *own) {
        for (int64_t f = 0; f < d; f++) {
            found[f] += own[f];
            found[d + f] = std::min(found[d + f], own[d + f]);
            found[2 * d + f] = std::max(found[2 * d + f], own[2 * d + f]);
        }
    });
    return 0;
} catch (const std::bad_alloc &) {
    return -1;
}

int64_t moments_of_all(const Kernels &kernels, int kind, const Problem &p, const Crew &crew, double *found) try {
    const int64_t size = p.n_features + 2;
    const auto kernel = p.offsets ? kernels.sparse_moments[kind] : kernels.moments[kind];
    std::atomic<int64_t> result(0);
    const auto work = [&](int64_t start, int64_t stop, double *own) {
        Problem problem = p;
        std::fill_n(own, size, 0.0);
        problem.sums = own;
        if (kernel(&problem, start, stop, own + p.n_features) < 0) result = -1;
    };
    std::fill_n(found, size, 0.0);
    of_chunks(p.n_samples, crew, size, work, [=](const double *own) {
        for (int64_t i = 0; i < size; i++) found[i] += own[i];
    });
    return result;
} catch (const std::bad_alloc &) {
    return -1;
}
