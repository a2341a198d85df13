#include "search.hpp"

#include <algorithm>
#include <new>

#include "problem/checked.hpp"
#include "problem/schedule.hpp"

namespace treesens {

// The whole search. A contradiction among bounds is an internal error: then nothing is claimed.
void Search::take_turns(std::int64_t node_limit) {
    const std::int64_t last_node = node_limit < 0 ? -1 : provers_.most_nodes() + node_limit;
    for (;;) {
        provers_.check_bounds(incumbent_);
        if (decided()) return;
        if (out_of_time()) return;
        if (out_of_nodes(last_node)) return;
        if (turn_.is_local()) {
            search_locally();
        } else {
            // Without a node to spend no prover is set up, which may take minutes.
            if (last_node >= 0 && provers_.most_nodes() >= last_node) {
                reason_ = Reason::nodes;
                return;
            }
            provers_.run(turn_, last_node, incumbent_, local_, control_);
        }
        if (turn_is_over()) next_turn();
    }
}

// A witness decides, and so does a tree without open nodes.
bool Search::decided() {
    const bool decides = goal_.mode == Mode::decide;
    if (is_witness() && (decides || provers_.finished())) {
        status_ = decides ? Status::witness : Status::optimal;
        return true;
    }
    if (!provers_.finished()) return false;
    // Maximising the slack has an answer below zero as well, as long as the hard rows can be met.
    const bool below_zero = goal_.mode == Mode::slack && incumbent_.present() && incumbent_.score.hard >= 0;
    status_ = below_zero ? Status::optimal : Status::infeasible;
    if (status_ == Status::infeasible) infeasible_.push_back(goal_.bound);
    return true;
}

bool Search::out_of_time() {
    if (!control_.paused()) return false;
    reason_ = control_.stop_requested() ? Reason::stopped : Reason::time;
    return true;
}

bool Search::out_of_nodes(std::int64_t last_node) {
    if (!provers_.have_done(last_node)) return false;
    reason_ = Reason::nodes;
    return true;
}

void Search::search_locally() {
    Stopwatch watch(seconds_.local);
    const std::int64_t before = local_.work();
    const Score old = incumbent_.score;
    local_.run(turn_.left, goal_, incumbent_, control_);
    turn_.left -= local_.work() - before;
    // An optimum can always improve. If nothing better turns up, try less often.
    if (old < incumbent_.score)
        patience_ = 1;
    else if (turn_.number > Turn::kRepeatFrom && turn_.left <= 0 && goal_.mode != Mode::decide)
        patience_ = std::min(2 * patience_, schedule.local_patience);
}

// A turn cut short by the slice goes on in the next run.
bool Search::turn_is_over() {
    return !control_.paused() || turn_.left <= 0;
}

void Search::next_turn() {
    if (!turn_.is_local()) ++turn_.of_provers;
    turn_.number = turn_.number == Turn::kLast ? Turn::kRepeatFrom : turn_.number + 1;
    turn_.left = turn_work(turn_.number);
    if (turn_.is_local()) choose_region();
}

// The second turn of the local search, and then every second one, or every fourth if it raises a sum, stays within the
// node that the overlap prover is at. If some rows hold only within a small part of the space, the prover goes there
// first, and a search from anywhere does not. One that raises a sum seldom needs it (ADR 0035).
void Search::choose_region() {
    const OverlapProver* overlap = provers_.overlap();
    const bool has_node =
        schedule.stay_in_node != 0 && goal_.mode == Mode::decide && overlap != nullptr && !overlap->finished();
    in_region_ = has_node && turns_anywhere_ >= (local_.sums() ? kAnywhereOfSums : 1);
    turns_anywhere_ = in_region_ ? 0 : turns_anywhere_ + 1;
    if (in_region_)
        local_.stay_within(overlap->node());
    else
        local_.stay_within(std::nullopt);
}

std::int64_t Search::turn_work(int turn) const {
    // The last two repeat.
    constexpr std::int64_t Schedule::* kTurns[] = {&Schedule::local_turn, &Schedule::prove_turn,
                                                   &Schedule::local_turn_2, &Schedule::prove_turn_2,
                                                   &Schedule::local_turn_3};
    // For an optimum whose trees share factors: earlier bounds are weak, and local search has nearly always found the
    // best in its first turn. Measured (benchmarks/bounds.md).
    constexpr std::int64_t Schedule::* kOptimumTurns[] = {
        &Schedule::optimum_local_turn, &Schedule::optimum_prove_turn, &Schedule::optimum_local_turn_2,
        &Schedule::optimum_prove_turn_2, &Schedule::optimum_local_turn_3};
    // Local search solves such decisions, given time: the first turns decide nothing.
    constexpr std::int64_t Schedule::* kSumTurns[] = {&Schedule::local_turn, &Schedule::prove_turn,
                                                      &Schedule::sum_local_turn_2, &Schedule::sum_prove_turn_2,
                                                      &Schedule::sum_local_turn_3};
    const bool sums = local_.sums();
    // In deep trees a move is spread over memory, and its work takes several times as long.
    constexpr std::int64_t kDeepLocal = 2;
    const std::int64_t work = schedule.*(sums ? kSumTurns : provers_.will_bundle() ? kOptimumTurns : kTurns)[turn];
    if (turn % 2 == 1) return work * (turn >= Turn::kRepeatFrom ? patience_ : 1);
    // On a small problem it has seen everything long before; the prover decides such problems at once.
    const std::int64_t size = static_cast<std::int64_t>(forest_.nodes.size()) + problem_.cells();
    const bool halved = provers_.wants_overlap() && provers_.is_deep() && turn > 0 && !sums;
    return std::min(work / (halved ? kDeepLocal : 1), schedule.local_work_per_node * size);
}

// --- one run, one question -------------------------------------------------------------------------------------------

void Search::run(double slice, double seconds, std::int64_t node_limit) {
    reason_ = Reason::none;
    control_.start(slice, seconds);
    if (status_ != Status::open) return;
    if (!fault_.empty()) {
        reason_ = Reason::internal;
        return;
    }
    if (!possible_) {
        status_ = Status::infeasible;
        return;
    }
    if (goal_.mode == Mode::decide) {
        // A proof at smaller bounds answers all larger ones.
        for (const auto& proved : infeasible_) {
            if (std::equal(proved.begin(), proved.end(), goal_.bound.begin(), std::less_equal<>())) {
                status_ = Status::infeasible;
                return;
            }
        }
    }
    try {
        take_turns(node_limit);
    } catch (const MemoryLimit&) {
        reason_ = Reason::memory;
    } catch (const std::bad_alloc&) {
        reason_ = Reason::memory;
    } catch (const InternalError& error) {
        status_ = Status::open;
        reason_ = Reason::internal;
        fault_ = error.what();
    }
}

void Search::reset(std::vector<std::int64_t> bound, Mode mode) {
    validate_bounds(problem_, bound);
    if (mode == Mode::objective && !problem_.has_objective) throw std::invalid_argument("the problem has no objective");
    if (incumbent_.present()) pool_.push_back(incumbent_.x);
    if (pool_.size() > 64) pool_.erase(pool_.begin());
    goal_ = Goal(problem_, mode, std::move(bound));
    local_.set_goal(goal_);
    in_region_ = false;
    turns_anywhere_ = kAnywhereOfSums;
    incumbent_ = Incumbent();
    std::vector<std::int64_t> slack(problem_.rows);
    for (const auto& x : pool_) {
        evaluate(problem_, forest_, goal_.bound, x.data(), slack.data());
        incumbent_.offer(goal_.score(problem_, slack.data()), x);
    }
    provers_.restart();
    status_ = Status::open;
    if (!fault_.empty()) infeasible_.clear();
    fault_.clear();
    reason_ = Reason::none;
    patience_ = 1;
    turn_ = Turn();
    turn_.left = turn_work(0);
}

Fixing Search::fix(std::int64_t work, bool probe) {
    MemoryBudget budget(budget_.room() == INT64_MAX ? -1 : budget_.room());
    control_.start(-1, -1);
    try {
        return Fixer(problem_, forest_, clauses_, goal_.bound, work, probe, budget, &control_).run(control_);
    } catch (const SetupStopped&) {
        Fixing nothing;
        nothing.cells.assign(problem_.cells(), 1);
        nothing.leaves.assign(problem_.leaves(), 1);
        return nothing;
    }
}

Proof Search::certify(std::int64_t level, double seconds, std::int64_t node_limit) {
    control_.start(-1, seconds);
    Proof failed;
    try {
        return provers_.certify(level, node_limit, control_);
    } catch (const MemoryLimit&) {
        failed.reason = "memory";
    } catch (const std::bad_alloc&) {
        failed.reason = "memory";
    } catch (const InternalError& error) {
        failed.reason = error.what();
    }
    return failed;
}

std::vector<std::int64_t> Search::slacks() const {
    std::vector<std::int64_t> slack(problem_.rows, 0);
    if (incumbent_.present()) evaluate(problem_, forest_, goal_.bound, incumbent_.x.data(), slack.data());
    return slack;
}

std::int64_t Search::upper() const {
    if (status_ == Status::infeasible) return goal_.mode == Mode::decide ? -1 : INT64_MIN;
    return fault_.empty() ? provers_.upper(incumbent_) : provers_.largest_level();
}

Seconds Search::seconds() const {
    Seconds all = seconds_;
    all.factors = provers_.seconds_of_factors();
    all.prove = provers_.seconds_of_proving();
    return all;
}

// --- what it is made of ----------------------------------------------------------------------------------------------

namespace {

Problem checked(Problem problem, const std::optional<Forest>& forest, MemoryBudget& budget) {
    std::size_t bytes = problem.literals.size() * 40 + problem.coefficient_value.size() * 40 +
                        problem.unary.size() * 8 + problem.clause_literals.size() * 24 + problem.hints.size() * 4;
    if (forest) {
        validate(problem, *forest);
        bytes += forest->nodes.size() * sizeof(TreeNode) + forest->value.size() * 8;
    } else {
        validate(problem);
    }
    budget.charge(static_cast<std::int64_t>(bytes));
    return problem;
}

}  // namespace

Search::Search(Problem problem, std::optional<Forest> forest, Mode mode, std::uint64_t seed, std::int64_t max_bytes)
    : budget_(max_bytes),
      problem_(checked(std::move(problem), forest, budget_)),
      forest_(forest ? std::move(*forest) : build_forest(problem_)),
      goal_(problem_, mode, problem_.bound),
      clauses_(problem_),
      local_(problem_, forest_, clauses_, seed),
      provers_(problem_, forest_, clauses_, goal_, gap_, budget_, seed) {
    turn_.left = turn_work(0);
    drop_coefficients(problem_);
    local_.set_goal(goal_);
    const Domains all(problem_);
    for (std::int32_t v = 0; v < problem_.variables(); ++v) possible_ = possible_ && !all.empty(v);
    provers_.read_goal();
}

}  // namespace treesens
