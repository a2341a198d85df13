// The pair nearest to a row: depth-first branch and bound over boxes of cells around one row after the other.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <vector>

#include "nearest/residual_trees.hpp"

namespace treesens {

// The cost of a cell that is not legal.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

enum class Norm : std::int32_t { kL0 = 0, kL1 = 1, kL2 = 2, kLinf = 3 };

// What a pair has to reach, in the units of the leaf values, without the base. Leaf values may be rounded down, which
// makes a sum too low by at most `slack`.
struct PairGoal {
    bool has_sides = false;  // upper >= top and lower <= bottom
    std::int64_t top = 0;
    std::int64_t bottom = 0;
    bool has_swing = false;  // upper - lower >= swing
    std::int64_t swing = 0;
    std::int64_t slack = 0;
};

// Where the cells are: the legal values of a present cell lie in [value_low, value_high]; `unit` is the width of a
// feature, 0 where it does not count. Arrays over cells are indexed by cell_offset[feature] + cell.
struct CellCosts {
    std::int64_t features = 0;
    const std::int64_t* cell_offset = nullptr;   // [features + 1]
    const std::uint8_t* legal = nullptr;         // [cells]
    const double* value_low = nullptr;           // [cells]
    const double* value_high = nullptr;          // [cells]
    const double* unit = nullptr;                // [features]
    const std::uint8_t* same_or_not = nullptr;   // [features]: values are equal or one unit apart
    const std::int32_t* missing_cell = nullptr;  // [features]
    Norm norm = Norm::kL2;
};

// Where the values of some rows lie in a feature.
struct ValueRange {
    double low = 0.0;  // of the values that are present
    double high = 0.0;
    std::int32_t first_cell = 0;  // of their cells; empty where first > last
    std::int32_t last_cell = -1;
    bool present = false;
    bool absent = false;  // some value is missing
};

// A box of cells with what is left of the ensemble in it.
struct PairLevel {
    PairBox box;
    std::vector<double> least;  // [features]: the cheapest cell of each range
    double cost = 0.0;          // no pair in the box costs less
    Residual residual;
};

struct RowOutcome {
    bool closed = false;  // no pair nearer than the cutoff, or than the one found
    bool found = false;
    double cost = 0.0;  // of the pair that was found: a sum of squares for l2
};

class PairSearch {
public:
    PairSearch(const TreeSpecialiser& specialiser, const CellTrees& trees, const CellCosts& costs, const PairGoal& goal,
               const std::uint8_t* varied);

    // All cells and the whole ensemble.
    const PairLevel& everything() const { return everything_; }
    // What rows with values in `ranges` [features] leave of `from` at costs below `cutoff`; false where there is no
    // pair.
    bool narrow(const PairLevel& from, const std::vector<ValueRange>& ranges, double cutoff, PairLevel& to);
    // Whether there is no such pair, as far as so many boxes can show.
    bool refutes(const PairLevel& from, const std::vector<ValueRange>& ranges, double cutoff, std::int64_t boxes,
                 const std::function<bool()>& over);
    // Looks for the pair nearest to a row (to rows of equal values) among those within `from` that cost less than
    // `cutoff`. Gives up after so many boxes, and when `over` says so.
    RowOutcome search(const PairLevel& from, const std::vector<ValueRange>& row, double cutoff, std::int64_t boxes,
                      const std::function<bool()>& over);
    // What every cell costs for a row, [cells].
    const std::vector<double>& costs_of(const std::vector<ValueRange>& row);
    const std::vector<std::int32_t>& upper() const { return best_upper_; }
    const std::vector<std::int32_t>& lower() const { return best_lower_; }

private:
    struct Split {
        std::int64_t feature = -1;
        bool lower = false;     // of the range of the lower point
        std::int32_t last = 0;  // last cell of the first half
    };

    void set_costs(const std::vector<ValueRange>& ranges, const PairBox& box);
    bool shrink(PairLevel& level, const Residual& from);
    bool evaluate(PairLevel& level, const Residual& from);
    void explore(std::size_t depth, const PairLevel& here);
    bool trim(PairLevel& level) const;
    int tightest(const Residual& residual, double* margin) const;
    bool offer(const PairLevel& level);
    bool meets(std::int64_t upper, std::int64_t lower) const;
    Split choose(const PairLevel& level);
    void count(const PairLevel& level, std::int32_t node, std::int64_t divisor, int weight, std::uint8_t points);
    void count_cut(const PairLevel& level, std::int32_t source, bool lower, std::int64_t gap);
    double joined(double sum, double one) const {
        return costs_.norm == Norm::kLinf ? (sum > one ? sum : one) : sum + one;
    }

    const TreeSpecialiser& specialiser_;
    const CellTrees trees_;
    const CellCosts costs_;
    const PairGoal goal_;
    const std::uint8_t* varied_;
    std::vector<std::int32_t> varied_features_;
    PairLevel everything_;
    PairBounds needed_{};       // of each weighted sum, slack taken off; INT64_MIN if nothing is asked
    std::vector<double> cost_;  // [cells], of the current row
    std::deque<std::array<PairLevel, 2>> levels_;
    std::vector<std::int32_t> upper_;  // cheapest cells of a box
    std::vector<std::int32_t> lower_;
    std::vector<std::int64_t> profile_;
    std::vector<std::int64_t> gap_;     // [2 * cells]: what a cut after a cell is worth
    std::vector<std::int64_t> gap_of_;  // [2 * features]
    double cutoff_ = 0.0;
    bool only_refutes_ = false;  // the first pair ends the search
    std::int64_t boxes_left_ = 0;
    const std::function<bool()>* over_ = nullptr;
    RowOutcome outcome_;
    std::vector<std::int32_t> best_upper_;
    std::vector<std::int32_t> best_lower_;
};

}  // namespace treesens
