// Stopping: a flag that another thread may set, a clock, and deterministic work budgets.
//
// The schedule counts work (tree nodes visited, entries touched, grid cells: about a nanosecond each), not time, so
// that a seed gives the same search on every machine; only the time limit itself is read off the clock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace treesens {

class Control {
public:
    using Clock = std::chrono::steady_clock;

    Control() = default;
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

    // After `slice` seconds the search pauses at the next place where it can resume unchanged; after `seconds`, or on a
    // stop request, it aborts at once.
    void start(double slice, double seconds) {
        const Clock::time_point now = Clock::now();
        pause_at_ = after(now, slice);
        deadline_ = after(now, seconds);
        expired_ = false;
    }
    // The limits of another control, and its flag: that also stops this one during its lifetime.
    void follow(const Control& other) {
        pause_at_ = other.pause_at_;
        deadline_ = other.deadline_;
        flag_ = other.flag_;
        expired_ = false;
    }
    void request_stop() { stop_.store(true, std::memory_order_relaxed); }
    void clear_stop() { stop_.store(false, std::memory_order_relaxed); }
    bool stop_requested() const { return flag_->load(std::memory_order_relaxed); }
    // Both read the clock; call them about every 0.1 ms of work.
    bool expired() {
        if (!expired_) expired_ = stop_requested() || Clock::now() >= deadline_;
        return expired_;
    }
    bool paused() { return expired() || Clock::now() >= pause_at_; }

private:
    static Clock::time_point after(Clock::time_point now, double seconds) {
        if (!(seconds >= 0 && seconds < 1e8)) return Clock::time_point::max();
        return now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }

    std::atomic<bool> stop_{false};
    const std::atomic<bool>* flag_ = &stop_;
    bool expired_ = false;
    Clock::time_point pause_at_ = Clock::time_point::max();
    Clock::time_point deadline_ = Clock::time_point::max();
};

// Thrown during the setup of a prover if the limits of its control are reached.
struct SetupStopped {};

// Adds the time that a scope takes to a sum of seconds.
class Stopwatch {
public:
    explicit Stopwatch(double& total) : total_(total), start_(Control::Clock::now()) {}
    ~Stopwatch() { total_ += std::chrono::duration<double>(Control::Clock::now() - start_).count(); }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

private:
    double& total_;
    Control::Clock::time_point start_;
};

}  // namespace treesens
