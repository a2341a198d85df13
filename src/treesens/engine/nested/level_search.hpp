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

#include "problem/restricted.hpp"
#include "search.hpp"

namespace treesens::search {

// One problem whose trees are built once, for searches in boxes of it; they only read it, so several may at a time.
class Whole {
public:
    // Both must outlive it.
    Whole(const Problem& problem, const Forest& forest) : problem_(problem), forest_(forest), clauses_(problem) {}

    const Problem& problem() const { return problem_; }
    const Forest& forest() const { return forest_; }
    bool solves(const std::vector<Cell>& x, const std::vector<std::int64_t>& bound) const;

private:
    const Problem& problem_;
    const Forest& forest_;
    Clauses clauses_;
};

// One question about the cells of a box: is there a solution, or which one is best? Resumable.
class BoxSearch {
public:
    // The local search does no more than `first_look` units of work before the first proof (negative: what it wants).
    // The mode is `decide`, or `objective` if the problem has one.
    BoxSearch(Restricted part, Mode mode, std::uint64_t seed, std::int64_t max_bytes, std::int64_t first_look);

    // As in Search; an open search goes on in the next run.
    Status run(double slice, double seconds);
    Status status() const { return status_; }
    Reason reason() const { return search_ ? search_->reason() : Reason::none; }
    std::string fault() const { return search_ ? search_->fault() : std::string(); }
    void stop() {
        if (search_) search_->stop();
    }
    void clear_stop() {
        if (search_) search_->clear_stop();
    }
    // The solution, or the best one so far, in cells of the whole; empty without one.
    const std::vector<Cell>& point() const { return point_; }
    // The least slack of the best point, or its objective, INT64_MIN without one, and what no point exceeds. Of a
    // decision, while it is open.
    std::int64_t level() const;
    std::int64_t upper() const { return search_ ? search_->upper() : constant_; }
    void set_gap(const Gap& gap) {
        if (search_) search_->set_gap(gap);
    }
    void set_threads(int threads) {
        if (search_) search_->set_threads(threads);
    }
    // A proof that the box has no solution, in the numbers of `part`; for a box of which a problem is left.
    Proof certify(double seconds, std::int64_t node_limit) { return search_->certify(0, seconds, node_limit); }
    const Restricted& part() const { return part_; }
    std::int64_t nodes() const { return search_ ? search_->statistics().nodes : 0; }
    Seconds seconds() const { return search_ ? search_->seconds() : Seconds(); }

private:
    Restricted part_;  // the search takes its problem and its trees
    Mode mode_;
    std::unique_ptr<Search> search_;
    std::vector<Cell> point_;
    std::int64_t constant_ = INT64_MAX;  // what every point of the box is worth, if no problem is left of an optimum
    Status status_ = Status::open;
};

// Levels are >= 0; a cell with a negative level is forbidden.
class LevelSearch {
public:
    LevelSearch(const Whole& whole, std::vector<std::int32_t> level, std::vector<std::int64_t> bound,
                std::vector<std::vector<Cell>> hints, std::uint64_t seed, std::int64_t max_bytes);

    // Goes on where it stopped; `open` where the time was up.
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

    const Whole& whole_;
    Restrictor restrictor_;
    std::vector<std::int32_t> level_;  // [cells]
    std::vector<std::int64_t> bound_;
    std::vector<std::vector<Cell>> hints_;
    std::uint64_t seed_;
    std::int64_t max_bytes_;
    std::vector<std::int32_t> step_;  // the different levels, ascending
    std::vector<std::uint8_t> allowed_;
    std::vector<Cell> best_;
    std::size_t low_ = 0;   // steps before this one have no solution
    std::size_t high_ = 0;  // this one has; the number of steps without a solution
    std::size_t asked_ = 0;
    std::size_t stride_ = 1;
    std::unique_ptr<BoxSearch> search_;
    std::mutex guard_;  // of search_, against `stop` from another thread
    std::atomic<bool> stopped_{false};
    bool started_ = false;
    Status status_ = Status::open;
    Reason reason_ = Reason::none;
    std::string fault_;
    std::int64_t nodes_ = 0;
    std::int64_t decisions_ = 0;
};

}  // namespace treesens::search
