// Iterations of Lloyd's algorithm on chunks of samples, by any number of threads with the same bits.
//
// Bounds are followed from the last centers to these, chunks are labelled, and their sums, or what changes in
// them, added in the order of the chunks. Compiled once, for any instruction set: the kernels do the work.

#include "iterate.h"

#include "neighbours.h"
#include "parallel.h"

#include <algorithm>
#include <math.h>
#include <string.h>

namespace {

const int64_t MOVERS_SHARE = 8;      // one center in so many is a mover, at most
const double MUCH_FARTHER = 2;       // than all others, for movers to be worth a look of their own

double above(double value) { return nextafter(value, INFINITY); }

// The largest of some numbers, and the largest of the others.
struct Largest {
    double first = 0.0, second = 0.0;
    int64_t index = -1;

    void see(double value, int64_t i) {
        if (value > first) {
            second = first;
            first = value;
            index = i;
        } else if (value > second) {
            second = value;
        }
    }

    double without(int64_t i) const { return i == index ? second : first; }
};

// Add the moves of the centers since the last iteration, rounding up, and find the movers.
void follow(Problem &p, State &state) {
    const int64_t k = p.n_clusters, d = p.n_features;
    std::vector<double> moves(k);
    Largest all, rest;
    for (int64_t j = 0; j < k; j++) {
        moves[j] = sqrt(squared_distance(p.centers + j * d, state.last + j * d, d)) * ROUNDED_UP;
        all.see(moves[j], j);
    }
    const int64_t n_movers = p.n_panels / MOVERS_SHARE * p.panel_width;
    std::vector<int32_t> by_move(k);
    for (int64_t j = 0; j < k; j++) by_move[j] = (int32_t)j;
    std::nth_element(by_move.begin(), by_move.begin() + n_movers, by_move.end(), [&](int32_t a, int32_t b) {
        return moves[a] > moves[b] || (moves[a] == moves[b] && a < b);
    });
    for (int64_t i = n_movers; i < k; i++) rest.see(moves[by_move[i]], by_move[i]);
    p.n_movers = !p.n_near && all.second > MUCH_FARTHER * rest.first ? n_movers : 0;
    std::copy(by_move.begin(), by_move.begin() + n_movers, state.movers);
    for (int64_t j = 0; j < k; j++) {
        state.still[j] = above(state.others[j] + rest.without(j));
        state.own[j] = above(state.own[j] + moves[j]);
        state.others[j] = above(state.others[j] + all.without(j));
        state.drift[j] = above(state.own[j] + state.others[j]);
    }
}

// Where the sums of a thread's chunk are collected, in memory that is taken before. Late iterations change few
// clusters: the others are not looked at.
class Partial {
  public:
    void make_room(const Problem &p) {
        sums.assign(p.n_clusters * p.n_features, 0.0);
        weights.assign(2 * p.n_clusters, 0.0);
        touched.assign(p.n_clusters, 0);
    }

    void lend_to(Problem &p) {
        p.sums = sums.data();
        p.cluster_weights = weights.data();
        p.masses = p.cluster_weights + p.n_clusters;
        p.touched = touched.data();
    }

    // Add what was collected, and forget it.
    void move_to(const Problem &total) {
        const int64_t k = total.n_clusters, d = total.n_features;
        for (int64_t j = 0; j < k; j++) {
            if (!touched[j]) continue;
            for (int64_t i = j * d; i < (j + 1) * d; i++) move(sums[i], total.sums[i]);
            move(weights[j], total.cluster_weights[j]);
            move(weights[k + j], total.masses[j]);
            touched[j] = 0;
        }
    }

  private:
    static void move(double &from, double &to) {
        to += from;
        from = 0.0;
    }

