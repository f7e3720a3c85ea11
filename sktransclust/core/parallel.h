// Work on chunks by several threads, which end with it: nothing is left that a fork could lose.

#ifndef SKTRANSCLUST_PARALLEL_H
#define SKTRANSCLUST_PARALLEL_H

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdint.h>
#include <system_error>
#include <thread>
#include <vector>

// Lets one chunk after the other do something, in their order.
class Turns {
  public:
    template <typename Action> void take(int64_t chunk, Action action) {
        std::unique_lock<std::mutex> lock(mutex);
        turn.wait(lock, [&] { return next == chunk; });
        action();
        next++;
        turn.notify_all();
    }

  private:
    std::mutex mutex;
    std::condition_variable turn;
    int64_t next = 0;
};

// Calls work(chunk, thread) for each chunk; which thread gets which is left to chance.
template <typename Work> void for_chunks(int64_t n_chunks, int64_t n_threads, Work work) {
    std::atomic<int64_t> next(0);
    const auto loop = [&](int64_t thread) {
        for (int64_t chunk; (chunk = next++) < n_chunks;) work(chunk, thread);
    };
    std::vector<std::thread> others;
    try {
        for (int64_t i = 1; i < n_threads && i < n_chunks; i++) others.emplace_back(loop, i);
    } catch (const std::system_error &) {
        // No more threads are to be had: those there are do it all.
    }
    loop(0);
    for (std::thread &other : others) other.join();
}

#endif
