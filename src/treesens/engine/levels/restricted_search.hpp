// Repeated searches of one problem, restricted to fewer cells.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "problem/restricted.hpp"
#include "search.hpp"

namespace treesens {

// One problem whose trees are built once, for restricted searches. They only read it, so several may run at a time.
class SharedProblem {
public:
    // Both must outlive it.
    SharedProblem(const Problem& problem, const Forest& forest)
        : problem_(problem), forest_(forest), clauses_(problem) {}

    const Problem& problem() const { return problem_; }
    const Forest& forest() const { return forest_; }
    bool solves(const std::vector<Cell>& x, const std::vector<std::int64_t>& bound) const;

private:
    const Problem& problem_;
    const Forest& forest_;
    Clauses clauses_;
};

// Decides or optimises within a box of cells. Resumable.
class RestrictedSearch {
public:
    // The local search does at most `first_look` units of work before the first proof (negative: its own choice). The
    // mode is `decide`, or `objective` if the problem has one.
    RestrictedSearch(Restricted part, Mode mode, std::uint64_t seed, std::int64_t max_bytes, std::int64_t first_look);

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
    // The solution, or the best one so far, in cells of the whole problem; empty without one.
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
    // A proof that the box has no solution, in the indices of `part`; for boxes that leave a problem.
    Proof certify(double seconds, std::int64_t node_limit) { return search_->certify(0, seconds, node_limit); }
    const Restricted& part() const { return part_; }
    std::int64_t nodes() const { return search_ ? search_->provers().statistics().nodes : 0; }
    Seconds seconds() const { return search_ ? search_->seconds() : Seconds(); }

private:
    Restricted part_;  // the search takes its problem and its trees
    Mode mode_;
    std::unique_ptr<Search> search_;
    std::vector<Cell> point_;
    std::int64_t constant_ = INT64_MAX;  // what every point of the box is worth, if no problem is left of an optimum
    Status status_ = Status::open;
};

// A question about the cells of a solution, decided by searches one after the other. Resumable.
class RepeatedSearch {
public:
    virtual ~RepeatedSearch() = default;

    // Goes on where it stopped; `open` where the time was up.
    Status run(double slice, double seconds);
    void stop() { set_stop(true); }
    void clear_stop() { set_stop(false); }
    // The best solution; empty without one.
    const std::vector<Cell>& best() const { return best_; }
    Status status() const { return status_; }
    Reason reason() const { return reason_; }
    const std::string& fault() const { return fault_; }
    std::int64_t nodes() const { return nodes_; }

protected:
    RepeatedSearch(const SharedProblem& whole, std::vector<std::int64_t> bound, std::vector<std::vector<Cell>> hints,
                   std::uint64_t seed, std::int64_t max_bytes);
    // Goes on with the search at work, or begins one. Sets the status if the question is decided, and the reason or the
    // fault if there is one to end the run.
    virtual void step(double slice, double seconds) = 0;
    // Stops the search at work, or lets it run again. With the guard, from another thread.
    virtual void set_stop_of_search(bool stops) = 0;
    // The search at work, or none.
    template <typename S>
    void replace(std::unique_ptr<S>& search, std::unique_ptr<S> other) {
        const std::lock_guard<std::mutex> lock(guard_);
        search = std::move(other);
    }
    template <typename S>
    static void set_stop_of(const std::unique_ptr<S>& search, bool stops) {
        if (search) stops ? search->stop() : search->clear_stop();
    }
    // The points to start from: the best solution first.
    std::vector<std::vector<Cell>> starts() const;

    const SharedProblem& whole_;
    Restrictor restrictor_;
    std::vector<std::int64_t> bound_;
    std::vector<std::vector<Cell>> hints_;
    std::uint64_t seed_;
    std::int64_t max_bytes_;
    std::vector<Cell> best_;
    Status status_ = Status::open;
    Reason reason_ = Reason::none;
    std::string fault_;
    std::int64_t nodes_ = 0;

private:
    void set_stop(bool stops);

    std::mutex guard_;  // of the search at work, against `stop` from another thread
    std::atomic<bool> stopped_{false};
};

}  // namespace treesens
