// A problem within a box: dead leaves are dropped, trees that are constant become numbers, and cells that nothing left
// tells apart are one.
//
// A question about the surroundings of a row allows few cells of each variable. What is left of it is a small fraction
// of the whole, and everything that a search does costs in proportion to what is left.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/box_trees.hpp"
#include "problem/problem.hpp"

namespace treesens {

enum class Left {
    nothing,  // no solution: a variable or a clause has no cell, or a row fails with every tree at its best
    point,    // every point of the box is a solution, and none is better than another
    problem   // what is left has to be searched
};

struct Restricted {
    Left left = Left::nothing;
    Problem problem;
    Forest forest;
    std::vector<std::int32_t> variable;     // [variables of problem], numbers in the whole
    std::vector<std::int32_t> cell_offset;  // as in problem, which a search may have taken
    std::vector<Cell> cell;                 // [cells of problem]: the cell of the whole that stands for it
    std::vector<Cell> rest;                 // [variables of the whole]: the cell of those that are not left
    std::vector<std::int32_t> group;        // [groups of problem], numbers in the whole
    std::int32_t failing_row = -1;          // if nothing is left: a row that fails with every tree at its best
    std::vector<std::int64_t> slack;        // [rows] of the one point, if no variable is left
};

// The point of the whole that a point of the problem that is left stands for.
std::vector<Cell> widened(const Restricted& part, const std::vector<Cell>& x);

class Restrictor {
public:
    Restrictor(const Problem& whole, const Forest& forest);

    // What the allowed cells [cells of the whole] leave of the question with these bounds. Of cells that become one the
    // one with the least `level` stands for all. Cells that the whole does not allow stay forbidden. `hints` are points
    // of the whole to start from.
    Restricted restrict(const std::uint8_t* allowed, const std::int32_t* level, const std::vector<std::int64_t>& bound,
                        const std::vector<std::vector<Cell>>& hints);

private:
    struct Clause {
        std::vector<Literal> literals;
    };

    bool keep_cells(const std::uint8_t* allowed);
    void specialise_groups();
    std::int32_t specialise(std::int32_t group, std::int32_t node);
    bool same_values(std::int32_t group, std::int32_t one, std::int32_t other) const;
    // A row that fails if the rows reach so much; -1 if there is none.
    std::int32_t failing(const std::vector<std::int64_t>& reached, const std::vector<std::int64_t>& bound) const;
    bool keep_clauses();
    void mark_cuts();
    void number_cells(Restricted& part, const std::int32_t* level);
    void write_rows(Restricted& part, const std::vector<std::int64_t>& bound) const;
    void write_groups(Restricted& part);
    std::int32_t write_tree(Restricted& part, std::int32_t group, std::int32_t node);
    void choose_rows(std::int32_t group);
    void mark_rows(std::int32_t group, std::int32_t node);
    void write_clauses(Restricted& part) const;
    void write_hints(Restricted& part, const std::vector<std::vector<Cell>>& hints) const;

    const Problem& whole_;
    const Forest& forest_;
    std::vector<Cell> kept_;           // cells that are left, variables one after the other
    std::vector<std::int32_t> first_;  // [variables + 1], into kept_
    std::vector<std::int32_t> below_;  // [cells]: how many cells up to this one are left, in its variable
    std::vector<Cell> low_;            // the range of places in a traversal, [variables]
    std::vector<Cell> high_;
    std::vector<TreeNode> nodes_;         // trees over places among the cells that are left
    std::vector<std::int32_t> root_;      // [groups]; < 0: the leaf ~root
    std::vector<std::int64_t> best_;      // [rows]: no point of the box has more, without the bound
    std::vector<std::int64_t> worst_;     // and none less
    std::vector<std::int64_t> constant_;  // [rows]: trees and variables that are constant
    std::vector<Clause> clauses_;         // over places
    std::vector<std::uint8_t> cut_;       // [kept]: the next cell is another one
    std::vector<std::int32_t> run_;       // [kept]: the number of its cell in the problem that is left
    std::vector<std::int32_t> number_;    // [variables]: of the problem that is left, or -1
    std::int32_t leaves_ = 0;             // that have been written
    std::vector<std::int32_t> rows_;      // of the tree that is written, as places among its rows in the whole
    std::vector<std::uint8_t> used_;
};

}  // namespace treesens
