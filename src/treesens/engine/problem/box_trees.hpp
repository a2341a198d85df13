// Cell trees: every group as a binary tree over cells, rebuilt from the boxes of its leaves.
//
// Boxes alone would have to be tested one by one. A tree gives evaluation in O(depth), traversal with some variables
// left open (the block moves of local search) and the simultaneous traversal of the copies of a tree (factors.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "problem/problem.hpp"

namespace treesens {

// A child < 0 is the leaf ~child (its number in the problem).
struct TreeNode {
    std::int32_t variable;
    Cell cut;  // cells <= cut go left
    std::int32_t left;
    std::int32_t right;
};

struct Forest {
    std::vector<TreeNode> nodes;
    std::vector<std::int32_t> root;  // [groups]; < 0 when the group is a single leaf

    // The groups that split on a variable, CSR over variables.
    std::vector<std::int32_t> use_offset;
    std::vector<std::int32_t> use_group;

    // Coefficients made dense: group g touches the rows group_rows[row_offset[g] .. row_offset[g+1]), and leaf l of g
    // has its values at value + value_offset[g] + (l - first leaf of g) * number of rows of g.
    std::vector<std::int32_t> row_offset;
    std::vector<std::int32_t> group_rows;
    std::vector<std::int64_t> value_offset;
    std::vector<std::int64_t> value;

    std::int32_t leaf_of(std::int32_t group, const Cell* x) const {
        std::int32_t node = root[group];
        while (node >= 0) node = x[nodes[node].variable] <= nodes[node].cut ? nodes[node].left : nodes[node].right;
        return ~node;
    }
    std::int32_t rows_of(std::int32_t group) const { return row_offset[group + 1] - row_offset[group]; }
    const std::int64_t* values(const Problem& p, std::int32_t group, std::int32_t leaf) const {
        return value.data() + value_offset[group] + (leaf - p.group_offset[group]) * rows_of(group);
    }
};

// Throws std::invalid_argument when the boxes of a group do not partition the space, or there are none.
Forest build_forest(const Problem& problem);
// Frees the coefficients, which are replaced by a forest's values.
void drop_coefficients(Problem& problem);
// Who uses which variable, and the values of the leaves, of trees whose nodes and roots are there: a group after the
// other, the root first.
void index_forest(const Problem& problem, Forest& forest);
// Who uses which variable alone: for trees whose values are there, too.
void index_users(const Problem& problem, Forest& forest);

// slack[r] for all rows, exactly (without overflow: validate bounds the sums).
void evaluate(const Problem& problem, const Forest& forest, const std::vector<std::int64_t>& bound, const Cell* x,
              std::int64_t* slack);

}  // namespace treesens
