// Pairs near a row by moves of single features: greedy, exact in its scores, and without any proof.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "nearest/pair_search.hpp"

namespace treesens {

class Descent {
public:
    Descent(const CellTrees& trees, const std::int64_t* leaf_value, const CellCosts& costs, const PairGoal& goal,
            const std::uint8_t* varied);

    // A pair that costs less than `cutoff`, where `cell_cost` [cells] is what cells cost: starts from the cheapest
    // cells, moves one feature after the other until both points are where they should be, and then back as far as they
    // stay there.
    RowOutcome search(const std::vector<double>& cell_cost, double cutoff, const std::function<bool()>& over);
    const std::vector<std::int32_t>& upper() const { return best_[0]; }
    const std::vector<std::int32_t>& lower() const { return best_[1]; }

private:
    struct Move {
        std::int64_t feature = -1;
        std::int32_t cell = 0;
    };

    bool towards(double patience, double cutoff, const std::function<bool()>& over);
    void back(const std::function<bool()>& over);
    void score();
    void settle_varied();
    std::int64_t lacks(std::int64_t upper, std::int64_t lower) const;
    double cost_with(std::int64_t feature, std::int32_t cell) const;
    template <typename Visit>
    void for_moves(double below, Visit visit) const;
    void move(const Move& move);

    const CellTrees trees_;
    const std::int64_t* leaf_value_;
    const CellCosts costs_;
    const PairGoal goal_;
    const std::uint8_t* varied_;
    std::vector<std::int32_t> asked_;         // features of the trees, one tree after the other
    std::vector<std::int64_t> asked_offset_;  // [trees + 1]
    const double* cost_ = nullptr;            // [cells]
    std::vector<std::int32_t> start_;         // [features]: the cheapest cells
    std::vector<std::int32_t> low_;           // [features]: the range of cells that are tried
    std::vector<std::int32_t> high_;
    std::vector<std::int32_t> point_[2];  // [features]: upper and lower
    std::vector<std::int32_t> best_[2];
    std::int64_t total_[2] = {0, 0};
    std::vector<std::int64_t> change_[2];  // [cells + features]: what another cell of one feature changes
    double paid_ = 0.0;
};

}  // namespace treesens
