// The solution of least cost, where every cell has a cost and the costs of a point add up: distances by l1, l2 and l0.
//
// A first solution comes from the least level (level_search.hpp), which is a first bound; moves of one leaf make it
// cheaper. Then increasing prices are tried, from the bound up to the cost of the best solution: no cell above the
// price can be in a solution for it, so the prover only sees the trees restricted to the other cells. Its multipliers
// weigh the costs against the rows.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "levels/leaf_moves.hpp"
#include "levels/level_search.hpp"

namespace treesens {

// Costs are >= 0; a cell with a negative cost is forbidden. Sums over the variables must stay below 2^62. The status is
// `optimal` where low and high are as near as the units of the prover allow, `infeasible` where no solution costs less
// than `most`, or than `low` if that is as near to `most`.
class CostSearch : public RepeatedSearch {
public:
    // Only solutions with a cost below `most` are of interest (negative: all). Throws std::invalid_argument for costs
    // that are too large.
    CostSearch(const SharedProblem& whole, std::vector<std::int64_t> cost, std::vector<std::int64_t> bound,
               std::vector<std::vector<Cell>> hints, std::int64_t most, std::uint64_t seed, std::int64_t max_bytes);

    // No solution costs less; `most` where no solution costs less than that.
    std::int64_t low() const { return low_; }
    // The cost of the best solution; -1 without one.
    std::int64_t high() const { return best_.empty() ? -1 : high_; }

private:
    enum class Phase { nearest, moves, start, prove };

    void step(double slice, double seconds) override;
    void set_stop_of_search(bool stops) override;
    void find_nearest(double slice, double seconds);
    void improve();
    void start_prover();
    void prove(double slice, double seconds);
    void read_prover();
    bool keep(std::vector<Cell> x, bool descend);
    // The maximum cost of interest.
    std::int64_t most() const { return (best_.empty() ? most_ : high_) - 1; }
    void end_part(std::int64_t rounded);
    void raise(std::int64_t low);
    std::vector<std::int32_t> ranks();
    int unit_shift(const Restricted& part) const;
    void add_objective();
    std::vector<Cell> cheapest() const;
    void finish();

    Costs costs_;
    LeafMoves moves_;
    std::int64_t most_;
    std::mt19937_64 random_;
    std::vector<std::int64_t> steps_;    // the different costs of cells, ascending
    std::vector<std::int32_t> rank_;     // [cells], into steps_; -1: forbidden
    std::vector<std::uint8_t> allowed_;  // [cells], of the part
    Phase phase_ = Phase::nearest;
    std::unique_ptr<LevelSearch> nearest_;
    Restricted part_;
    int shift_ = 0;              // the prover counts in 2^shift_ units
    std::int64_t constant_ = 0;  // cost of the variables that are not in the part
    std::int64_t price_ = 0;     // cells outside the part cost more
    std::int64_t chunk_ = 0;     // nodes until the next check
    std::unique_ptr<Search> prover_;
    std::int64_t high_ = 0;
    std::int64_t low_ = 0;
    std::int64_t before_ = 0;  // low_ as it was before the part
    std::int64_t unit_ = 1;    // of which all costs are multiples
};

}  // namespace treesens
