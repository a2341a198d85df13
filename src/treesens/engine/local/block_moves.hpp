// Exact block moves: the best cells of one or two variables, all others held, together with the best cell of one
// private variable per point.
//
// docs/engine.md: keep the profile of every row over the private variable; traverse only the trees that ask
// for the block with block and private variable left open, add every leaf to its rectangle in a difference array,
// prefix-sum, read off the best cell. All in exact integers.
//
// Which variable is private is read off the problem: rows fall into clusters (those of point a, those of point b) such
// that a copied variable of F matters to one cluster only. The clusters then choose their private cell independently.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/box_trees.hpp"
#include "problem/clauses.hpp"
#include "problem/goal.hpp"
#include "problem/problem.hpp"

namespace treesens::search {

inline constexpr std::int64_t kLargestGrid = 300'000;
// Cells of a single variable times those of the open one that a move looks at, and cells that it looks at in any case.
inline constexpr std::int64_t kLargestLine = 1'000'000;
inline constexpr std::int64_t kLeastWindow = 16;

class Moves {
public:
    Moves(const Problem& problem, const Forest& forest, const Clauses& clauses);

    void set_goal(const Goal& goal) { goal_ = &goal; }
    // Moves to x (which must satisfy the clauses) and picks the private variables with the numbers given by `pick`.
    void place(const std::vector<Cell>& x, std::uint64_t pick);
    // The best move over the block; `second` may be -1. True when the score rose.
    bool improve(std::int32_t first, std::int32_t second);
    // Cells the block move over these variables would compute.
    std::int64_t grid(std::int32_t first, std::int32_t second) const;

    const std::vector<Cell>& x() const { return x_; }
    const Score& score() const { return score_; }
    std::int64_t work() const { return work_; }
    // Variables that can change something: they occur in a tree, a unary term or a clause, and have two cells.
    const std::vector<std::int32_t>& movable() const { return movable_; }

private:
    struct Cluster {
        std::vector<std::int32_t> rows;
        std::vector<std::int32_t> privates;
        std::int32_t open = -1;               // the private variable in use
        std::vector<std::int64_t> profile;    // [rows][cells of open]: slack with everything else as in x
        std::vector<std::int64_t> rectangle;  // [rows][first][second][open] difference array, then its sums
        std::vector<std::int64_t> plane;      // [rows][first][second]: leaves that do not depend on `open`
        std::int32_t width = 1;               // cells of open, or 1
        bool split = false;                   // the block leaves `open` open (it is not itself in the block)
    };
    struct Range {
        Cell low[3];
        Cell high[3];
    };

    void find_clusters();
    void choose_privates(std::uint64_t pick);
    void build_profiles();
    void start_tables(std::int32_t first, std::int32_t second);
    void choose_window();
    void add_groups(std::int32_t variable, std::int32_t also);
    void traverse(std::int32_t group, std::int32_t node, Range range);
    void add_leaf(std::int32_t group, std::int32_t leaf, const Range& range);
    void sum_tables();
    Score cluster_best(Cluster& c, std::int64_t cell, std::int64_t here, Cell* best_open) const;
    Score single_row_best(const Cluster& c, std::int64_t cell, std::int64_t here, Cell* best_open) const;
    void read_block_cell(Cluster& c, std::int64_t cell, std::int64_t here, std::int64_t* out) const;
    void adopt(std::int64_t cell, std::int64_t here);
    bool adopt_with_clauses(std::int64_t cell, std::int64_t here);
    std::int64_t unary_difference(std::int32_t row, std::int64_t cell) const;
    void mask_cells(std::int32_t variable, std::vector<std::uint8_t>& mask);

    const Problem& problem_;
    const Forest& forest_;
    const Clauses& clauses_;
    const Goal* goal_ = nullptr;
    std::vector<Cluster> clusters_;
    std::vector<std::int32_t> cluster_of_;  // [rows]
    std::vector<std::int32_t> row_place_;   // [rows], index within its cluster
    std::vector<std::int32_t> movable_;
    std::vector<Cell> x_;
    Score score_;
    std::int64_t work_ = 0;

    // State of one block move.
    std::int32_t block_[2] = {-1, -1};
    std::int32_t size_[2] = {1, 1};
    Cell from_ = 0;              // the first cell of the first variable that the move looks at
    std::uint64_t windows_ = 1;  // where the next one begins
    std::int32_t open_ = -1;     // private variable of the group being traversed
    std::vector<std::uint8_t> mask_[2];
    std::vector<std::uint8_t> open_mask_;
    mutable std::vector<std::int64_t> scratch_;
    std::vector<std::uint8_t> is_open_;  // [variables]
    std::vector<Cell> chosen_open_;      // [clusters]
};

}  // namespace treesens::search
