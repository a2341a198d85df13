// Bound levels: the bounds tried at a node, cheapest first, each warm-started from the node above (docs/engine.md).
//
//  - collapsed (D): rows added up so that all unaffected trees cancel, beside hard rows over other trees;
//  - full (W): every row with its own multiplier on the simplex; with two rows two of them, one per side of 1/2.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bound/messages.hpp"
#include "problem/goal.hpp"

namespace treesens {

// The grid shift of every row: rows of about the same magnitude share one, so that equal multipliers mean equal
// weights. An objective that is apart (is_objective_apart) has a unit of its own, and a shift of its own: in the grid
// of scores all its multipliers but a few units of 2048 may be far too small.
std::vector<int> row_shifts(const Problem& problem, const Goal& goal, bool objective_is_apart);

// Euclidean projection of multiplier - step * gradient on the simplex, as integers with sum 2^kMultiplierBits. Rows
// with much slack and no multiplier do not count in the length of the step.
std::vector<std::int32_t> step_multipliers(const std::vector<std::int32_t>& multiplier,
                                           const std::vector<double>& slack, double step);

struct BoundLevelStatistics {
    std::int64_t tried = 0;
    std::int64_t pruned = 0;
    std::int64_t sweeps = 0;
};

// The level whose upper bound the multipliers are to lower.
struct Optimised {
    const Problem& problem;
    const Goal& goal;
    std::int64_t sweeps = 1;  // after a step, until it is given up
};

class BoundLevel {
public:
    BoundLevel(const Problem& problem, const Goal& goal, std::shared_ptr<const FactorSet> set,
               std::vector<std::int32_t> multiplier, MemoryBudget& budget);

    Messages messages;
    BoundLevelStatistics statistics;
    std::int64_t loaded = -1;  // the node whose state is in `messages`
    double step = 1.0 / 16;    // of the multipliers
    // Recent reductions of the bound by passes; empty before the first ones.
    std::optional<std::int64_t> pass_gain;
    bool warm = false;  // keep the messages of an earlier run at the first reset
    // Sets the constants of the rows for the threshold t of the soft rows.
    void set_level(const Problem& problem, const Goal& goal, std::int64_t level);
    // Upper bound on the soft rows of the node's solutions.
    std::int64_t upper(const Problem& problem, const Goal& goal) const;
    // One trial of other multipliers: step, refresh, one or several sweeps, keep if better. False if it did not help.
    // The bound that counts is the one at the level, or (`of`) upper(): far below the optimum, moving weight away from
    // the soft rows lowers the bound at the level and raises upper().
    bool improve_multipliers(const std::vector<Cell>& x, Domains& domains, Control& control, Sweep& outcome,
                             const Optimised* of = nullptr);
    // Initial multipliers of an objective next to other rows: of several shares of the unit, the one with the least
    // upper bound. Starts with zero messages.
    Sweep choose_share(Domains& domains, Control& control, const Optimised& of);
    // Seldom worth its time: few of the nodes that it tried were pruned. The full rows take several sweeps more, and
    // have to prune a third (benchmarks: largest gaps a fifth to a third faster than at a twelfth).
    bool idle() const {
        const int least = !set_->collapsed && set_->rows.size() > 1 ? 3 : 12;
        return statistics.tried >= 40 && statistics.pruned * least < statistics.tried;
    }

private:
    std::vector<std::int32_t> with_share(std::size_t row, std::int32_t share) const;
    void count_slack_from(std::int64_t upper, const Goal& goal);
    std::vector<std::int32_t> step_from(const std::vector<std::int32_t>& multiplier);

    std::shared_ptr<const FactorSet> set_;
    std::int64_t level_ = 0;
    std::vector<double> row_slack_;
    std::vector<double> kept_;
};

}  // namespace treesens
