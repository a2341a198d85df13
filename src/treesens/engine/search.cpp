#include "search.hpp"

#include <algorithm>
#include <new>

#include "certify/certifier.hpp"
#include "problem/checked.hpp"
#include "problem/schedule.hpp"

namespace treesens {

namespace {

// The turns: local search on even ones, prover on odd ones, the last two for ever. Units of work as in
// problem/limits.hpp.
constexpr std::int64_t Schedule::* kTurns[] = {&Schedule::local_turn, &Schedule::prove_turn, &Schedule::local_turn_2,
                                               &Schedule::prove_turn_2, &Schedule::local_turn_3};
// Those of an optimum for which trees share factors: what is proved before that is not worth much, and local search
// has found the best in its first turn nearly always. Measured (benchmarks/bounds.md).
constexpr std::int64_t Schedule::* kOptimumTurns[] = {&Schedule::optimum_local_turn, &Schedule::optimum_prove_turn,
                                                      &Schedule::optimum_local_turn_2, &Schedule::optimum_prove_turn_2,
                                                      &Schedule::optimum_local_turn_3};
constexpr int kLastTurn = 4;
constexpr int kRepeatFrom = 3;
constexpr std::int64_t kDeepLocal = 2;

class Stopwatch {
public:
    explicit Stopwatch(double& total) : total_(total), start_(Control::Clock::now()) {}
    ~Stopwatch() { total_ += std::chrono::duration<double>(Control::Clock::now() - start_).count(); }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

private:
    double& total_;
    Control::Clock::time_point start_;
};

Problem checked(Problem problem, MemoryBudget& budget) {
    validate(problem);
    budget.charge(static_cast<std::int64_t>(problem.literals.size() * 40 + problem.coefficient_value.size() * 40 +
                                            problem.unary.size() * 8 + problem.clause_literals.size() * 24 +
                                            problem.hints.size() * 4));
    return problem;
}

Problem checked(Problem problem, const Forest& forest, MemoryBudget& budget) {
    validate(problem, forest);
    budget.charge(static_cast<std::int64_t>(forest.nodes.size() * sizeof(TreeNode) + forest.value.size() * 8 +
                                            problem.unary.size() * 8 + problem.clause_literals.size() * 24 +
                                            problem.hints.size() * 4));
    return problem;
}

}  // namespace

Search::Search(Problem problem, Mode mode, std::uint64_t seed, std::int64_t max_bytes)
    : budget_(max_bytes),
      problem_(checked(std::move(problem), budget_)),
      forest_(build_forest(problem_)),
      goal_(problem_, mode, problem_.bound),
      clauses_(problem_),
      local_(problem_, forest_, clauses_, seed),
      seed_(seed),
      turn_left_(turn_work(0)) {
    drop_coefficients(problem_);
    begin();
}

Search::Search(Problem problem, Forest forest, Mode mode, std::uint64_t seed, std::int64_t max_bytes)
    : budget_(max_bytes),
      problem_(checked(std::move(problem), forest, budget_)),
      forest_(std::move(forest)),
      goal_(problem_, mode, problem_.bound),
      clauses_(problem_),
      local_(problem_, forest_, clauses_, seed),
      seed_(seed),
      turn_left_(turn_work(0)) {
    begin();
}

void Search::begin() {
    local_.set_goal(goal_);
    const Domains all(problem_);
    for (std::int32_t v = 0; v < problem_.variables(); ++v) possible_ = possible_ && !all.empty(v);
    largest_level_ = largest_level();
    set_objective_cancels();
}

void Search::reset(std::vector<std::int64_t> bound, Mode mode) {
    validate_bounds(problem_, bound);
    if (mode == Mode::objective && !problem_.has_objective) throw std::invalid_argument("the problem has no objective");
    if (incumbent_.present()) pool_.push_back(incumbent_.x);
    if (pool_.size() > 64) pool_.erase(pool_.begin());
    goal_ = Goal(problem_, mode, std::move(bound));
    local_.set_goal(goal_);
    incumbent_ = Incumbent();
    std::vector<std::int64_t> slack(problem_.rows);
    for (const auto& x : pool_) {
        evaluate(problem_, forest_, goal_.bound, x.data(), slack.data());
        incumbent_.offer(goal_.score(problem_, slack.data()), x);
    }
    sharing_.reset();
    if (prover_) previous_ = std::move(prover_);
    prover_.reset();
    overlap_.reset();
    prover_turns_ = 0;
    status_ = Status::open;
    if (!fault_.empty()) infeasible_.clear();
    fault_.clear();
    reason_ = Reason::none;
    largest_level_ = largest_level();
    set_objective_cancels();
    last_upper_ = INT64_MAX;
    retired_upper_ = INT64_MAX;
    patience_ = 1;
    turn_ = 0;
    turn_left_ = turn_work(0);
}

Fixing Search::fix(std::int64_t work, bool probe) {
    MemoryBudget budget(budget_.room() == INT64_MAX ? -1 : budget_.room());
    control_.start(-1, -1);
    return Fixer(problem_, forest_, clauses_, goal_.bound, work, probe, budget).run(control_);
}

Proof Search::certify(std::int64_t level, double seconds, std::int64_t node_limit) {
    control_.start(-1, seconds);
    Proof failed;
    try {
        build_sets();
        // Whoever checks a proof knows the factors of single trees alone.
        const FactorSets sets = bundled_ ? build_factor_sets(problem_, forest_, goal_, budget_) : sets_;
        Certifier certifier(problem_, forest_, clauses_, goal_, sets, level, budget_);
        if (prover_) certifier.warm_start(prover_->bounds());
        return certifier.run(node_limit, control_);
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
    if (!fault_.empty()) return largest_level_;
    // Every point but those that a prover has passed over for the best one is within the bound.
    std::int64_t bound = proved_upper();
    if (incumbent_.present() && incumbent_.score.hard >= 0) bound = std::max(bound, incumbent_.score.soft);
    return std::min(largest_level_, bound);
}

std::int64_t Search::proved_upper() const {
    std::int64_t bound = INT64_MAX;
    if (sharing_)
        bound = sharing_->proved_upper();
    else if (prover_)
        bound = std::min(prover_->proved_upper(), prover_->root_upper());
    if (overlap_) bound = std::min({bound, overlap_->proved_upper(), overlap_->root_upper()});
    return std::min(bound, retired_upper_);
}

// What contradicts itself is not believed: a bound below a value that was reached, or one that rises.
void Search::check_bounds() {
    const bool reached = incumbent_.present() && incumbent_.score.hard >= 0;
    ensure(!reached || incumbent_.score.soft <= largest_level_,
           "a value was reached that lies outside the range of the rows");
    if (!prover_ && !overlap_) return;
    const std::int64_t upper = proved_upper();
    ensure(!reached || incumbent_.score.soft <= upper, "a value was reached that is better than the proved bound");
    ensure(upper <= last_upper_, "a proved bound has become weaker");
    last_upper_ = upper;
}

std::int64_t Search::audited() const {
    std::int64_t sum = 0;
    for (const Prover* p : provers()) sum += p->audited();
    if (overlap_) sum += overlap_->audited();
    return sum;
}

// Every tree at its best on its own, every variable at its best cell: what is known before there are factors, and where
// there is no memory for them. The least over the soft rows, because all of them have to reach the level.
std::int64_t Search::largest_level() const {
    std::int64_t level = INT64_MAX;
    for (std::int32_t r = 0; r < problem_.rows; ++r) {
        if (!goal_.counts(problem_, r) || !goal_.soft[r]) continue;
        std::int64_t sum = -goal_.bound[r];
        for (std::int32_t g = 0; g < problem_.groups(); ++g) {
            const auto rows = forest_.group_rows.begin();
            const auto at = std::find(rows + forest_.row_offset[g], rows + forest_.row_offset[g + 1], r);
            if (at == rows + forest_.row_offset[g + 1]) continue;
            const std::int64_t place = at - rows - forest_.row_offset[g];
            std::int64_t best = INT64_MIN;
            for (std::int64_t l = problem_.group_offset[g]; l < problem_.group_offset[g + 1]; ++l) {
                best = std::max(best, forest_.values(problem_, g, narrow<std::int32_t>(l))[place]);
            }
            sum += best;
        }
        for (std::int32_t v = 0; v < problem_.variables() && problem_.has_unary; ++v) {
            std::int64_t best = INT64_MIN;
            for (Cell k = 0; k < problem_.size[v]; ++k) best = std::max(best, problem_.unary_at(r, v, k));
            sum += best;
        }
        level = std::min(level, sum);
    }
    return level;
}

std::int64_t Search::factor_entries() const {
    return (sets_.collapsed ? sets_.collapsed->entries() : 0) + (sets_.full ? sets_.full->entries() : 0);
}

void Search::build_sets() {
    if (sets_.full && sets_goal_.mode == goal_.mode && sets_goal_.soft == goal_.soft) return;
    previous_.reset();
    sets_ = build_factor_sets(problem_, forest_, goal_, budget_);
    sets_goal_ = goal_;
    bundled_ = false;
}

void Search::start_prover() {
    if (prover_) return;
    Stopwatch watch(seconds_.factors);
    build_sets();
    prover_ = std::make_unique<Prover>(problem_, forest_, clauses_, goal_, sets_, gap_, budget_);
    prover_->set_audit(audit_);
    if (previous_) prover_->warm_start(*previous_);
    previous_.reset();
}

// A search that turns out to be long begins again with factors of several trees: its bound is tighter, and factors and
// sweeps are dearer. What has been proved and found stays.
void Search::bundle_trees() {
    // Whoever shares the tree of the prover keeps it.
    if (bundled_ || together_ == 0 || sharing_) return;
    if (!together_at_once_ && !(will_bundle() && turn_ >= kRepeatFrom)) return;
    bundled_ = true;
    Stopwatch watch(seconds_.factors);
    const std::int64_t known = upper();
    try {
        FactorSets sets = build_factor_sets(problem_, forest_, goal_, budget_, together_);
        auto prover = std::make_unique<Prover>(problem_, forest_, clauses_, goal_, sets, gap_, budget_);
        prover->set_audit(audit_);
        prover->count_from(prover_->statistics());
        prover->set_parts(parts_of(sets));
        retired_upper_ = std::min(retired_upper_, known);
        prover_ = std::move(prover);
        sets_ = std::move(sets);
    } catch (const MemoryLimit&) {
        // It goes on as it was.
    }
}

// Where rows have multipliers, a part would have to find its own anew, which costs more than it brings (ADR 0016).
Parts Search::parts_of(const FactorSets& sets) const {
    Parts parts;
    parts.at_once = parts_depth_ > 0;
    if (parts.at_once) parts.depth = parts_depth_;
    const bool has_multipliers = sets.collapsed != nullptr || sets.full->rows.size() > 1;
    if (parts.at_once || !has_multipliers) parts.together = together_;
    return parts;
}

// The overlap prover is for deep trees, and for the largest difference of two points: it sharpens the bound to the last
// unit, which messages, whose numbers are rounded, do not. It holds the numbers of cells in 16 bits.
bool Search::wants_overlap() const {
    if (method_ == Method::messages || !fits_overlap(problem_)) return false;
    return method_ != Method::automatic || is_deep() || objective_cancels_;
}

bool Search::wants_messages() const {
    if (!wants_overlap() || method_ == Method::both) return true;
    return method_ == Method::automatic && (!is_deep() || problem_.leaves() <= schedule.most_for_messages);
}

// Where both provers are at work they take turns, overlap first and more often.
bool Search::overlap_is_next() const {
    const std::int64_t every = method_ == Method::both ? 2 : schedule.messages_every;
    return wants_overlap() && (prover_turns_ % every != every - 1 || !wants_messages());
}

bool Search::proved() const {
    if (overlap_ && overlap_->finished()) return true;
    return sharing_ ? sharing_->finished() : prover_ && prover_->finished();
}

void Search::set_objective_cancels() {
    objective_cancels_ = goal_.mode == Mode::objective && cancel(problem_, forest_, {problem_.constraints});
}

void Search::start_overlap() {
    if (overlap_) return;
    Stopwatch watch(seconds_.factors);
    if (layers_.layers.empty() || layers_goal_.mode != goal_.mode || layers_goal_.soft != goal_.soft) {
        layers_ = build_box_layers(problem_, forest_, goal_, budget_);
        layers_goal_ = goal_;
    }
    overlap_ = std::make_unique<OverlapProver>(problem_, forest_, clauses_, goal_, layers_, gap_, budget_);
    overlap_->set_audit(audit_);
}

void Search::prove_with_overlap(std::int64_t node_limit) {
    start_overlap();
    Stopwatch watch(seconds_.prove);
    const std::int64_t before = overlap_->work();
    overlap_->run(turn_left_, node_limit, incumbent_, local_, control_);
    turn_left_ -= overlap_->work() - before;
}

bool Search::done() {
    if (goal_.mode == Mode::decide && is_witness()) {
        status_ = Status::witness;
        return true;
    }
    if (proved()) {
        if (is_witness()) status_ = goal_.mode == Mode::decide ? Status::witness : Status::optimal;
        // Maximising the slack has an answer below zero as well, as long as the hard rows can be met.
        else if (goal_.mode == Mode::slack && incumbent_.present() && incumbent_.score.hard >= 0)
            status_ = Status::optimal;
        else
            status_ = Status::infeasible;
        if (status_ == Status::infeasible) infeasible_.push_back(goal_.bound);
        return true;
    }
    return false;
}

std::int64_t Search::turn_work(int turn) const {
    const std::int64_t work = schedule.*(will_bundle() ? kOptimumTurns : kTurns)[turn];
    if (turn % 2 == 1) return work * (turn >= kRepeatFrom ? patience_ : 1);
    const std::int64_t size = static_cast<std::int64_t>(forest_.nodes.size()) + problem_.cells();
    // In deep trees a move is spread over memory, and its work takes several times as long.
    // On a small problem it has seen everything long before; the prover decides such problems at once.
    return std::min(work / (wants_overlap() && is_deep() && turn > 0 ? kDeepLocal : 1),
                    schedule.local_work_per_node * size);
}

void Search::local_phase() {
    Stopwatch watch(seconds_.local);
    const std::int64_t before = local_.work();
    const Score old = incumbent_.score;
    local_.run(turn_left_, goal_, incumbent_, control_);
    turn_left_ -= local_.work() - before;
    // While maximising there is always something to look for. If nothing better turns up, look less often.
    if (old < incumbent_.score)
        patience_ = 1;
    else if (turn_ > kRepeatFrom && turn_left_ <= 0 && goal_.mode != Mode::decide)
        patience_ = std::min(2 * patience_, schedule.local_patience);
}

void Search::prove_phase(std::int64_t node_limit) {
    if (overlap_is_next()) {
        prove_with_overlap(node_limit);
        return;
    }
    start_prover();
    bundle_trees();
    Stopwatch watch(seconds_.prove);
    const bool shares = threads_ > 1 && node_limit < 0 && turn_ >= schedule.share_from_turn;
    // Whether a search begins again is seen by one prover.
    while (shares && !prover_->settled() && !prover_->finished() && turn_left_ > 0 && !control_.paused()) {
        const std::int64_t before = prover_->work();
        prover_->run(std::min(turn_left_, schedule.share_unsettled), -1, incumbent_, local_, control_);
        turn_left_ -= prover_->work() - before;
    }
    if (shares && prover_->settled() && !sharing_) {
        sharing_ =
            std::make_unique<WorkSharing>(problem_, forest_, goal_, sets_, gap_, budget_, *prover_, threads_, seed_);
        sharing_->set_audit(audit_);
    }
    if (sharing_) {
        const std::int64_t before = sharing_->work();
        sharing_->run(turn_left_, incumbent_, local_, control_);
        turn_left_ -= (sharing_->work() - before) / threads_;
        return;
    }
    const std::int64_t before = prover_->work();
    prover_->run(turn_left_, node_limit, incumbent_, local_, control_);
    turn_left_ -= prover_->work() - before;
}

ProverStatistics Search::statistics() const {
    ProverStatistics sum;
    for (const Prover* p : provers()) {
        const ProverStatistics& n = p->statistics();
        sum.nodes += n.nodes;
        sum.closed += n.closed;
        sum.pruned_by_clauses += n.pruned_by_clauses;
        sum.multiplier_steps += n.multiplier_steps;
        sum.parts += n.parts;
        sum.deepest = std::max(sum.deepest, n.deepest);
    }
    if (overlap_) {
        const ProverStatistics& n = overlap_->statistics();
        sum.nodes += n.nodes;
        sum.closed += n.closed;
        sum.pruned_by_clauses += n.pruned_by_clauses;
        sum.deepest = std::max(sum.deepest, n.deepest);
    }
    return sum;
}

std::vector<const Prover*> Search::provers() const {
    std::vector<const Prover*> all;
    if (sharing_) all = sharing_->helpers();
    if (prover_) all.insert(all.begin(), prover_.get());
    return all;
}

void Search::next_turn() {
    prover_turns_ += turn_ % 2;
    turn_ = turn_ == kLastTurn ? kRepeatFrom : turn_ + 1;
    turn_left_ = turn_work(turn_);
}

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
        turns(node_limit);
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

void Search::turns(std::int64_t node_limit) {
    const std::int64_t before =
        std::max(prover_ ? prover_->statistics().nodes : 0, overlap_ ? overlap_->statistics().nodes : 0);
    const std::int64_t last_node = node_limit < 0 ? -1 : before + node_limit;
    for (;;) {
        check_bounds();
        if (done()) return;
        if (control_.paused()) {
            reason_ = control_.stop_requested() ? Reason::stopped : Reason::time;
            return;
        }
        if ((prover_ && prover_->has_done(last_node)) || (overlap_ && overlap_->has_done(last_node))) {
            reason_ = Reason::nodes;
            return;
        }
        if (turn_ % 2 == 0)
            local_phase();
        else
            prove_phase(last_node);
        // A turn cut short by the slice goes on in the next run.
        if (!control_.paused() || turn_left_ <= 0) next_turn();
    }
}

}  // namespace treesens
