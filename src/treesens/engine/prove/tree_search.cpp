#include "prove/tree_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "problem/checked.hpp"
#include "problem/schedule.hpp"

namespace treesens {

std::int64_t level_to_reach(const Problem& problem, const Goal& goal, const Gap& gap, const Incumbent& incumbent) {
    if (goal.mode == Mode::decide) return 0;
    if (!incumbent.present() || incumbent.score.hard < 0) {
        // Nothing yet: the level that every point reaches.
        std::int64_t lowest = 0;
        for (std::int32_t r = 0; r < problem.rows; ++r) {
            if (goal.soft[r]) lowest = std::min(lowest, -problem.magnitude(r) - goal.bound[r]);
        }
        return std::max(lowest, gap.least);
    }
    const std::int64_t best = incumbent.score.soft;
    const double scale = std::abs(static_cast<double>(best) + static_cast<double>(gap.reference));
    const std::int64_t relative = truncated<std::int64_t>(std::min(gap.relative * scale, 4.0e18));
    const std::int64_t step = std::max({std::int64_t{1}, gap.absolute, relative});
    // Without a soft row every slack is enough, and the best one is the largest number.
    const std::int64_t better =
        best > std::numeric_limits<std::int64_t>::max() - step ? std::numeric_limits<std::int64_t>::max() : best + step;
    return std::max(better, gap.least);
}

TreeSearch::TreeSearch(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal, const Gap& gap,
                       const Polishing& polishing)
    : problem_(problem),
      forest_(forest),
      clauses_(clauses),
      goal_(goal),
      gap_(gap),
      branching_(problem, clauses),
      x_(problem.variables(), 0),
      slack_(problem.rows, 0),
      audit_(problem, forest, clauses, goal),
      polishing_(polishing) {}

void TreeSearch::run(std::int64_t work_limit, std::int64_t node_limit, Incumbent& incumbent, LocalSearch& polisher,
                     Control& control) {
    polisher_ = &polisher;
    end_ = work_limit < INT64_MAX - work() ? work() + work_limit : INT64_MAX;
    while (!finished_ && work() < end_ && !control.paused()) {
        if (has_done(node_limit)) return;
        if (incumbent.decides(goal_)) return;
        step(node_limit, incumbent, control);
    }
}

std::string TreeSearch::refute(std::int64_t level, std::int64_t node_limit, Control& control) {
    level_ = level;
    Incumbent met;
    while (!finished_) {
        if (control.expired()) return "time";
        if (written() >= node_limit) return "nodes";
        step(-1, met, control);
        if (met.present()) return "a point was met that cannot be refuted";
    }
    return "";
}

std::int64_t TreeSearch::proved_upper() const {
    const std::int64_t bound = std::max(pruned_upper_, open_upper());
    return finished_ ? bound : std::max(bound, node_upper_);
}

void TreeSearch::begin_node(Domains domains, std::int64_t upper) {
    node_ = std::move(domains);
    node_id_ = next_id_++;
    node_upper_ = upper;
}

bool TreeSearch::enter(std::size_t depth, std::int32_t variable) {
    ++statistics_.nodes;
    statistics_.deepest = std::max(statistics_.deepest, static_cast<std::int64_t>(depth));
    audit_.enter(node_);
    changed_.clear();
    if (variable >= 0) changed_.push_back(variable);
    const bool possible = clauses_.propagate(node_, changed_);
    if (!possible) ++statistics_.pruned_by_clauses;
    if (possible && node_upper_ >= level_) return true;
    prune();
    return false;
}

void TreeSearch::prune(const Messages* pruned_by) {
    audit_.prune(node_, level_, pruned_by);
    count_in(level_ - 1);
    next();
}

void TreeSearch::close(Incumbent& incumbent) {
    ++statistics_.closed;
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        ensure(node_.has(v, x_[v]), "a node was decided by a point outside of it");
    }
    evaluate(problem_, forest_, goal_.bound, x_.data(), slack_.data());
    const Score s = offer(incumbent);
    const std::int64_t better = s.soft == INT64_MAX ? INT64_MAX : s.soft + 1;
    audit_.prune(node_, s.hard >= 0 ? std::max(level_, better) : level_);
    count_in(std::max(level_ - 1, s.hard >= 0 ? s.soft : INT64_MIN));
    next();
}

void TreeSearch::move_into_node() {
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (!node_.has(v, x_[v])) x_[v] = node_.nearest(v, x_[v]);
    }
}

void TreeSearch::propose(Incumbent& incumbent, Control& control) {
    evaluate(problem_, forest_, goal_.bound, x_.data(), slack_.data());
    if (clauses_.satisfied(x_.data())) offer(incumbent);
    polish(incumbent, control);
}

// The point at work, which satisfies the clauses, may not be worth more than what has been proved of its node.
Score TreeSearch::offer(Incumbent& incumbent) const {
    const Score s = goal_.score(problem_, slack_.data());
    const bool beyond = s.hard >= 0 && (s.soft > node_upper_ || (at_root() && s.soft > root_upper_));
    ensure(!beyond, "a point was reached that is better than the proved bound of its node");
    incumbent.offer(s, x_);
    return s;
}

void TreeSearch::polish(Incumbent& incumbent, Control& control) {
    if (schedule.polish == 0) return;
    const std::int64_t part = misses_ > polishing_.misses ? polishing_.part_after_misses : polishing_.part;
    if (polish_work_ * part > work() + polishing_.first) return;
    const std::int64_t before = polisher_->work();
    const Score old = incumbent.score;
    polisher_->polish(x_, goal_, incumbent, control);
    polish_work_ += polisher_->work() - before;
    misses_ = old < incumbent.score ? 0 : misses_ + 1;
}

}  // namespace treesens
