#include "levels/restricted_search.hpp"

#include <algorithm>
#include <utility>

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

}  // namespace treesens
