#include "provers.hpp"

#include <algorithm>

#include "certify/certifier.hpp"
#include "problem/checked.hpp"

namespace treesens {

namespace {

constexpr std::int64_t kNodesOfTrial = 50'000;

}  // namespace

Provers::Provers(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal, const Gap& gap,
                 MemoryBudget& budget, std::uint64_t seed)
    : problem_(problem), forest_(forest), clauses_(clauses), goal_(goal), gap_(gap), budget_(budget), seed_(seed) {}

void Provers::run(Turn& turn, std::int64_t node_limit, Incumbent& incumbent, LocalSearch& polisher, Control& control) {
    if (overlap_is_next(turn)) {
        if (!within_limits([&] { start_overlap(control); })) return;
        Stopwatch watch(seconds_of_proving_);
        run_alone(*overlap_, turn, turn.left, node_limit, incumbent, polisher, control);
        return;
    }
    if (!within_limits([&] { start_messages(control); })) return;
    if (bundles_now(turn) && !within_limits([&] { bundle_trees(incumbent, control); })) return;
    Stopwatch watch(seconds_of_proving_);
    const bool shares = threads_ > 1 && node_limit < 0 && turn.number >= schedule.share_from_turn;
    if (shares) settle(turn, incumbent, polisher, control);
    if (shares && messages_->settled() && !sharing_) share_tree();
    if (sharing_)
        run_shared(turn, incumbent, polisher, control);
    else
        run_alone(*messages_, turn, turn.left, node_limit, incumbent, polisher, control);
}

// What was charged for a prover that is not ready in time is given back; the search ends soon.
template <class Build>
bool Provers::within_limits(Build build) {
    const std::int64_t before = budget_.used();
    try {
        build();
    } catch (const SetupStopped&) {
        budget_.release(budget_.used() - before);
        return false;
    }
    return true;
}

// --- who is next -----------------------------------------------------------------------------------------------------

// The overlap prover is for deep trees, and for the largest difference of two points: it sharpens the bound to the last
// unit, which messages, whose numbers are rounded, do not. Of several classes a node of messages goes through all
// leaves once for each pair of classes, and a decision is often refuted by a few trees. It holds the numbers of cells
// in 16 bits.
bool Provers::wants_overlap() const {
    if (method_ == Method::messages || !fits_overlap(problem_)) return false;
    return method_ != Method::automatic || is_deep() || objective_cancels_ || decides_many_rows();
}

bool Provers::wants_messages() const {
    if (!wants_overlap() || method_ == Method::both) return true;
    return method_ == Method::automatic && (!is_deep() || problem_.leaves() <= schedule.most_for_messages);
}

// If both provers are used they take turns, overlap first and more often.
bool Provers::overlap_is_next(const Turn& turn) const {
    const std::int64_t every = method_ == Method::both ? 2 : schedule.messages_every;
    return wants_overlap() && (turn.of_provers % every != every - 1 || !wants_messages());
}

// --- the overlap prover ----------------------------------------------------------------------------------------------

void Provers::start_overlap(Control& control) {
    if (overlap_) return;
    Stopwatch watch(seconds_of_factors_);
    build_layers(control);
    overlap_ = std::make_unique<OverlapProver>(problem_, forest_, clauses_, goal_, layers_, gap_, budget_);
    overlap_->set_audit(audit_);
}

void Provers::build_layers(Control& control) {
    if (!layers_.layers.empty() && layers_goal_.mode == goal_.mode && layers_goal_.soft == goal_.soft) return;
    layers_ = build_box_layers(problem_, forest_, goal_, budget_, &control);
    layers_goal_ = goal_;
}

// --- the messages prover ---------------------------------------------------------------------------------------------

void Provers::start_messages(Control& control) {
    if (messages_) return;
    Stopwatch watch(seconds_of_factors_);
    build_sets(control);
    messages_ = std::make_unique<Prover>(problem_, forest_, clauses_, goal_, sets_, gap_, budget_);
    messages_->set_audit(audit_);
    if (previous_) messages_->warm_start(*previous_);
    previous_.reset();
}

void Provers::build_sets(Control& control) {
    if (sets_.full && sets_goal_.mode == goal_.mode && sets_goal_.soft == goal_.soft) return;
    previous_.reset();
    sets_ = build_factor_sets(problem_, forest_, goal_, budget_, 0, &control);
    sets_goal_ = goal_;
    bundled_ = false;
}

// Threads that share the prover's tree keep it.
bool Provers::bundles_now(const Turn& turn) const {
    if (bundled_ || together_ == 0 || sharing_) return false;
    return together_at_once_ || (will_bundle() && turn.number >= Turn::kRepeatFrom);
}

// A search that turns out to be long begins again with factors of several trees: its bound is tighter, and factors and
// sweeps are dearer. What has been proved and found stays.
void Provers::bundle_trees(const Incumbent& incumbent, Control& control) {
    Stopwatch watch(seconds_of_factors_);
    const std::int64_t known = upper(incumbent);
    try {
        FactorSets sets = build_factor_sets(problem_, forest_, goal_, budget_, together_, &control);
        auto prover = std::make_unique<Prover>(problem_, forest_, clauses_, goal_, sets, gap_, budget_);
        prover->set_audit(audit_);
        prover->count_from(messages_->statistics());
        prover->set_parts(parts_of(sets));
        retired_upper_ = std::min(retired_upper_, known);
        messages_ = std::move(prover);
        sets_ = std::move(sets);
    } catch (const MemoryLimit&) {
        // It goes on as it was.
    }
    // Not earlier: a run whose time ends meanwhile leaves this to the next one.
    bundled_ = true;
}

// If rows have multipliers, a part would have to find its own anew, which costs more than it brings (ADR 0016).
Parts Provers::parts_of(const FactorSets& sets) const {
    Parts parts;
    parts.at_once = parts_depth_ > 0;
    if (parts.at_once) parts.depth = parts_depth_;
    const bool has_multipliers = sets.collapsed != nullptr || sets.full->rows.size() > 1;
    if (parts.at_once || !has_multipliers) parts.together = together_;
    return parts;
}

// Whether a search begins again in parts is seen by one thread, before others join.
void Provers::settle(Turn& turn, Incumbent& incumbent, LocalSearch& polisher, Control& control) {
    while (!messages_->settled() && !messages_->finished() && turn.left > 0 && !control.paused()) {
        run_alone(*messages_, turn, std::min(turn.left, schedule.share_unsettled), -1, incumbent, polisher, control);
    }
}

void Provers::share_tree() {
    sharing_ =
        std::make_unique<WorkSharing>(problem_, forest_, goal_, sets_, gap_, budget_, *messages_, threads_, seed_);
    sharing_->set_audit(audit_);
}

void Provers::run_shared(Turn& turn, Incumbent& incumbent, LocalSearch& polisher, Control& control) {
    const std::int64_t before = sharing_->work();
    sharing_->run(turn.left, incumbent, polisher, control);
    turn.left -= (sharing_->work() - before) / threads_;
}

void Provers::run_alone(TreeSearch& prover, Turn& turn, std::int64_t work, std::int64_t node_limit,
                        Incumbent& incumbent, LocalSearch& polisher, Control& control) {
    const std::int64_t before = prover.work();
    prover.run(work, node_limit, incumbent, polisher, control);
    turn.left -= prover.work() - before;
}

// --- what is proved --------------------------------------------------------------------------------------------------

void Provers::restart() {
    sharing_.reset();
    if (messages_) previous_ = std::move(messages_);
    messages_.reset();
    overlap_.reset();
    last_upper_ = INT64_MAX;
    retired_upper_ = INT64_MAX;
    read_goal();
}

void Provers::read_goal() {
    largest_level_ = level_of_the_best();
    objective_cancels_ = goal_.mode == Mode::objective && cancel(problem_, forest_, {problem_.constraints});
}

bool Provers::finished() const {
    if (overlap_ && overlap_->finished()) return true;
    return sharing_ ? sharing_->finished() : messages_ && messages_->finished();
}

bool Provers::have_done(std::int64_t nodes) const {
    return (messages_ && messages_->has_done(nodes)) || (overlap_ && overlap_->has_done(nodes));
}

std::int64_t Provers::most_nodes() const {
    return std::max(messages_ ? messages_->statistics().nodes : 0, overlap_ ? overlap_->statistics().nodes : 0);
}

std::int64_t Provers::upper(const Incumbent& incumbent) const {
    std::int64_t bound = proved_upper();
    if (incumbent.present() && incumbent.score.hard >= 0) bound = std::max(bound, incumbent.score.soft);
    return std::min(largest_level_, bound);
}

std::int64_t Provers::proved_upper() const {
    std::int64_t bound = INT64_MAX;
    if (sharing_)
        bound = sharing_->proved_upper();
    else if (messages_)
        bound = std::min(messages_->proved_upper(), messages_->root_upper());
    if (overlap_) bound = std::min({bound, overlap_->proved_upper(), overlap_->root_upper()});
    return std::min(bound, retired_upper_);
}

void Provers::check_bounds(const Incumbent& incumbent) {
    const bool reached = incumbent.present() && incumbent.score.hard >= 0;
    ensure(!reached || incumbent.score.soft <= largest_level_,
           "a value was reached that lies outside the range of the rows");
    if (!messages_ && !overlap_) return;
    const std::int64_t upper = proved_upper();
    ensure(!reached || incumbent.score.soft <= upper, "a value was reached that is better than the proved bound");
    ensure(upper <= last_upper_, "a proved bound has become weaker");
    last_upper_ = upper;
}

// Every tree at its best on its own, every variable at its best cell: what is known before there are factors, and if
// there is no memory for them. The least over the soft rows, because all of them have to reach the level.
std::int64_t Provers::level_of_the_best() const {
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

// What the boxes of deep trees have decided they prove again. Otherwise they have some nodes, and the messages follow
// if they take turns with them. Boxes leave out what clauses exclude, a missing value by itself; whoever checks a proof
// has it together with other cells, and would need it cut off.
Proof Provers::certify(std::int64_t level, std::int64_t node_limit, Control& control) {
    Proof late;
    late.reason = "time";
    if (is_deep() && wants_overlap() && clauses_.none()) {
        if (!within_limits([&] { build_layers(control); })) return late;
        const bool decided = overlap_ && overlap_->finished();
        const std::int64_t nodes = decided || !wants_messages() ? node_limit : std::min(node_limit, kNodesOfTrial);
        Proof proof = certify_by_overlap(problem_, forest_, clauses_, goal_, layers_, level, nodes, budget_, control);
        if (proof.complete || control.expired() || !wants_messages()) return proof;
    }
    if (!within_limits([&] { build_sets(control); })) return late;
    // Independent checkers only know the factors of single trees.
    FactorSets sets = sets_;
    const auto build_single = [&] { sets = build_factor_sets(problem_, forest_, goal_, budget_, 0, &control); };
    if (bundled_ && !within_limits(build_single)) return late;
    const BoundStack* start = messages_ ? &messages_->bounds() : nullptr;
    return certify_by_messages(problem_, forest_, clauses_, goal_, sets, start, level, node_limit, budget_, control);
}

// --- what they did ---------------------------------------------------------------------------------------------------

std::vector<const Prover*> Provers::all_messages() const {
    std::vector<const Prover*> all;
    if (sharing_) all = sharing_->helpers();
    if (messages_) all.insert(all.begin(), messages_.get());
    return all;
}

ProverStatistics Provers::statistics() const {
    ProverStatistics sum;
    for (const Prover* p : all_messages()) sum.add(p->statistics());
    if (overlap_) sum.add(overlap_->statistics());
    return sum;
}

std::int64_t Provers::audited() const {
    std::int64_t sum = 0;
    for (const Prover* p : all_messages()) sum += p->audited();
    if (overlap_) sum += overlap_->audited();
    return sum;
}

std::int64_t Provers::factor_entries() const {
    return (sets_.collapsed ? sets_.collapsed->entries() : 0) + (sets_.full ? sets_.full->entries() : 0);
}

}  // namespace treesens
