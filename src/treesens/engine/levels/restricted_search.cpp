#include "levels/restricted_search.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "problem/checked.hpp"

namespace treesens {

bool SharedProblem::solves(const std::vector<Cell>& x, const std::vector<std::int64_t>& bound) const {
    if (!clauses_.satisfied(x.data())) return false;
    std::vector<std::int64_t> slack(problem_.rows, 0);
    evaluate(problem_, forest_, bound, x.data(), slack.data());
    return std::all_of(slack.begin(), slack.begin() + problem_.constraints, [](std::int64_t s) { return s >= 0; });
}

RestrictedSearch::RestrictedSearch(Restricted part, Mode mode, std::uint64_t seed, std::int64_t max_bytes,
                                   std::int64_t first_look)
    : part_(std::move(part)), mode_(mode) {
    if (part_.left == Left::problem) {
        search_ = std::make_unique<Search>(std::move(part_.problem), std::move(part_.forest), mode, seed, max_bytes);
        if (first_look >= 0) search_->shorten_first_turn(first_look);
    } else if (part_.left == Left::nothing) {
        status_ = Status::infeasible;
    } else {
        status_ = mode == Mode::decide ? Status::witness : Status::optimal;
        point_ = part_.rest;
        if (mode == Mode::objective) constant_ = part_.slack.back();
    }
}

std::int64_t RestrictedSearch::level() const {
    return search_ && search_->incumbent().present() ? search_->incumbent().score.soft : INT64_MIN;
}

Status RestrictedSearch::run(double slice, double seconds) {
    if (status_ != Status::open) return status_;
    search_->run(slice, seconds, -1);
    status_ = search_->status();
    if (mode_ == Mode::decide ? status_ == Status::witness : search_->is_witness())
        point_ = widened(part_, search_->incumbent().x);
    return status_;
}

RepeatedSearch::RepeatedSearch(const SharedProblem& whole, std::vector<std::int64_t> bound,
                               std::vector<std::vector<Cell>> hints, std::uint64_t seed, std::int64_t max_bytes)
    : whole_(whole),
      restrictor_(whole.problem(), whole.forest()),
      bound_(std::move(bound)),
      hints_(std::move(hints)),
      seed_(seed),
      max_bytes_(max_bytes) {}

std::vector<std::vector<Cell>> RepeatedSearch::starts() const {
    std::vector<std::vector<Cell>> points = hints_;
    if (!best_.empty()) points.insert(points.begin(), best_);
    return points;
}

Status RepeatedSearch::run(double slice, double seconds) {
    reason_ = Reason::none;
    const Control::Clock::time_point begin = Control::Clock::now();
    try {
        while (status_ == Status::open && reason_ == Reason::none && fault_.empty()) {
            const double spent = std::chrono::duration<double>(Control::Clock::now() - begin).count();
            if (stopped_.load(std::memory_order_relaxed)) {
                reason_ = Reason::stopped;
                return status_;
            }
            step(std::max(0.0, slice - spent), std::max(0.0, seconds - spent));
        }
    } catch (const InternalError& error) {
        status_ = Status::open;
        fault_ = error.what();
    } catch (const MemoryLimit&) {
        reason_ = Reason::memory;
    } catch (const std::bad_alloc&) {
        reason_ = Reason::memory;
    }
    if (!fault_.empty()) reason_ = Reason::internal;
    return status_;
}

void RepeatedSearch::set_stop(bool stops) {
    stopped_.store(stops, std::memory_order_relaxed);
    const std::lock_guard<std::mutex> lock(guard_);
    set_stop_of_search(stops);
}

}  // namespace treesens
