// Stopping: a flag that another thread may set, a clock, and deterministic work budgets.
//
// The schedule counts work (tree nodes visited, entries touched, grid cells: about a nanosecond each), not time, so that a
// seed gives the same search on every machine; only the time limit itself is read off the clock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace treesens::search {

class Control {
public:
    using Clock = std::chrono::steady_clock;

    void start(double seconds) {
        limited_ = seconds >= 0 && seconds < 1e9;
        if (limited_) deadline_ = Clock::now() + std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
        expired_ = false;
    }
    void request_stop() { stop_.store(true, std::memory_order_relaxed); }
    void clear_stop() { stop_.store(false, std::memory_order_relaxed); }
    bool stop_requested() const { return stop_.load(std::memory_order_relaxed); }
    // Reads the clock; call it about every 0.1 ms of work.
    bool expired() {
        if (!expired_) expired_ = stop_requested() || (limited_ && Clock::now() >= deadline_);
        return expired_;
    }

private:
    std::atomic<bool> stop_{false};
    bool limited_ = false;
    bool expired_ = false;
    Clock::time_point deadline_;
};

}  // namespace treesens::search
