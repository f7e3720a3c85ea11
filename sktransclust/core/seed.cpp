// Greedy k-means++, one center after the other, by any number of threads with the same bits.
//
// Compiled once, for any instruction set: the kernels of seeding.h do the passes over the samples.

#include "seed.h"

#include "parallel.h"

#include <algorithm>
#include <new>

namespace {

const int64_t FEW = 8;  // one block in so many tells which candidate is likely to gain most

struct Chooser {
    const Kernels &kernels;
    const int kind;
    const Problem &p;
    Seeds &s;
    const int64_t n_blocks;
    std::vector<double> gain;  // (n_candidates,): what each would gain, or a bound on that

    Chooser(const Kernels &kernels, int kind, const Problem &problem, Seeds &seeds)
        : kernels(kernels), kind(kind), p(problem), s(seeds),
          n_blocks((problem.n_samples + SEEDING_BLOCK - 1) / SEEDING_BLOCK), gain(seeds.n_candidates) {}

    // Let kernel(start, stop) do blocks first..last, in chunks that are worth a thread; `n_points` tells how much it
    // does.
    template <typename Kernel> void on_blocks(int64_t first, int64_t last, int64_t n_points, Kernel kernel) const {
        const int64_t block_work = SEEDING_BLOCK * (p.n_features + 4) * n_points;
        const int64_t size = (s.chunk_work + block_work - 1) / block_work;
        std::atomic<bool> lacking(false);
        for_chunks((last - first + size - 1) / size, s.n_threads, [&](int64_t chunk, int64_t) {
            const int64_t start = first + chunk * size;
            if (kernel(start, std::min(start + size, last)) < 0) lacking = true;
        });
        if (lacking) throw std::bad_alloc();
    }

    void begin() const {
        on_blocks(0, n_blocks, 1,
                  [&](int64_t start, int64_t stop) { return kernels.begin_seeding[kind](&p, &s, start, stop); });
        add_masses();
    }

    void add_masses() const {
        on_blocks(0, n_blocks, 1,
                  [&](int64_t start, int64_t stop) { return kernels.add_masses[kind](&p, &s, start, stop); });
    }

    // The first sample up to which the sum of weighted squared distances is not below a share of the whole sum.
    int64_t draw(double share, double total) const {
        const double target = share * total;
        double sum = 0.0;
        int64_t block = 0;
        while (block < n_blocks - 1 && sum + s.sums[block] < target) sum += s.sums[block++];
        const int64_t begin = block * SEEDING_BLOCK, end = std::min(begin + SEEDING_BLOCK, p.n_samples);
        int64_t found = begin;  // rounding may leave the sum of the block below the target: then the last of any mass
        for (int64_t row = begin; row < end; row++) {
            const double mass = s.weights ? s.weights[row] * s.drawn[row] : s.drawn[row];
            sum += mass;
            if (mass > 0) found = row;
            if (sum >= target) return row;
        }
        return found;
    }

    void draw_candidates(const double *shares) const {
        double total = 0.0;
        for (int64_t block = 0; block < n_blocks; block++) total += s.sums[block];
        for (int64_t j = 0; j < s.n_candidates; j++) {
            const int64_t sample = draw(shares[j], total);
            s.candidates[j] = s.order ? s.places_in_order[sample] : sample;
        }
    }

    void bound_gains(int64_t first, int64_t last, int64_t candidate) const {
        on_blocks(first, last, s.n_candidates, [&](int64_t start, int64_t stop) {
            return kernels.bound_gains[kind](&p, &s, start, stop, candidate);
        });
    }

    void find_gain(int64_t first, int64_t last, int64_t candidate) const {
        on_blocks(first, last, 1, [&](int64_t start, int64_t stop) {
            return kernels.find_gain[kind](&p, &s, start, stop, candidate);
        });
    }

    double total_found() const {
        double total = 0.0;
        for (int64_t block = 0; block < n_blocks; block++) total += s.found[block];
        return total;
    }

    // Add up the bounds of the first blocks; returns the first candidate of the largest.
    int64_t add_bounds(int64_t last) {
        for (int64_t j = 0; j < s.n_candidates; j++) {
            gain[j] = 0.0;
            for (int64_t block = 0; block < last; block++) gain[j] += s.gains[block * s.n_candidates + j];
            gain[j] *= 1 + 1e-9;  // room for the rounding of sums of float64
            // A sample that was drawn before is not to win twice.
            if (std::find(s.candidates, s.candidates + j, s.candidates[j]) != s.candidates + j) gain[j] = -1.0;
        }
        return largest();
    }

    int64_t largest() const { return std::max_element(gain.begin(), gain.end()) - gain.begin(); }

    // Bound all gains. A few blocks tell which candidate is likely to gain most: what it gains is found at the same
    // time as the bounds of the others, while their samples are at hand.
    int64_t bound_all() {
        const int64_t few = (n_blocks + FEW - 1) / FEW;
        bound_gains(0, few, -1);
        const int64_t likely = add_bounds(few);
        bound_gains(few, n_blocks, likely);
        find_gain(0, few, likely);
        add_bounds(n_blocks);
        return likely;
    }

    // The first candidate that gains most. Only those are looked at whose bounds do not rule them out.
    int64_t find_best(double *best_gain) {
        int64_t best = bound_all(), last = best;
        *best_gain = total_found();
        gain[best] = -1.0;
        for (;;) {
            const int64_t next = largest();
            if (!(gain[next] >= *best_gain)) break;
            find_gain(0, n_blocks, last = next);
            gain[next] = -1.0;
            const double found = total_found();
            if (found > *best_gain || (found == *best_gain && next < best)) {
                best = next;
                *best_gain = found;
            }
        }
        if (last != best) find_gain(0, n_blocks, best);
        return best;
    }

    int64_t choose(const double *shares, double *best_gain) {
        if (s.pending) {
            on_blocks(0, n_blocks, 1,
                      [&](int64_t start, int64_t stop) { return kernels.add_center[kind](&p, &s, start, stop); });
            add_masses();
        }
        s.pending = 0;
        draw_candidates(shares);
        const int64_t best = find_best(best_gain);
        s.pending = 1;
        return s.order ? s.order[s.candidates[best]] : s.candidates[best];
    }
};

}  // namespace

int64_t begin_seeds(const Kernels &kernels, int kind, const Problem &p, Seeds &s) {
    try {
        Chooser(kernels, kind, p, s).begin();
        return 0;
    } catch (const std::bad_alloc &) {
        return -1;
    }
}

int64_t extend_seeds(const Kernels &kernels, int kind, const Problem &p, Seeds &s, const double *shares,
                     int64_t count, int64_t *samples, double *gains) {
    try {
        Chooser chooser(kernels, kind, p, s);
        for (int64_t i = 0; i < count; i++) samples[i] = chooser.choose(shares + i * s.n_candidates, gains + i);
        return 0;
    } catch (const std::bad_alloc &) {
        return -1;
    }
}
