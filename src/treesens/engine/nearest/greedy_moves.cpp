#include "nearest/greedy_moves.hpp"

#include <algorithm>
#include <array>

#include "ensemble/flip_profiles.hpp"
#include "problem/checked.hpp"

namespace treesens {

namespace {

// What a move costs at least when moves are compared: cheap moves first, and then those that lead far.
constexpr std::array<double, 3> kPatience{1e-3, 0.03, 0.5};
constexpr int kMostMoves = 24;
constexpr int kMostSweeps = 4;

}  // namespace

Descent::Descent(const CellTrees& trees, const std::int64_t* leaf_value, const CellCosts& costs, const PairGoal& goal,
                 const std::uint8_t* varied)
    : trees_(trees), leaf_value_(leaf_value), costs_(costs), goal_(goal), varied_(varied), asked_offset_(1, 0) {
    std::vector<std::int32_t> waiting;
    for (std::int64_t t = 0; t < trees.trees; ++t) {
        waiting.assign(1, trees.root[t]);
        const std::size_t first = asked_.size();
        while (!waiting.empty()) {
            const std::int32_t node = waiting.back();
            waiting.pop_back();
            if (trees.feature[node] < 0) continue;
            asked_.push_back(trees.feature[node]);
            waiting.push_back(trees.left[node]);
            waiting.push_back(trees.right[node]);
        }
        std::sort(asked_.begin() + narrow<std::ptrdiff_t>(first), asked_.end());
        asked_.erase(std::unique(asked_.begin() + narrow<std::ptrdiff_t>(first), asked_.end()), asked_.end());
        asked_offset_.push_back(static_cast<std::int64_t>(asked_.size()));
    }
    start_.resize(costs.features);
    low_.resize(costs.features);
    high_.resize(costs.features);
    for (auto& change : change_) change.resize(costs.cell_offset[costs.features] + costs.features);
}

// The scores of both points, and what each other cell of each feature would change.
void Descent::score() {
    const WholeTrees whole{trees_, leaf_value_};
    for (int p = 0; p < 2; ++p) {
        std::int64_t* change = change_[p].data();
        std::fill(change_[p].begin(), change_[p].end(), 0);
        total_[p] = 0;
        const std::int32_t* cells = point_[p].data();
        for (std::int64_t t = 0; t < trees_.trees; ++t) {
            const std::int64_t value = leaf_value_[reach_leaf(trees_, t, cells)];
            total_[p] += value;
            for (std::int64_t i = asked_offset_[t]; i < asked_offset_[t + 1]; ++i) {
                const std::int32_t f = asked_[i];
                if (low_[f] == high_[f]) continue;
                std::int64_t* mine = change + costs_.cell_offset[f] + f;
                add_profile(trees_, whole, trees_.root[t], cells, f, low_[f], high_[f], mine);
                mine[low_[f]] -= value;
            }
        }
        for (std::int64_t f = 0; f < costs_.features; ++f) {
            std::int64_t* mine = change + costs_.cell_offset[f] + f;
            for (std::int32_t k = low_[f] + 1; k <= high_[f]; ++k) mine[k] += mine[k - 1];
        }
    }
}

// What a pair with these scores lacks.
std::int64_t Descent::lacks(std::int64_t upper, std::int64_t lower) const {
    std::int64_t result = 0;
    if (goal_.has_sides) {
        result += std::max<std::int64_t>(0, goal_.top - upper);
        result += std::max<std::int64_t>(0, lower + goal_.slack - goal_.bottom);
    }
    if (goal_.has_swing) result += std::max<std::int64_t>(0, goal_.swing - (upper - lower - goal_.slack));
    return result;
}

double Descent::cost_with(std::int64_t feature, std::int32_t cell) const {
    double result = 0.0;
    for (std::int64_t f = 0; f < costs_.features; ++f) {
        if (varied_[f]) continue;
        const double one = cost_[costs_.cell_offset[f] + (f == feature ? cell : point_[0][f])];
        result = costs_.norm == Norm::kLinf ? std::max(result, one) : result + one;
    }
    return result;
}

// Visits all moves of a shared feature that leave the pair cheaper than `below`, with their scores and the cost.
template <typename Visit>
void Descent::for_moves(double below, Visit visit) const {
    for (std::int64_t f = 0; f < costs_.features; ++f) {
        if (varied_[f]) continue;
        const std::int64_t first = costs_.cell_offset[f];
        const double others =
            costs_.norm == Norm::kLinf ? cost_with(f, start_[f]) : paid_ - cost_[first + point_[0][f]];
        for (std::int32_t k = low_[f]; k <= high_[f]; ++k) {
            const double one = cost_[first + k];
            const double cost = costs_.norm == Norm::kLinf ? std::max(others, one) : others + one;
            if (k == point_[0][f] || !(cost < below)) continue;
            visit(Move{f, k}, total_[0] + change_[0][first + f + k], total_[1] + change_[1][first + f + k], cost);
        }
    }
}

void Descent::move(const Move& move) {
    point_[0][move.feature] = point_[1][move.feature] = move.cell;
    paid_ = cost_with(-1, 0);
}

// Moves the varied features of both points, one at a time, as long as that helps.
void Descent::settle_varied() {
    score();
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
        bool better = false;
        for (int p = 0; p < 2; ++p) {
            const std::int64_t sign = p == 0 ? 1 : -1;
            Move best;
            std::int64_t most = 0;
            for (std::int64_t f = 0; f < costs_.features; ++f) {
                if (!varied_[f]) continue;
                const std::int64_t first = costs_.cell_offset[f];
                for (std::int32_t k = low_[f]; k <= high_[f]; ++k) {
                    const std::int64_t gain = sign * change_[p][first + f + k];
                    if (cost_[first + k] != kNever && gain > most) most = gain, best = {f, k};
                }
            }
            if (best.feature < 0) continue;
            point_[p][best.feature] = best.cell;
            better = true;
        }
        if (!better) return;
        score();
    }
}

