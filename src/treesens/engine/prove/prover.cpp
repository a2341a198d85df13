#include "prove/prover.hpp"

#include <algorithm>
#include <limits>

#include "problem/checked.hpp"
#include "problem/rounding.hpp"
#include "problem/schedule.hpp"

namespace treesens {

namespace {

// Passes over the factors, where sweeps no longer help (ADR 0015). In a node they pay if they may prune it: if they
// lower the bound by half of it, as far as those of late tell. One node in so many is tried all the same. Decisions are
// made by finding points more often than by bounds, and take longer with passes.
constexpr std::int64_t kPassReach = 2;
constexpr std::int64_t kPassTrial = 16;
constexpr std::int64_t kPassMemory = 4;
// There are many parts, each starting as a small problem.
constexpr int kPartSweeps = 20;
constexpr int kPartPasses = 4;
// Less if local search has looked for the optimum before (measured).
Polishing polishing_of(Mode mode) {
    return mode == Mode::objective ? Polishing{8, 64, 20, 1'000'000} : Polishing{4, 16, 100, 4'000'000};
}

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

}  // namespace

Prover::Prover(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal, const FactorSets& sets,
               const Gap& gap, MemoryBudget& budget, Start how)
    : TreeSearch(problem, forest, clauses, goal, gap, polishing_of(goal.mode)),
      budget_(budget),
      bounds_(problem, goal, sets, BoundStack::Full::sides, budget),
      open_(dive_of(goal.mode), budget),
      weighs_apart_(sets.objective_is_apart && sets.full->rows.size() > 1),
      root_sweeps_(how == Start::part ? kPartSweeps : narrow<int>(schedule.root_sweeps)),
      root_passes_(how == Start::part ? kPartPasses : narrow<int>(schedule.root_passes)) {
    OpenNode root;
    root.domains = Domains(problem);
    root.start.resize(bounds_.levels().size());
    visit(std::move(root));
    finished_ = how == Start::idle;
}

Prover::~Prover() = default;

std::int64_t Prover::work() const {
    return part_work_ + bounds_.work();
}

const char* Prover::phase_name() const {
    if (finished_) return "finished";
    if (phase_ == Phase::enter) return "clauses";
    if (phase_ == Phase::part) return "part";
    return bound_level_ != nullptr && bound_level_ == bounds_.collapsed() ? "collapsed" : "full";
}

void Prover::step(std::int64_t node_limit, Incumbent& incumbent, Control& control) {
    switch (phase_) {
        case Phase::enter:
            if (watches_) watch_pace();
            level_ = level_to_reach(problem_, goal_, gap_, incumbent);
            if (enter(path_.size(), node_variable_)) first_bound();
            return;
        case Phase::collapsed:
            sweep_level(*bounds_.collapsed(), incumbent, control);
            return;
        case Phase::full:
            sweep_level(*bound_level_, incumbent, control);
            return;
        case Phase::multipliers:
            try_multipliers(incumbent, control);
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
    begin_node(std::move(node.domains), node.upper);
    node_variable_ = node.variable;
    path_ = std::move(node.path);
    start_ = std::move(node.start);
    part_ = std::move(node.part);
    phase_ = part_ ? Phase::part : Phase::enter;
    bound_level_ = nullptr;
    entered_level_ = false;
}

// Start of a node's bounds.
void Prover::first_bound() {
    steps_ = new_steps();
    sweeps_ = 0;
    entered_level_ = false;
    BoundLevel* collapsed = bounds_.collapsed();
    const bool skip = !at_root() && collapsed != nullptr && collapsed->idle() && statistics_.nodes % 16 != 0;
    if (collapsed != nullptr && !skip) {
        phase_ = Phase::collapsed;
        bound_level_ = collapsed;
        return;
    }
    if (bounds_.full().empty()) {
        phase_ = Phase::branch;
        return;
    }
    bound_level_ = bounds_.full()[0];
    for (BoundLevel* t : bounds_.full()) {
        if (path_.empty() || t->loaded == path_.back()) bound_level_ = t;
    }
    phase_ = Phase::full;
}

// Moves a bound_level's state to this node: from the parent if it is still there, else from the state saved by the
// nearest node above.
void Prover::load(BoundLevel& bound_level) {
    bound_level.set_level(problem_, goal_, level_);
    const bool from_parent = bound_level.loaded >= 0 && !path_.empty() && bound_level.loaded == path_.back();
    if (bound_level.loaded != node_id_ && !from_parent) {
        const SavedMessages* start = start_[bounds_.index_of(bound_level)].get();
        if (start != nullptr)
            bound_level.messages.go_to(node_, *start);
        else
            bound_level.messages.reset(node_, bound_level.loaded >= 0 || bound_level.warm);
    }
    bound_level.loaded = node_id_;
    bound_level.messages.sync(node_);
}

void Prover::tighten(const BoundLevel& bound_level) {
    // Cells were removed for this level: values in them are below it.
    const std::int64_t upper =
        std::max(bound_level.upper(problem_, goal_), goal_.mode == Mode::decide ? std::int64_t{-1} : level_ - 1);
    node_upper_ = std::min(node_upper_, upper);
    if (at_root()) root_upper_ = std::min(root_upper_, node_upper_);
}

void Prover::sweep_level(BoundLevel& bound_level, Incumbent& incumbent, Control& control) {
    if (!entered_level_) {
        load(bound_level);
        if (at_root() && weighs_apart_ && !bound_level.warm && schedule.apart_shares > 0) {
            const Sweep outcome = bound_level.choose_share(node_, control, Optimised{problem_, goal_});
            if (outcome == Sweep::pruned) ++bound_level.statistics.pruned, prune(&bound_level.messages);
            if (outcome != Sweep::open) return;
        }
        entered_level_ = true;
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
    const std::int64_t before = last_bound_;
    last_bound_ = bound;
    const std::int64_t node_sweeps = weighs_apart_ ? schedule.apart_sweeps : schedule.node_sweeps;
    const std::int64_t most = at_root() ? root_sweeps_ : node_sweeps;
    const std::int64_t patience = at_root() ? kRootPatience : 2 * (node_sweeps - sweeps_);
    if (sweeps_ < most && !stalls(before, bound, patience)) return;
    if (passes_pay(bound_level)) {
        pass(bound_level, control);
        return;
    }
    tighten(bound_level);
    decode(bound_level, incumbent, control);
    entered_level_ = false;
    if (bound_level.messages.set().rows.size() > 1)
        phase_ = Phase::multipliers;
    else
        leave_level();
}

bool Prover::passes_pay(const BoundLevel& bound_level) const {
    if (goal_.mode == Mode::decide) return false;
    if (at_root()) return passes_ < root_passes_;
    if (passes_ >= (weighs_apart_ ? schedule.apart_passes : schedule.node_passes)) return false;
    return !bound_level.pass_gain || last_bound_ / kPassReach < *bound_level.pass_gain ||
           statistics_.nodes % kPassTrial == 0;
}

// A sweep follows: it removes cells, and balances the numbers that branching uses.
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
void Prover::leave_level() {
    phase_ = Phase::branch;
    if (bound_level_ != bounds_.collapsed() || bounds_.full().empty()) return;
    BoundLevel& next = bounds_.side_for(slack_);
    if (!at_root() && next.idle() && statistics_.nodes % 16 != 0) return;
    phase_ = Phase::full;
    bound_level_ = &next;
    steps_ = new_steps();
}

// A unit of an objective that is apart is worth another amount of the rows in every node, so more steps are needed.
MultiplierSteps Prover::new_steps() const {
    if (at_root()) return MultiplierSteps(schedule.root_steps);
    return MultiplierSteps(weighs_apart_ ? schedule.apart_steps : schedule.node_steps);
}

// True if the node takes an additional step: a few like the last one would prune it.
bool Prover::step_pays(std::int64_t before, bool better) const {
    if (at_root() || !weighs_apart_ || !better || steps_.taken() >= schedule.apart_steps_most) return false;
    return !stalls(before, bound_level_->messages.bound(), schedule.apart_steps_most - steps_.taken());
}

void Prover::try_multipliers(Incumbent& incumbent, Control& control) {
    Sweep outcome = Sweep::open;
    ++statistics_.multiplier_steps;
    const Optimised question{problem_, goal_, weighs_apart_ ? schedule.apart_trials : 1};
    const Optimised* optimised = goal_.mode == Mode::decide ? nullptr : &question;
    const std::int64_t before = bound_level_->messages.bound();
    const bool better = bound_level_->improve_multipliers(x_, node_, control, outcome, optimised);
    if (outcome == Sweep::stopped) {
        steps_.count_broken();
        return;
    }
    if (outcome == Sweep::pruned) {
        ++bound_level_->statistics.pruned;
        prune(&bound_level_->messages);
        return;
    }
    tighten(*bound_level_);
    if (better) decode(*bound_level_, incumbent, control);
    steps_.count(better);
    if (!steps_.more() && !step_pays(before, better)) leave_level();
}

void Prover::decode(const BoundLevel& bound_level, Incumbent& incumbent, Control& control) {
    if (incumbent.present()) x_ = incumbent.x;
    move_into_node();
    bound_level.messages.decode(x_);
    propose(incumbent, control);
}

void Prover::branch(Incumbent& incumbent) {
    // The last step may have removed cells of the point.
    move_into_node();
    Split cut;
    if (bound_level_ != nullptr) cut = branching_.by_deficit(bound_level_->messages, node_, x_);
    if (cut.variable < 0) cut = branching_.by_clause(node_, x_);
    if (cut.variable < 0 && bound_level_ == bounds_.collapsed() && !bounds_.full().empty()) {
        // The point is the best of the collapsed bound and still no solution: only the full rows can tell why.
        bound_level_ = &bounds_.side_for(slack_);
        phase_ = Phase::full;
        entered_level_ = false;
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
        close(incumbent);
        return;
    }
    split(cut);
}

}  // namespace treesens
