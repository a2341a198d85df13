#include "prove/prover.hpp"

#include <algorithm>
#include <limits>

#include "problem/checked.hpp"
#include "problem/rounding.hpp"
#include "problem/schedule.hpp"

namespace treesens::search {

namespace {

constexpr std::int32_t kUnit = kMultiplierUnit;
// Passes over the factors, where sweeps no longer help (ADR 0015). In a node they pay if they may prune it: if they
// lower the bound by half of it, as far as those of late tell. One node in so many is tried all the same. Decisions are
// made by finding points more often than by bounds, and take longer with passes.
constexpr std::int64_t kPassReach = 2;
constexpr std::int64_t kPassTrial = 16;
constexpr std::int64_t kPassMemory = 4;
// There are many parts, and what they begin with is a small problem.
constexpr int kPartSweeps = 20;
constexpr int kPartPasses = 4;
// What of the work polishing may take: a quarter, and an eighth if the turns of local search have looked for the one
// best before (measured); less after so many polished points in a row that were no better.
struct Polish {
    std::int64_t part = 4;
    std::int64_t part_after_misses = 16;
    std::int64_t misses = 100;
    std::int64_t first = 4'000'000;  // so much in any case
};
Polish polish_of(Mode mode) {
    return mode == Mode::objective ? Polish{8, 64, 20, 1'000'000} : Polish{};
}
// Sweeps go on while at this pace the rest of the bound would be gone in so many more.
constexpr std::int64_t kPatience = 30;

// Measured (ADR 0012). A decision wants a point, or everything: depth-first. The least of several slacks is raised by
// staying where points are good; a single objective is found by local search alone.
Dive dive_of(Mode mode) {
    switch (mode) {
        case Mode::decide:
            return {};
        case Mode::objective:
            return {0.25, 2};
        case Mode::slack:
            return {1, 8};
    }
    return {};
}

// A row without terms says nothing; with a multiplier of its own it would take weight from the others.
bool always_holds(const Problem& p, const Goal& goal, std::int32_t r) {
    return !goal.soft[r] && goal.bound[r] <= 0 && p.magnitude(r) == 0;
}

// A sum of rows in which trees cancel, and beside it the hard rows that are about other trees.
std::shared_ptr<const FactorSet> build_collapsed(const Problem& p, const Forest& forest, const Goal& goal,
                                                 const RowSum& sum, MemoryBudget& budget, std::int64_t together) {
    const std::vector<int> shift = row_shifts(p, goal);
    std::vector<RowSum> rows(1, sum);
    std::vector<int> row_shift(1, shift[sum[0]]);
    for (const std::int32_t r : sum) row_shift[0] = std::min(row_shift[0], shift[r]);
    for (const std::int32_t r : rows_beside(p, forest, goal, sum)) {
        rows.push_back({r});
        row_shift.push_back(shift[r]);
    }
    return std::make_shared<const FactorSet>(build_factors(p, forest, rows, row_shift, true, budget, together));
}

}  // namespace

FactorSets build_factor_sets(const Problem& p, const Forest& forest, const Goal& goal, MemoryBudget& budget,
                             std::int64_t together) {
    FactorSets sets;
    const std::vector<int> shift = row_shifts(p, goal);
    const std::vector<RowSum> cancelling = cancelling_rows(p, forest, goal);
    std::vector<RowSum> rows;
    std::vector<int> row_shift;
    for (std::int32_t r = 0; r < p.rows; ++r) {
        if (!goal.counts(p, r) || (cancelling.empty() && always_holds(p, goal, r))) continue;
        rows.push_back({r});
        row_shift.push_back(shift[r]);
    }
    if (!cancelling.empty()) sets.collapsed = build_collapsed(p, forest, goal, cancelling[0], budget, together);
    sets.full = std::make_shared<const FactorSet>(build_factors(p, forest, rows, row_shift, false, budget, together));
    return sets;
}

std::vector<std::int32_t> collapsed_multiplier(const FactorSets& sets) {
    // A single row keeps its weight, two rows halve it: the sums stay below the same power of two. Rows beside them
    // begin without any.
    std::vector<std::int32_t> start(sets.collapsed->rows.size(), 0);
    start[0] = kUnit / narrow<std::int32_t>(sets.collapsed->rows[0].size());
    return start;
}

std::vector<std::int32_t> start_multipliers(const FactorSets& sets) {
    std::vector<std::int32_t> start(sets.full->rows.size(), 0);
    if (sets.collapsed) {
        const RowSum& rows = sets.collapsed->rows[0];
        const std::int32_t multiplier = collapsed_multiplier(sets)[0];
        for (std::size_t m = 0; m < start.size(); ++m) {
            if (std::find(rows.begin(), rows.end(), sets.full->rows[m][0]) != rows.end()) start[m] = multiplier;
        }
        return start;
    }
    std::int32_t rest = kUnit;
    for (std::size_t m = 0; m < start.size(); ++m) {
        start[m] = rest / narrow<std::int32_t>(start.size() - m);
        rest -= start[m];
    }
    return start;
}

Prover::Prover(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal, const FactorSets& sets,
               const Gap& gap, MemoryBudget& budget, Start how)
    : problem_(problem),
      forest_(forest),
      clauses_(clauses),
      goal_(goal),
      gap_(gap),
      budget_(budget),
      branching_(problem, clauses),
      open_(dive_of(goal.mode), budget),
      x_(problem.variables(), 0),
      slack_(problem.rows, 0),
      root_sweeps_(how == Start::part ? kPartSweeps : narrow<int>(schedule.root_sweeps)),
      root_passes_(how == Start::part ? kPartPasses : narrow<int>(schedule.root_passes)),
      audit_(problem, forest, clauses, goal) {
    const std::vector<std::int32_t> start = start_multipliers(sets);
    if (sets.collapsed) {
        bound_levels_.push_back(
            std::make_unique<BoundLevel>(problem, goal, sets.collapsed, collapsed_multiplier(sets), budget));
        collapsed_ = bound_levels_.back().get();
    }
    const int sides = start.size() == 2 && start[0] > 0 && start[1] > 0 ? 2 : 1;
    for (int i = 0; i < sides && !start.empty(); ++i) {
        bound_levels_.push_back(std::make_unique<BoundLevel>(problem, goal, sets.full, start, budget));
        full_.push_back(bound_levels_.back().get());
    }
    OpenNode root;
    root.domains = Domains(problem);
    root.start.resize(bound_levels_.size());
    visit(std::move(root));
    finished_ = how == Start::idle;
}

Prover::~Prover() = default;

std::int64_t Prover::work() const {
    std::int64_t sum = part_work_;
    for (const auto& t : bound_levels_) sum += t->messages.work();
    return sum;
}

const char* Prover::phase_name() const {
    if (finished_) return "finished";
    if (phase_ == Phase::enter) return "clauses";
    if (phase_ == Phase::part) return "part";
    return bound_level_ != nullptr && bound_level_ == collapsed_ ? "collapsed" : "full";
}

std::int64_t Prover::proved_upper() const {
    const std::int64_t bound = std::max(pruned_upper_, open_.upper());
    return finished_ ? bound : std::max(bound, node_upper_);
}

std::int64_t Prover::upper(const Incumbent& incumbent) const {
    std::int64_t bound = proved_upper();
    if (incumbent.present() && incumbent.score.hard >= 0) bound = std::max(bound, incumbent.score.soft);
    return std::min(bound, root_upper_);
}

void Prover::warm_start(const Prover& other) {
    for (std::size_t i = 0; i < bound_levels_.size() && i < other.bound_levels_.size(); ++i) {
        const Messages& from = other.bound_levels_[i]->messages;
        Messages& to = bound_levels_[i]->messages;
        if (&from.set() != &to.set()) continue;
        to.set_multipliers(from.multipliers());
        to.set_reduced(from.reduced());
        bound_levels_[i]->warm = true;
    }
}

void Prover::run(std::int64_t work_limit, std::int64_t node_limit, Incumbent& incumbent, LocalSearch& polisher,
                 Control& control) {
    end_ = work_limit < INT64_MAX - work() ? work() + work_limit : INT64_MAX;
    while (!finished_ && work() < end_ && !control.paused()) {
        if (has_done(node_limit)) return;
        if (watches_ && phase_ == Phase::enter) watch_pace();
        if (goal_.mode == Mode::decide && incumbent.present() && goal_.is_witness(incumbent.score)) return;
        step(node_limit, incumbent, polisher, control);
    }
}

void Prover::step(std::int64_t node_limit, Incumbent& incumbent, LocalSearch& polisher, Control& control) {
    switch (phase_) {
        case Phase::enter: {
            level_ = level_to_reach(problem_, goal_, gap_, incumbent);
            enter();
            return;
        }
        case Phase::collapsed:
            sweep_tier(*collapsed_, incumbent, polisher, control);
            return;
        case Phase::full:
            sweep_tier(*bound_level_, incumbent, polisher, control);
            return;
        case Phase::multipliers:
            try_multipliers(incumbent, polisher, control);
            return;
        case Phase::branch:
            if (!is_part() || !enter_part(incumbent)) branch(incumbent);
            return;
        case Phase::part:
            run_part(node_limit, incumbent, control);
            return;
    }
}

void Prover::visit(OpenNode node) {
    node_ = std::move(node.domains);
    node_id_ = next_id_++;
    node_upper_ = node.upper;
    node_variable_ = node.variable;
    path_ = std::move(node.path);
    start_ = std::move(node.start);
    part_ = std::move(node.part);
    phase_ = part_ ? Phase::part : Phase::enter;
    bound_level_ = nullptr;
    entered_tier_ = false;
}

void Prover::enter() {
    ++statistics_.nodes;
    statistics_.deepest = std::max(statistics_.deepest, static_cast<std::int64_t>(path_.size()));
    audit_.enter(node_);
    changed_.clear();
    if (node_variable_ >= 0) changed_.push_back(node_variable_);
    if (!clauses_.propagate(node_, changed_)) {
        ++statistics_.pruned_by_clauses;
        prune();
        return;
    }
    if (node_upper_ < level_) {
        prune();
        return;
    }
    steps_ = 0;
    failures_ = 0;
    sweeps_ = 0;
    entered_tier_ = false;
    const bool skip = !at_root() && collapsed_ != nullptr && collapsed_->idle() && statistics_.nodes % 16 != 0;
    if (collapsed_ != nullptr && !skip) {
        phase_ = Phase::collapsed;
        bound_level_ = collapsed_;
        return;
    }
    if (full_.empty()) {
        phase_ = Phase::branch;
        return;
    }
    bound_level_ = full_[0];
    for (BoundLevel* t : full_) {
        if (path_.empty() || t->loaded == path_.back()) bound_level_ = t;
    }
    phase_ = Phase::full;
}

// Brings the state of a bound_level to this node: from the parent if it is still there, else from what the nearest node
// above left.
void Prover::load(BoundLevel& bound_level) {
    bound_level.set_level(problem_, goal_, level_);
    const bool from_parent = bound_level.loaded >= 0 && !path_.empty() && bound_level.loaded == path_.back();
    if (bound_level.loaded != node_id_ && !from_parent) {
        const SavedMessages* start = start_[index_of(bound_level)].get();
        if (start != nullptr)
            bound_level.messages.go_to(node_, *start);
        else
            bound_level.messages.reset(node_, bound_level.loaded >= 0 || bound_level.warm);
    }
    bound_level.loaded = node_id_;
    bound_level.messages.sync(node_);
}

std::size_t Prover::index_of(const BoundLevel& bound_level) const {
    const auto is_it = [&](const auto& t) { return t.get() == &bound_level; };
    return static_cast<std::size_t>(std::find_if(bound_levels_.begin(), bound_levels_.end(), is_it) -
                                    bound_levels_.begin());
}

void Prover::tighten(const BoundLevel& bound_level) {
    // Cells were removed for this level: what lies in them stays below it.
    const std::int64_t upper =
        std::max(bound_level.upper(problem_, goal_), goal_.mode == Mode::decide ? std::int64_t{-1} : level_ - 1);
    node_upper_ = std::min(node_upper_, upper);
    if (at_root()) root_upper_ = std::min(root_upper_, node_upper_);
}

void Prover::sweep_tier(BoundLevel& bound_level, Incumbent& incumbent, LocalSearch& polisher, Control& control) {
    if (!entered_tier_) {
        load(bound_level);
        entered_tier_ = true;
        sweeps_ = 0;
        passes_ = 0;
        ++bound_level.statistics.tried;
        last_bound_ = bound_level.messages.bound();
        if (last_bound_ < 0) {
            ++bound_level.statistics.pruned;
            prune(&bound_level.messages);
            return;
        }
    }
    const Sweep outcome = bound_level.messages.sweep(sweeps_ % 2 == 0, node_, control);
    ++bound_level.statistics.sweeps;
    ++sweeps_;
    if (outcome == Sweep::stopped) return;
    if (outcome == Sweep::pruned) {
        ++bound_level.statistics.pruned;
        prune(&bound_level.messages);
        return;
    }
    const std::int64_t bound = bound_level.messages.bound();
    const std::int64_t gain = last_bound_ - bound;
    last_bound_ = bound;
    const std::int64_t most = at_root() ? root_sweeps_ : schedule.node_sweeps;
    const std::int64_t patience = at_root() ? kPatience : 2 * (schedule.node_sweeps - sweeps_);
    if (sweeps_ < most && gain > bound / std::max<std::int64_t>(patience, 1)) return;
    if (passes_pay(bound_level)) {
        pass(bound_level, control);
        return;
    }
    tighten(bound_level);
    decode(bound_level, incumbent, polisher, control);
    entered_tier_ = false;
    if (bound_level.messages.set().rows.size() > 1)
        phase_ = Phase::multipliers;
    else
        leave_tier();
}

bool Prover::passes_pay(const BoundLevel& bound_level) const {
    if (goal_.mode == Mode::decide) return false;
    if (at_root()) return passes_ < root_passes_;
    if (passes_ >= schedule.node_passes) return false;
    return !bound_level.pass_gain || last_bound_ / kPassReach < *bound_level.pass_gain ||
           statistics_.nodes % kPassTrial == 0;
}

// A sweep follows: it removes cells, and evens out what the branching looks at.
void Prover::pass(BoundLevel& bound_level, Control& control) {
    ++passes_;
    if (bound_level.messages.pass(control) == Sweep::stopped) return;
    const std::int64_t gain = last_bound_ - bound_level.messages.bound();
    last_bound_ = bound_level.messages.bound();
    if (!at_root()) {
        const std::int64_t mean = bound_level.pass_gain.value_or(gain);
        bound_level.pass_gain = mean + (gain - mean) / kPassMemory;
    }
    if (last_bound_ >= 0) return;
    ++bound_level.statistics.pruned;
    prune(&bound_level.messages);
}

// After the collapsed bound comes the full one, unless it seldom helps.
void Prover::leave_tier() {
    phase_ = Phase::branch;
    if (bound_level_ != collapsed_ || full_.empty()) return;
    BoundLevel& next = side_for_point();
    if (!at_root() && next.idle() && statistics_.nodes % 16 != 0) return;
    phase_ = Phase::full;
    bound_level_ = &next;
    steps_ = 0;
    failures_ = 0;
}

BoundLevel& Prover::side_for_point() {
    if (full_.size() == 1) return *full_[0];
    // The row that the decoded point violates more is the one that needs more weight.
    return *full_[slack_[full_[0]->messages.set().rows[0][0]] < slack_[full_[0]->messages.set().rows[1][0]] ? 0 : 1];
}

void Prover::try_multipliers(Incumbent& incumbent, LocalSearch& polisher, Control& control) {
    Sweep outcome = Sweep::open;
    ++statistics_.multiplier_steps;
    const Optimised question{problem_, goal_};
    const Optimised* optimised = goal_.mode == Mode::decide ? nullptr : &question;
    const bool better = bound_level_->improve_multipliers(x_, node_, control, outcome, optimised);
    ++steps_;
    if (outcome == Sweep::stopped) return;
    if (outcome == Sweep::pruned) {
        ++bound_level_->statistics.pruned;
        prune(&bound_level_->messages);
        return;
    }
    tighten(*bound_level_);
    if (better) decode(*bound_level_, incumbent, polisher, control);
    failures_ = better ? 0 : failures_ + 1;
    if (steps_ >= (at_root() ? schedule.root_steps : schedule.node_steps) || failures_ > 3) leave_tier();
}

// A point of the node at work may not be worth more than what has been proved of the node.
void Prover::check_point(const Score& score) const {
    const bool beyond = score.hard >= 0 && (score.soft > node_upper_ || (at_root() && score.soft > root_upper_));
    ensure(!beyond, "a point was reached that is better than the proved bound of its node");
}

void Prover::decode(const BoundLevel& bound_level, Incumbent& incumbent, LocalSearch& polisher, Control& control) {
    if (incumbent.present()) x_ = incumbent.x;
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (!node_.has(v, x_[v])) x_[v] = node_.nearest(v, x_[v]);
    }
    bound_level.messages.decode(x_);
    evaluate(problem_, forest_, goal_.bound, x_.data(), slack_.data());
    if (clauses_.satisfied(x_.data())) {
        const Score s = goal_.score(problem_, slack_.data());
        check_point(s);
        incumbent.offer(s, x_);
    }
    const Polish polish = polish_of(goal_.mode);
    const std::int64_t part = misses_ > polish.misses ? polish.part_after_misses : polish.part;
    if (polish_work_ * part > work() + polish.first) return;
    const std::int64_t before = polisher.work();
    const Score old = incumbent.score;
    polisher.polish(x_, goal_, incumbent, control);
    polish_work_ += polisher.work() - before;
    misses_ = old < incumbent.score ? 0 : misses_ + 1;
}

