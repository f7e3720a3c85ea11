// For each center, those nearest to it: in few dimensions no others are near enough to take its samples.

#ifndef SKTRANSCLUST_NEIGHBOURS_H
#define SKTRANSCLUST_NEIGHBOURS_H

#include "kernel.h"

#include <algorithm>
#include <math.h>
#include <utility>
#include <vector>

const double ROUNDED_UP = 1 + 1e-9;  // of a distance between two centers

inline double squared_distance(const double *a, const double *b, int64_t d) {
    double squared = 0.0;
    for (int64_t f = 0; f < d; f++) squared += (a[f] - b[f]) * (a[f] - b[f]);
    return squared;
}

class Neighbours {
  public:
    // Find them where they save more than they cost.
    void find(Problem &p) {
        const int64_t panels = std::min(p.n_panels, MOST_PANELS);
        const bool worth = p.until && p.n_features <= MOST_FEATURES && p.n_panels >= LEAST_PANELS &&
                           p.n_samples >= LEAST_SAMPLES * p.n_clusters;
        p.n_near = worth ? panels * p.panel_width : 0;
        if (!worth) return;
        names.resize(p.n_clusters * p.n_near);
        gaps.resize(p.n_clusters * (p.n_near + 1));
        for (int64_t a = 0; a < p.n_clusters; a++) look_around(p, a);
        p.near = names.data();
        p.gaps = gaps.data();
    }

  private:
    static const int64_t MOST_FEATURES = 8;
    static const int64_t LEAST_PANELS = 16;
    static const int64_t MOST_PANELS = 6;
    static const int64_t LEAST_SAMPLES = 100;  // for each center

    std::vector<int32_t> names;
    std::vector<double> gaps;
    std::vector<std::pair<double, int32_t>> all;

    // List a center, then the others by their distances, then keys of no center; and the distances, rounded down, the
    // last that of the nearest one that is not listed.
    void look_around(const Problem &p, int64_t a) {
        const int64_t k = p.n_clusters, d = p.n_features, listed = std::min(p.n_near, k);
        all.resize(k);
        for (int64_t j = 0; j < k; j++)
            all[j] = {j == a ? -1.0 : squared_distance(p.centers + a * d, p.centers + j * d, d), (int32_t)j};
        if (listed < k) std::nth_element(all.begin(), all.begin() + listed, all.end());
        std::sort(all.begin(), all.begin() + listed);
        double *const gap = gaps.data() + a * (p.n_near + 1);
        for (int64_t i = 0; i <= p.n_near; i++) {
            gap[i] = i == 0 ? 0.0 : i < k ? sqrt(all[i].first) / ROUNDED_UP : INFINITY;
            if (i < p.n_near) names[a * p.n_near + i] = i < k ? all[i].second : (int32_t)i;
        }
    }
};

#endif
