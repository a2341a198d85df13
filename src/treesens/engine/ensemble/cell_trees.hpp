// Exact evaluation of an ensemble over many rows of cells.
#pragma once

#include <cstdint>

#include "ensemble/cell_split.hpp"

namespace treesens {

// Columnar trees over the integer cells of a feature grid. All arrays are owned by the caller.
// A node with feature < 0 is a leaf and `leaf` is its number in the ensemble. An inner node sends a cell to the left
// child if cell <= cut, except that the missing cell of the feature follows `default_left`, and that a node with
// category_set >= 0 looks the cell up in its set.
struct CellTrees {
    std::int64_t trees = 0;
    const std::int32_t* root = nullptr;          // [trees]
    const std::int32_t* feature = nullptr;       // [nodes]
    const std::int32_t* cut = nullptr;           // [nodes]
    const std::int32_t* left = nullptr;          // [nodes]
    const std::int32_t* right = nullptr;         // [nodes]
    const std::int32_t* leaf = nullptr;          // [nodes]
    const std::uint8_t* default_left = nullptr;  // [nodes]
    const std::int32_t* category_set = nullptr;  // [nodes], -1 if the split has an order
    const std::int64_t* set_offset = nullptr;    // [sets + 1], into set_member
    const std::uint8_t* set_member = nullptr;    // one byte per cell: 1 goes left
    const std::int32_t* missing_cell = nullptr;  // [features], -1 if the feature has none

    // The split of an inner node.
    CellSplit split(std::int32_t node) const {
        const std::int32_t set = category_set[node];
        return {cut[node], missing_cell[feature[node]], default_left[node] != 0,
                set < 0 ? nullptr : set_member + set_offset[set]};
    }
};

// The leaf that a row of cells reaches in one tree.
inline std::int32_t reach_leaf(const CellTrees& trees, std::int64_t tree, const std::int32_t* row) {
    std::int32_t node = trees.root[tree];
    while (trees.feature[node] >= 0) {
        node = trees.split(node).goes_left(row[trees.feature[node]]) ? trees.left[node] : trees.right[node];
    }
    return trees.leaf[node];
}

// Writes the leaf of every row in every tree to out[rows][trees].
inline void reach_leaves(const CellTrees& trees, const std::int32_t* cells, std::int64_t rows, std::int64_t features,
                         std::int32_t* out) {
    // Trees outside, rows inside: a tree stays in the cache while all rows pass through it.
    for (std::int64_t t = 0; t < trees.trees; ++t) {
        for (std::int64_t r = 0; r < rows; ++r) {
            out[r * trees.trees + t] = reach_leaf(trees, t, cells + r * features);
        }
    }
}

}  // namespace treesens
