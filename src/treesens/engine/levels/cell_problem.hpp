// Builds a problem directly from the trees of an ensemble over cells: one set of trees per point, rows of weighted leaf
// values.
#pragma once

#include <cstdint>
#include <vector>

#include "ensemble/cell_trees.hpp"
#include "problem/box_trees.hpp"
#include "problem/problem.hpp"

namespace treesens {

// One point: the trees of its model, the variable of each feature, and each leaf's contribution to some rows.
struct PointTrees {
    struct Row {
        std::int32_t row;
        const std::int64_t* value;  // [leaves]
    };
    CellTrees trees;
    std::vector<std::int32_t> cells;       // [features]
    std::vector<std::int32_t> variable;    // [features]
    std::vector<std::int64_t> first_leaf;  // [trees + 1]
    std::int32_t first_tree = 0;           // number of its first tree; points with one model share the numbers
    std::vector<Row> rows;
};

// A group: a tree at some points. Points with one model share it if they share the variables of all its splits.
struct TreeCopies {
    std::vector<std::int32_t> points;
    std::int32_t tree = 0;
};

// The groups and rows of `problem` (variables, bounds and clauses are set) and its trees. Leaves have no boxes.
// `copies` defines the groups.
Forest add_points(Problem& problem, const std::vector<PointTrees>& points, std::vector<TreeCopies>& copies);

}  // namespace treesens
