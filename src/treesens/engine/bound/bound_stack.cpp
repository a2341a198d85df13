#include "bound/bound_stack.hpp"

#include <algorithm>

#include "problem/checked.hpp"
#include "problem/rounding.hpp"

namespace treesens {

namespace {

// A row without terms has no effect; with a multiplier of its own it would take weight from the others.
bool always_holds(const Problem& p, const Goal& goal, std::int32_t r) {
    return !goal.soft[r] && goal.bound[r] <= 0 && p.magnitude(r) == 0;
}

// A sum of rows in which trees cancel, and the rows over other trees.
std::shared_ptr<const FactorSet> build_collapsed(const Problem& p, const Forest& forest, const Goal& goal,
                                                 const RowSum& sum, const std::vector<int>& shift, MemoryBudget& budget,
                                                 std::int64_t together, Control* control) {
    std::vector<RowSum> rows(1, sum);
    std::vector<int> row_shift(1, shift[sum[0]]);
    for (const std::int32_t r : sum) row_shift[0] = std::min(row_shift[0], shift[r]);
    for (const std::int32_t r : rows_beside(p, forest, goal, sum)) {
        rows.push_back({r});
        row_shift.push_back(shift[r]);
    }
    return std::make_shared<const FactorSet>(
        build_factors(p, forest, rows, row_shift, true, budget, together, control));
}

}  // namespace

FactorSets build_factor_sets(const Problem& p, const Forest& forest, const Goal& goal, MemoryBudget& budget,
                             std::int64_t together, Control* control) {
    FactorSets sets;
    sets.objective_is_apart = is_objective_apart(p, forest, goal);
    const std::vector<int> shift = row_shifts(p, goal, sets.objective_is_apart);
    const std::vector<RowSum> cancelling = cancelling_rows(p, forest, goal);
    std::vector<RowSum> rows;
    std::vector<int> row_shift;
    for (std::int32_t r = 0; r < p.rows; ++r) {
        if (!goal.counts(p, r) || (cancelling.empty() && always_holds(p, goal, r))) continue;
        rows.push_back({r});
        row_shift.push_back(shift[r]);
    }
    if (!cancelling.empty())
        sets.collapsed = build_collapsed(p, forest, goal, cancelling[0], shift, budget, together, control);
    for (std::size_t c = 1; sets.collapsed && c < sets.collapsed->rows.size(); ++c) {
        if (goal.mode == Mode::objective && goal.soft[sets.collapsed->rows[c][0]]) sets.objective_beside = c;
    }
    sets.full =
        std::make_shared<const FactorSet>(build_factors(p, forest, rows, row_shift, false, budget, together, control));
    return sets;
}

std::vector<std::int32_t> collapsed_multiplier(const FactorSets& sets) {
    // A single row keeps its weight, two rows halve it: the sums stay below the same power of two. Rows beside them
    // begin without any, but for an objective: a bound without it says nothing of its value.
    const std::vector<RowSum>& rows = sets.collapsed->rows;
    std::vector<std::int32_t> start(rows.size(), 0);
    const auto size = narrow<std::int32_t>(rows[0].size());
    const std::int32_t shared = sets.objective_beside > 0 ? kMultiplierUnit / 2 : kMultiplierUnit;
    start[0] = shared / size;
    if (sets.objective_beside > 0) start[sets.objective_beside] = kMultiplierUnit - size * start[0];
    return start;
}

std::vector<std::int32_t> start_multipliers(const FactorSets& sets) {
    std::vector<std::int32_t> start(sets.full->rows.size(), 0);
    if (sets.collapsed) {
        const std::vector<std::int32_t> multiplier = collapsed_multiplier(sets);
        for (std::size_t m = 0; m < start.size(); ++m) {
            for (std::size_t c = 0; c < multiplier.size(); ++c) {
                const RowSum& rows = sets.collapsed->rows[c];
                if (std::find(rows.begin(), rows.end(), sets.full->rows[m][0]) != rows.end()) start[m] = multiplier[c];
            }
        }
        return start;
    }
    std::int32_t rest = kMultiplierUnit;
    for (std::size_t m = 0; m < start.size(); ++m) {
        start[m] = rest / narrow<std::int32_t>(start.size() - m);
        rest -= start[m];
    }
    return start;
}

BoundStack::BoundStack(const Problem& problem, const Goal& goal, const FactorSets& sets, Full full,
                       MemoryBudget& budget) {
    const auto add = [&](const std::shared_ptr<const FactorSet>& set, const std::vector<std::int32_t>& multiplier) {
        levels_.push_back(std::make_unique<BoundLevel>(problem, goal, set, multiplier, budget));
        return levels_.back().get();
    };
    const std::vector<std::int32_t> start = start_multipliers(sets);
    if (sets.collapsed) collapsed_ = add(sets.collapsed, collapsed_multiplier(sets));
    if (start.empty()) return;
    full_.push_back(add(sets.full, start));
    const bool two_sides = start.size() == 2 && start[0] > 0 && start[1] > 0;
    if (full == Full::sides && two_sides) full_.push_back(add(sets.full, start));
}

BoundLevel& BoundStack::side_for(const std::vector<std::int64_t>& slack) const {
    if (full_.size() == 1) return *full_[0];
    // The row with the larger violation needs more weight.
    const std::vector<RowSum>& rows = full_[0]->messages.set().rows;
    return *full_[slack[rows[0][0]] < slack[rows[1][0]] ? 0 : 1];
}

std::size_t BoundStack::index_of(const BoundLevel& level) const {
    const auto is_it = [&](const auto& l) { return l.get() == &level; };
    return static_cast<std::size_t>(std::find_if(levels_.begin(), levels_.end(), is_it) - levels_.begin());
}

void BoundStack::warm_start(const BoundStack& other) {
    for (std::size_t i = 0; i < levels_.size() && i < other.levels_.size(); ++i) {
        const Messages& from = other.levels_[i]->messages;
        Messages& to = levels_[i]->messages;
        if (&from.set() != &to.set()) continue;
        to.set_multipliers(from.multipliers());
        to.set_reduced(from.reduced());
        levels_[i]->warm = true;
    }
}

void BoundStack::forget_nodes() {
    for (const auto& level : levels_) level->loaded = -1;
}

std::int64_t BoundStack::work() const {
    std::int64_t sum = 0;
    for (const auto& level : levels_) sum += level->messages.work();
    return sum;
}

}  // namespace treesens
