#include "prove/reduced_cost_fixing.hpp"

#include <algorithm>

namespace treesens {

namespace {

constexpr int kSweeps = 60;  // of one bound_level in a row
constexpr int kSteps = 40;   // of the multipliers
constexpr int kProbeSweeps = 4;
constexpr int kRounds = 8;
// Pairs of a leaf and an entry compared at the end; larger factors keep their leaves.
constexpr std::int64_t kLargestComparison = 4'000'000;
// Maximum share of the work for all comparisons.
constexpr std::int64_t kComparisonShare = 4;

}  // namespace

Fixer::Fixer(const Problem& problem, const Forest& forest, Clauses& clauses, std::vector<std::int64_t> bound,
             std::int64_t work, bool probe, MemoryBudget& budget, Control* control)
    : problem_(problem),
      clauses_(clauses),
      goal_(problem, Mode::decide, std::move(bound)),
      work_(work),
      probe_(probe),
      domains_(problem),
      sets_(build_factor_sets(problem, forest, goal_, budget, 0, control)),
      bounds_(problem, goal_, sets_, BoundStack::Full::one, budget) {}

std::int64_t Fixer::left() const {
    std::int64_t sum = 0;
    for (std::int32_t v = 0; v < problem_.variables(); ++v) sum += domains_.count(v);
    return sum;
}

bool Fixer::propagate() {
    changed_.clear();
    return clauses_.propagate(domains_, changed_);
}

Fixing Fixer::run(Control& control) {
    bool possible = propagate();
    for (std::int32_t v = 0; v < problem_.variables(); ++v) possible = possible && !domains_.empty(v);
    for (int round = 0; possible && round < kRounds && !exhausted(control); ++round) {
        const std::int64_t before = left();
        for (const auto& bound_level : bounds_.levels()) possible = possible && tighten(*bound_level, control);
        // The first bound_level is the cheaper one; probing the other as well refuted nothing more.
        if (possible && probe_ && !bounds_.levels().empty()) possible = probe(*bounds_.levels().front(), control);
        possible = possible && propagate();
        if (left() == before) break;
    }
    result_.infeasible = !possible;
    result_.cells.assign(problem_.cells(), 0);
    result_.leaves.assign(problem_.leaves(), 1);
    if (!possible) return result_;
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        for (Cell k = 0; k < problem_.size[v]; ++k) result_.cells[problem_.cell_offset[v] + k] = domains_.has(v, k);
    }
    for (const auto& bound_level : bounds_.levels()) {
        if (bound_level->loaded >= 0) mark_leaves(*bound_level, result_.leaves, control);
    }
    return result_;
}

bool Fixer::tighten(BoundLevel& bound_level, Control& control) {
    if (bound_level.loaded < 0) bound_level.messages.reset(domains_, false);
    bound_level.loaded = 0;
    bound_level.messages.sync(domains_);
    return sweep(bound_level, control) &&
           (bound_level.messages.set().rows.size() < 2 || step_multipliers(bound_level, control));
}

bool Fixer::sweep(BoundLevel& bound_level, Control& control) {
    std::int64_t last = bound_level.messages.bound();
    for (int i = 0; i < kSweeps; ++i) {
        if (last < 0) return false;
        bound_level.messages.drop_hopeless();
        const Sweep outcome = bound_level.messages.sweep(i % 2 == 0, domains_, control);
        ++result_.sweeps;
        if (outcome != Sweep::open) return outcome == Sweep::stopped;
        const std::int64_t bound = bound_level.messages.bound();
        if (stalls(last, bound, kRootPatience) || exhausted(control)) break;
        last = bound;
    }
    bound_level.messages.drop_hopeless();
    return true;
}

bool Fixer::step_multipliers(BoundLevel& bound_level, Control& control) {
    std::vector<Cell> x(problem_.variables(), 0);
    MultiplierSteps steps(kSteps);
    while (steps.more() && !exhausted(control)) {
        for (std::int32_t v = 0; v < problem_.variables(); ++v) {
            if (!domains_.has(v, x[v])) x[v] = domains_.nearest(v, x[v]);
        }
        bound_level.messages.decode(x);
        Sweep outcome = Sweep::open;
        const bool better = bound_level.improve_multipliers(x, domains_, control, outcome);
        if (outcome != Sweep::open) return outcome == Sweep::stopped;
        bound_level.messages.sync(domains_);
        if (bound_level.messages.bound() < 0) return false;
        bound_level.messages.drop_hopeless();
        steps.count(better);
    }
    return true;
}

