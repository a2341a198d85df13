// Cheaper solutions by moves of one leaf at a time: the leaf of one tree changes within the box that the leaves of all
// other trees have in common, and the point becomes the cheapest one of the new box.
//
// C. Zhang, H. Zhang, C.-J. Hsieh: An Efficient Adversarial Attack for Tree Ensembles, NeurIPS 2020 ("LT-attack").
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "problem/box_trees.hpp"
#include "problem/clauses.hpp"
#include "problem/problem.hpp"

namespace treesens {

// What every cell costs, and the cheapest cell of a range. A negative cost forbids a cell.
class Costs {
public:
    Costs(const Problem& problem, std::vector<std::int64_t> cost);

    std::int64_t of(std::int32_t v, Cell k) const { return cost_[problem_.cell_offset[v] + k]; }
    std::int64_t sum(const std::vector<Cell>& x) const;
    // -1 if all cells of the range are forbidden.
    Cell cheapest(std::int32_t v, Cell low, Cell high) const;
    const std::vector<std::int64_t>& all() const { return cost_; }

private:
    const Problem& problem_;
    std::vector<std::int64_t> cost_;  // [cells]
    // Variables whose costs fall up to a cell and rise from there, without forbidden cells in between: that cell and
    // the ends of the allowed range. home < 0: any other variable.
    std::vector<Cell> home_;
    std::vector<Cell> first_;
    std::vector<Cell> last_;
};

class LeafMoves {
public:
    // All must outlive it.
    LeafMoves(const Problem& problem, const Forest& forest, const Costs& costs, const std::vector<std::int64_t>& bound);

    bool solves(const std::vector<Cell>& x);
    // Moves of one leaf, the cheapest first, until none is cheaper. `x` is a solution, and stays one.
    void descend(std::vector<Cell>& x);
    // Gives variables back their cheapest cell, in a random order, as long as `x` stays a solution; then descends.
    void return_home(std::vector<Cell>& x, std::mt19937_64& random);
    std::int64_t work() const { return work_; }

private:
    struct Side {
        Cell end = 0;
        Cell other_end = 0;       // without the owner
        std::int32_t owner = -1;  // the only group that sets the end, or -1
    };
    struct Move {
        std::int64_t cost = 0;
        std::int32_t group = -1;
        std::int32_t leaf = -1;
    };

    void find_box(const std::vector<Cell>& x);
    void narrow_box(std::int32_t group, std::int32_t v, Cell low, Cell high);
    bool binds(std::int32_t group) const;
    void relax(std::int32_t group, const std::vector<Cell>& x);
    void visit(std::int32_t group, std::int32_t node, std::int64_t cost);
    void consider(std::int32_t group, std::int32_t leaf, std::int64_t cost);
    std::int64_t least(std::int32_t v) const;
    bool project(std::vector<Cell>& x);
    bool apply(const Move& move, std::vector<Cell>& x);
    bool enter(std::int32_t group, std::int32_t node, std::int32_t leaf);

    const Problem& problem_;
    const Forest& forest_;
    const Costs& costs_;
    const std::vector<std::int64_t>& bound_;
    Clauses clauses_;
    std::vector<std::int64_t> slack_;
    std::vector<Side> low_side_;  // [variables]
    std::vector<Side> high_side_;
    std::vector<Cell> low_;  // the box of the traversal at work, [variables]
    std::vector<Cell> high_;
    std::vector<std::int32_t> leaf_;         // [groups]
    std::vector<std::int64_t> path_offset_;  // [groups + 1]
    std::vector<std::int32_t> path_;         // variables on the path to a leaf
    std::vector<Move> found_;                // cheaper than the point
    std::int64_t now_ = 0;                   // what the point costs
    std::int64_t work_ = 0;
};

}  // namespace treesens
