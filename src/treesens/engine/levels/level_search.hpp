// The least level at which a problem has a solution: a point whose every cell has at most this level.
//
// Distances by the largest norm are levels: the boxes of a row are nested, so "is there one within this level?" is
// monotone, and a bisection over the levels of the cells ends with value = bound.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "levels/restricted_search.hpp"
#include "problem/restricted.hpp"

namespace treesens {

// Levels are >= 0; a cell with a negative level is forbidden.
class LevelSearch : public RepeatedSearch {
public:
    LevelSearch(const SharedProblem& whole, std::vector<std::int32_t> level, std::vector<std::int64_t> bound,
                std::vector<std::vector<Cell>> hints, std::uint64_t seed, std::int64_t max_bytes);

    // No solution has a lesser level.
    std::int32_t low() const;
    // The level of the best solution; -1 without one.
    std::int32_t high() const { return best_.empty() ? -1 : step_[high_]; }
    std::int64_t decisions() const { return decisions_; }

private:
    void step(double slice, double seconds) override;
    void set_stop_of_search(bool stops) override { set_stop_of(search_, stops); }
    void start();
    void skip_hopeless();
    std::size_t next() const;
    void keep(const std::vector<Cell>& x);
    std::size_t level_of(const std::vector<Cell>& x) const;
    std::vector<Cell> pulled(const std::vector<Cell>& x, std::size_t limit) const;
    const std::uint8_t* box(std::size_t limit);
    void finish();

    std::vector<std::int32_t> level_;  // [cells]
    std::vector<std::int32_t> step_;   // the different levels, ascending
    std::vector<std::uint8_t> allowed_;
    std::size_t low_ = 0;   // steps before this one have no solution
    std::size_t high_ = 0;  // this one has; the number of steps without a solution
    std::size_t asked_ = 0;
    std::size_t stride_ = 1;
    std::unique_ptr<RestrictedSearch> search_;
    bool started_ = false;
    std::int64_t decisions_ = 0;
};

}  // namespace treesens