void Prover::branch(Incumbent& incumbent) {
    // The last step may have taken cells away from under the point.
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (!node_.has(v, x_[v])) x_[v] = node_.nearest(v, x_[v]);
    }
    Split cut;
    if (bound_level_ != nullptr) cut = branching_.by_deficit(bound_level_->messages, node_, x_);
    if (cut.variable < 0) cut = branching_.by_clause(node_, x_);
    if (cut.variable < 0 && bound_level_ == collapsed_ && !full_.empty()) {
        // The point is the best of the collapsed bound and still no solution: only the full rows can tell why.
        bound_level_ = &side_for_point();
        phase_ = Phase::full;
        entered_tier_ = false;
        return;
    }
    if (cut.variable < 0 && bound_level_ != nullptr) cut = branching_.by_spread(bound_level_->messages, node_);
    if (cut.variable < 0 && !clauses_.satisfied(x_.data())) {
        // Removed cells left a clause without a literal.
        ++statistics_.pruned_by_clauses;
        prune();
        return;
    }
    if (cut.variable < 0) {
        // All rows are constant over the node and the point satisfies the clauses: it has been decided exactly.
        ++statistics_.closed;
        for (std::int32_t v = 0; v < problem_.variables(); ++v) {
            ensure(node_.has(v, x_[v]), "a node was decided by a point outside of it");
        }
        evaluate(problem_, forest_, goal_.bound, x_.data(), slack_.data());
        const Score s = goal_.score(problem_, slack_.data());
        check_point(s);
        incumbent.offer(s, x_);
        audit_.prune(node_, s.hard >= 0 ? std::max(level_, s.soft + 1) : level_);
        // What lies in cells that were removed stays below the level, and may be better than what is left.
        const std::int64_t left = std::max(level_ - 1, s.hard >= 0 ? s.soft : INT64_MIN);
        pruned_upper_ = std::max(pruned_upper_, std::min(node_upper_, left));
        next();
        return;
    }
    split(cut);
}

}  // namespace treesens::search