    std::vector<double> sums, weights;
    std::vector<uint8_t> touched;
};

// Let work(problem, start, stop, chunk) add the samples start..stop to the problem's sums, for all chunks.
template <typename Work> void add_up(const Problem &total, const State &state, Work work) {
    const int64_t n_chunks = (total.n_samples + state.chunk_rows - 1) / state.chunk_rows;
    if (n_chunks == 1) return work(total, 0, total.n_samples, 0);
    std::vector<Partial> partials(std::min(state.n_threads, n_chunks));
    for (Partial &partial : partials) partial.make_room(total);
    Turns turns;
    for_chunks(n_chunks, state.n_threads, [&](int64_t chunk, int64_t thread) {
        Problem problem = total;
        partials[thread].lend_to(problem);
        const int64_t start = chunk * state.chunk_rows;
        work(problem, start, std::min(start + state.chunk_rows, total.n_samples), chunk);
        turns.take(chunk, [&] { partials[thread].move_to(total); });
    });
}

void forget_sums(const Problem &p) {
    std::fill_n(p.sums, p.n_clusters * p.n_features, 0.0);
    std::fill_n(p.cluster_weights, p.n_clusters, 0.0);
    std::fill_n(p.masses, p.n_clusters, 0.0);
}

void set_sums(Problem &p, const State &state) {
    p.sums = state.sums;
    p.cluster_weights = state.cluster_weights;
    p.masses = state.masses;
}

// A sum's rounding is proportional to what it held: no cluster may have lost most of what it held, at its largest,
// and no more labels may have changed than there are. Else sums are to be added up anew.
bool still_good(const Problem &p, State &state) {
    bool good = state.n_since <= p.n_samples;
    for (int64_t j = 0; j < p.n_clusters; j++) {
        double *const weight = state.peaks + j, *const mass = weight + p.n_clusters;
        *weight = std::max(*weight, p.cluster_weights[j]);
        *mass = std::max(*mass, p.masses[j]);
        good &= *weight <= 8 * p.cluster_weights[j] && *mass <= 8 * p.masses[j];
    }
    return good;
}

int64_t begin(const Kernels &kernels, int kind, Problem &p, State &state) {
    kernels.pack[kind](&p);
    p.bounded = state.valid && p.until;
    p.only_changes = p.bounded || (state.valid && (p.offsets || p.cells) && p.lengths);
    Neighbours neighbours;
    neighbours.find(p);
    if (p.bounded) {
        follow(p, state);
    } else {
        p.n_movers = 0;
        std::fill_n(state.others, p.n_clusters, 0.0);
        std::fill_n(state.drift, p.n_clusters, 0.0);
        std::fill_n(state.own, p.n_clusters, 0.0);
    }
    std::copy_n(p.centers, p.n_clusters * p.n_features, state.last);
    set_sums(p, state);
    if (!p.only_changes) forget_sums(p);
    const int64_t n_chunks = (p.n_samples + state.chunk_rows - 1) / state.chunk_rows;
    std::vector<int64_t> n_doubtful(n_chunks), n_changed(n_chunks);
    add_up(p, state, [&](const Problem &problem, int64_t start, int64_t stop, int64_t chunk) {
        n_doubtful[chunk] =
            kernels.assign[kind](&problem, start, stop, state.doubtful + start, &n_changed[chunk]);
    });
    int64_t found = 0;
    state.n_changed = state.valid = 0;
    for (int64_t chunk = 0; chunk < n_chunks; chunk++) {
        if (n_doubtful[chunk] < 0) return -1;
        memmove(state.doubtful + found, state.doubtful + chunk * state.chunk_rows, n_doubtful[chunk] * sizeof(int64_t));
        found += n_doubtful[chunk];
        state.n_changed += n_changed[chunk];
    }
    return found;
}

// Within a cluster, the sum of squares around c is that around 0, less W |m|^2, plus W |m - c|^2. Frames keep centers
// near enough for finite squares, so that an empty cluster adds nothing.
void measure(const Problem &p, State &state) {
    state.shift = state.spread = 0.0;
    for (int64_t j = 0; j < p.n_clusters; j++) {
        const double *const mean = state.means + j * p.n_features;
        const double move = squared_distance(mean, p.centers + j * p.n_features, p.n_features);
        double square = 0.0;
        for (int64_t f = 0; f < p.n_features; f++) square += mean[f] * mean[f];
        state.shift += move;
        state.spread += p.cluster_weights[j] * (move - square);
    }
}

bool may_go_on(const Problem &p, const State &state) {
    bool all = true;
    for (int64_t j = 0; j < p.n_clusters; j++) all &= p.cluster_weights[j] != 0.0;
    return all && state.n_passed + 1 < state.n_ahead && state.n_changed != 0 && !(state.shift <= state.tol) &&
           state.spread > state.least_spread;
}

void go_on(const Problem &p, State &state) {
    state.passed[state.n_passed++] = state.spread;
    std::copy_n(state.means, p.n_clusters * p.n_features, state.centers);
}

void end(const Kernels &kernels, int kind, const Problem &p, State &state, const int32_t *decided,
         int64_t n_decided) {
    kernels.decide[kind](&p, state.doubtful, decided, n_decided, &state.n_changed);
    state.n_since += state.n_changed;
    if (!p.only_changes || !still_good(p, state)) {
        if (p.only_changes) {
            forget_sums(p);
            add_up(p, state, [&](const Problem &problem, int64_t start, int64_t stop, int64_t) {
                kernels.sums[kind](&problem, start, stop);
            });
        }
        state.n_since = 0;
        std::copy_n(p.cluster_weights, p.n_clusters, state.peaks);
        std::copy_n(p.masses, p.n_clusters, state.peaks + p.n_clusters);
    }
    for (int64_t j = 0; j < p.n_clusters; j++) {
        const double weight = p.cluster_weights[j];
        for (int64_t i = j * p.n_features; i < (j + 1) * p.n_features; i++)
            state.means[i] = weight > 0 ? p.sums[i] / weight : p.centers[i];
    }
    measure(p, state);
    state.valid = 1;
}

}  // namespace

int64_t begin_iteration(const Kernels &kernels, int kind, Problem &p, State &state) {
    try {
        return begin(kernels, kind, p, state);
    } catch (const std::bad_alloc &) {
        return -1;
    }
}

int64_t end_iteration(const Kernels &kernels, int kind, Problem &p, State &state, const int32_t *decided,
                      int64_t n_decided) {
    try {
        end(kernels, kind, p, state, decided, n_decided);
        while (may_go_on(p, state)) {
            go_on(p, state);
            const int64_t n_doubtful = begin(kernels, kind, p, state);
            if (n_doubtful) return n_doubtful;
            end(kernels, kind, p, state, nullptr, 0);
        }
        return 0;
    } catch (const std::bad_alloc &) {
        return -1;
    }
}