bool Descent::towards(double patience, double cutoff, const std::function<bool()>& over) {
    point_[0] = point_[1] = start_;
    paid_ = cost_with(-1, 0);
    for (int moves = 0; moves < kMostMoves && paid_ < cutoff; ++moves) {
        settle_varied();
        const std::int64_t missing = lacks(total_[0], total_[1]);
        if (missing == 0) return true;
        if (over()) return false;
        Move best;
        double worth = 0.0;
        double cheapest = kNever;
        for_moves(cutoff, [&](const Move& one, std::int64_t upper, std::int64_t lower, double cost) {
            const std::int64_t left = lacks(upper, lower);
            if (left == 0) {
                if (cost < cheapest) cheapest = cost, best = one;
                return;
            }
            const double mine = static_cast<double>(missing - left) / std::max(cost - paid_, patience);
            if (cheapest == kNever && mine > worth) worth = mine, best = one;
        });
        if (best.feature < 0) return false;
        move(best);
    }
    return false;
}

// Moves features of a pair to cheaper cells while it stays one, the cheapest outcome first.
void Descent::back(const std::function<bool()>& over) {
    for (int moves = 0; moves < kMostMoves && !over(); ++moves) {
        settle_varied();
        Move best;
        double cheapest = paid_;
        for_moves(paid_, [&](const Move& one, std::int64_t upper, std::int64_t lower, double cost) {
            if (cost < cheapest && lacks(upper, lower) == 0) cheapest = cost, best = one;
        });
        if (best.feature < 0) return;
        move(best);
    }
}

RowOutcome Descent::search(const std::vector<double>& cell_cost, double cutoff, const std::function<bool()>& over) {
    cost_ = cell_cost.data();
    RowOutcome outcome{false, false, cutoff};
    for (std::int64_t f = 0; f < costs_.features; ++f) {
        const double* first = cost_ + costs_.cell_offset[f];
        const double* last = cost_ + costs_.cell_offset[f + 1];
        start_[f] = narrow<std::int32_t>(std::min_element(first, last) - first);
        if (first[start_[f]] == kNever) return outcome;
        // Cells that cost too much by themselves are out of reach.
        low_[f] = 0;
        high_[f] = narrow<std::int32_t>(last - first) - 1;
        while (low_[f] < start_[f] && !(first[low_[f]] < cutoff)) ++low_[f];
        while (high_[f] > start_[f] && !(first[high_[f]] < cutoff)) --high_[f];
    }
    for (const double patience : kPatience) {
        if (!towards(patience, outcome.cost, over)) continue;
        back(over);
        if (!(paid_ < outcome.cost)) continue;
        outcome.found = true;
        outcome.cost = paid_;
        best_[0] = point_[0];
        best_[1] = point_[1];
    }
    return outcome;
}

}  // namespace treesens