// Whether the bound over `part`, a subset of the domains, falls below zero within a few sweeps. Leaves the messages as
// they were.
bool Fixer::refuted(BoundLevel& bound_level, Domains part, Control& control) {
    ++result_.probes;
    changed_.clear();
    if (!clauses_.propagate(part, changed_)) return true;
    Saved saved;
    bound_level.messages.save(saved);
    bound_level.messages.sync(part);
    bool pruned = bound_level.messages.bound() < 0;
    for (int i = 0; i < kProbeSweeps && !pruned; ++i) {
        const Sweep outcome = bound_level.messages.sweep(i % 2 == 0, part, control);
        if (outcome == Sweep::stopped) break;
        pruned = outcome == Sweep::pruned;
    }
    bound_level.messages.restore(saved);
    return pruned;
}

bool Fixer::probe(BoundLevel& bound_level, Control& control) {
    bound_level.messages.sync(domains_);
    for (std::int32_t v = 0; v < problem_.variables() && !exhausted(control); ++v) {
        if (!probe_end(bound_level, v, true, control) || !probe_end(bound_level, v, false, control)) return false;
    }
    return true;
}

// Removes cells at one end of a domain, halving the run that is tried while it is not refuted.
bool Fixer::probe_end(BoundLevel& bound_level, std::int32_t v, bool low, Control& control) {
    std::int32_t count = (domains_.count(v) + 1) / 2;
    while (count > 0 && domains_.count(v) > 1 && !exhausted(control)) {
        const Cell first = domains_.first(v);
        const Cell last = domains_.last(v);
        Cell cut = low ? first : last;
        for (std::int32_t i = 1; i < count; ++i) {
            do cut += low ? 1 : -1;
            while (!domains_.has(v, cut));
        }
        Domains part = domains_;
        part.keep(v, low ? first : cut, low ? cut : last);
        if (!refuted(bound_level, std::move(part), control)) {
            count /= 2;
            continue;
        }
        domains_.keep(v, low ? cut + 1 : first, low ? last : cut - 1);
        if (!propagate() || domains_.empty(v)) return false;
        bound_level.messages.sync(domains_);
        if (bound_level.messages.bound() < 0) return false;
        count = std::min(count, (domains_.count(v) + 1) / 2);
    }
    return true;
}

// Every leaf against every entry that is left of its factor takes seconds in deep trees. Leaves that are not looked at
// stay.
void Fixer::mark_leaves(const BoundLevel& bound_level, std::vector<std::uint8_t>& leaves, Control& control) {
    const FactorSet& set = bound_level.messages.set();
    for (std::int32_t t = 0; t < set.factors(); ++t) {
        for (const std::int32_t g : set.factor_groups[t]) {
            const std::int64_t count = problem_.group_offset[g + 1] - problem_.group_offset[g];
            if (count * bound_level.messages.alive(t) > kLargestComparison) continue;
            for (std::int64_t l = problem_.group_offset[g]; l < problem_.group_offset[g + 1]; ++l) {
                if (control.expired() || comparisons_ > work_ / kComparisonShare) return;
                mark_leaf(bound_level.messages, t, l, leaves);
            }
        }
    }
}

void Fixer::mark_leaf(const Messages& messages, std::int32_t factor, std::int64_t leaf,
                      std::vector<std::uint8_t>& leaves) {
    if (!leaves[leaf]) return;
    for (std::int64_t b = problem_.leaf_offset[leaf]; b < problem_.leaf_offset[leaf + 1]; ++b) {
        if (meets(messages, factor, b)) return;
    }
    leaves[leaf] = 0;
}

// Whether a box and an entry that is left have cells in common, as far as variables are looked at one by one.
bool Fixer::meets(const Messages& messages, std::int32_t factor, std::int64_t box) {
    const FactorSet& set = messages.set();
    const Literal* begin = problem_.literals.data() + problem_.box_offset[box];
    const Literal* end = problem_.literals.data() + problem_.box_offset[box + 1];
    for (const Literal* l = begin; l != end; ++l) {
        if (!domains_.any(l->variable, l->low, l->high)) return false;
    }
    const std::int64_t first = set.entry_offset[factor];
    for (std::int64_t place = first; place < first + messages.alive(factor); ++place) {
        const std::int64_t e = messages.entry(place);
        bool common = true;
        for (std::int32_t s = set.slot_offset[factor]; s < set.slot_offset[factor + 1] && common; ++s) {
            comparisons_ += 1 + (end - begin);
            Literal range = messages.range(s, e);
            for (const Literal* l = begin; l != end; ++l) {
                if (l->variable != range.variable) continue;
                range.low = std::max(range.low, l->low);
                range.high = std::min(range.high, l->high);
            }
            common = range.low <= range.high && domains_.any(range.variable, range.low, range.high);
        }
        if (common) return true;
    }
    return false;
}

}  // namespace treesens
