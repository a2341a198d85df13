// The least level at which a problem has a solution: a point whose every cell has at most this level.
//
// Distances by the largest norm are levels: the boxes of a row are nested, so "is there one within this level?" is
// monotone, and a bisection over the levels of the cells ends with value = bound.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "levels/restricted_search.hpp"
#include "problem/restricted.hpp"

namespace treesens {

// Levels are >= 0; a cell with a negative level is forbidden.
class LevelSearch {
public:
    LevelSearch(const SharedProblem& whole, std::vector<std::int32_t> level, std::vector<std::int64_t> bound,
                std::vector<std::vector<Cell>> hints, std::uint64_t seed, std::int64_t max_bytes);

    // Resumes the search; `open` if time ran out.
    Status run(double slice, double seconds);
    void stop();
    void clear_stop();
    // No solution has a lesser level.
    std::int32_t low() const;
    // The level of the best solution; -1 without one.
    std::int32_t high() const { return best_.empty() ? -1 : step_[high_]; }
    const std::vector<Cell>& best() const { return best_; }
    Status status() const { return status_; }
    Reason reason() const { return reason_; }
    const std::string& fault() const { return fault_; }
    std::int64_t nodes() const { return nodes_; }
    std::int64_t decisions() const { return decisions_; }

private:
    void skip_hopeless();
    std::size_t next() const;
    void keep(const std::vector<Cell>& x);
    std::size_t level_of(const std::vector<Cell>& x) const;
    std::vector<Cell> pulled(const std::vector<Cell>& x, std::size_t limit) const;
    const std::uint8_t* box(std::size_t limit);
    bool finish();

    const SharedProblem& whole_;
    Restrictor restrictor_;
    std::vector<std::int32_t> level_;  // [cells]
    std::vector<std::int64_t> bound_;
    std::vector<std::vector<Cell>> hints_;
    std::uint64_t seed_;
    std::int64_t max_bytes_;
    std::vector<std::int32_t> step_;  // the different levels, ascending
    std::vector<std::uint8_t> allowed_;
    std::vector<Cell> best_;
    std::size_t low_ = 0;   // steps before this have no solution
    std::size_t high_ = 0;  // this step has one; the number of steps if none has
    std::size_t asked_ = 0;
    std::size_t stride_ = 1;
    std::unique_ptr<RestrictedSearch> search_;
    std::mutex guard_;  // of search_, against `stop` from another thread
    std::atomic<bool> stopped_{false};
    bool started_ = false;
    Status status_ = Status::open;
    Reason reason_ = Reason::none;
    std::string fault_;
    std::int64_t nodes_ = 0;
    std::int64_t decisions_ = 0;
};

}  // namespace treesens
