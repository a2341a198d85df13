#include "local/local_search.hpp"

#include <algorithm>
#include <utility>

#include "problem/checked.hpp"

namespace treesens {

namespace {

constexpr std::int64_t kPairsAfterRestarts = 8;  // measured: earlier their cost exceeds their benefit
// Parameters of a walk, measured: descents without a better point until the next walk, and how much worse than its best
// the current point may be, as a fraction.
constexpr std::int64_t kWalkPatience = 150;
constexpr std::int64_t kWalkWorse = 5;

}  // namespace

LocalSearch::LocalSearch(const Problem& problem, const Forest& forest, const Clauses& clauses, std::uint64_t seed)
    : problem_(problem),
      clauses_(clauses),
      moves_(problem, forest, clauses),
      random_(seed),
      order_(moves_.movable()),
      closed_(problem.variables(), 0) {}

void LocalSearch::set_goal(const Goal& goal) {
    moves_.set_goal(goal);
    region_.reset();
    walk_ = Walk();
}

void LocalSearch::stay_within(std::optional<Domains> region) {
    region_ = std::move(region);
    inside_ = Incumbent();
    walk_inside_ = Walk();
}

void LocalSearch::random_cells() {
    start_.resize(problem_.variables());
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        const std::uint8_t* allowed = moves_.allowed(v);
        Cell k = narrow<Cell>(below(problem_.size[v]));
        while (!allowed[k]) k = k + 1 == problem_.size[v] ? 0 : k + 1;
        start_[v] = k;
    }
}

bool LocalSearch::perturb(const std::vector<Cell>& x) {
    start_ = x;
    if (order_.empty()) return true;
    const std::uint64_t changes = 2 + below(4);
    for (std::uint64_t i = 0; i < changes; ++i) {
        const std::int32_t v = order_[below(order_.size())];
        mask_.assign(moves_.allowed(v), moves_.allowed(v) + problem_.size[v]);
        if (clauses_.involves(v)) clauses_.restrict_cells(start_.data(), v, closed_.data(), mask_.data());
        Cell k = narrow<Cell>(below(problem_.size[v]));
        for (Cell tried = 0; tried < problem_.size[v] && !mask_[k]; ++tried) k = k + 1 == problem_.size[v] ? 0 : k + 1;
        if (mask_[k]) start_[v] = k;
    }
    return true;
}

bool LocalSearch::next_start(const Incumbent& incumbent) {
    ++restarts_;
    if (moves_.sums()) {
        const Walk& walk = region_ ? walk_inside_ : walk_;
        return walk.x.empty() ? new_start() : perturb(walk.x);
    }
    return incumbent.present() && below(4) != 0 ? perturb(incumbent.x) : new_start();
}

bool LocalSearch::new_start() {
    if (problem_.hint_count > 0) {
        // The first hint first (callers may put the most promising rows there), then a random one.
        const std::int64_t h = next_hint_ < 2 ? next_hint_ : static_cast<std::int64_t>(below(problem_.hint_count));
        ++next_hint_;
        const auto row = problem_.hints.begin() + (h % problem_.hint_count) * problem_.variables();
        start_.assign(row, row + problem_.variables());
        for (std::int32_t v = 0; v < problem_.variables(); ++v) {
            const std::uint8_t* allowed = moves_.allowed(v);
            while (!allowed[start_[v]]) start_[v] = start_[v] + 1 == problem_.size[v] ? 0 : start_[v] + 1;
        }
    } else {
        random_cells();
    }
    return clauses_.none() || clauses_.repair(start_, random_);
}

void LocalSearch::step(Walk& walk) {
    const Score here = moves_.worth();
    const bool begins = walk.x.empty();
    if (begins || walk.best < here) {
        walk = {moves_.x(), here, 0};
        return;
    }
    if (++walk.since > kWalkPatience) {
        walk = Walk();
        return;
    }
    const bool near = here.hard == walk.best.hard && here.soft >= walk.best.soft + walk.best.soft / kWalkWorse;
    if (near) walk.x = moves_.x();
}

void LocalSearch::offer(Incumbent& incumbent) {
    incumbent.offer(moves_.score(), moves_.x());
    if (region_) inside_.offer(moves_.score(), moves_.x());
}

bool LocalSearch::descend(const Goal& goal, Incumbent& incumbent, Control& control, bool pairs) {
    offer(incumbent);
    bool moved = true;
    while (moved && !incumbent.decides(goal) && !control.expired()) {
        moved = false;
        std::shuffle(order_.begin(), order_.end(), random_);
        for (std::int32_t v : order_) {
            if (!moves_.improve(v, -1)) continue;
            moved = true;
            offer(incumbent);
            if (incumbent.decides(goal)) return true;
        }
        if (moved || !pairs || order_.size() < 2) continue;
        for (std::size_t i = 0; i < order_.size() && !moved && !control.expired(); ++i) {
            const std::int32_t first = order_[below(order_.size())];
            const std::int32_t second = order_[below(order_.size())];
            if (first == second || moves_.grid(first, second) > kLargestGrid) continue;
            moved = moves_.improve(first, second);
        }
        if (moved) offer(incumbent);
    }
    return incumbent.decides(goal);
}

void LocalSearch::run(std::int64_t work, const Goal& goal, Incumbent& incumbent, Control& control) {
    moves_.set_goal(goal);
    moves_.stay_within(region_ ? &*region_ : nullptr);
    const std::int64_t end = moves_.work() + work;
    while (moves_.work() < end && !incumbent.decides(goal) && !control.paused()) {
        if (!next_start(region_ ? inside_ : incumbent)) {
            if (restarts_ > 100 && !incumbent.present()) return;  // the clauses are too tight for random repair
            continue;
        }
        moves_.place(start_, random_());
        const bool sums = moves_.sums();
        descend(goal, incumbent, control, !sums && restarts_ > kPairsAfterRestarts);
        if (sums) step(region_ ? walk_inside_ : walk_);
        if (order_.empty()) return;
    }
}

void LocalSearch::polish(std::vector<Cell> x, const Goal& goal, Incumbent& incumbent, Control& control) {
    moves_.stay_within(nullptr);
    if (!clauses_.none() && !clauses_.repair(x, random_)) return;
    moves_.set_goal(goal);
    moves_.place(x, random_());
    descend(goal, incumbent, control, false);
}

}  // namespace treesens
