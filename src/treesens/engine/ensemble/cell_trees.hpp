// Exact evaluation of an ensemble over many rows of cells.
#pragma once

#include <cstdint>

namespace treesens {

// Columnar trees over the integer cells of a feature grid. All arrays are owned by the caller.
// A node with feature < 0 is a leaf and `leaf` is its number in the ensemble. An inner node sends a cell to the left
// child when cell <= cut, except that the missing cell of the feature follows `default_left`, and that a node with
// category_set >= 0 looks the cell up in its bit set.
struct CellTrees {
    std::int64_t trees = 0;
    const std::int32_t* root = nullptr;          // [trees]
    const std::int32_t* feature = nullptr;       // [nodes]
    const std::int32_t* cut = nullptr;           // [nodes]
    const std::int32_t* left = nullptr;          // [nodes]
    const std::int32_t* right = nullptr;         // [nodes]
    const std::int32_t* leaf = nullptr;          // [nodes]
    const std::uint8_t* default_left = nullptr;  // [nodes]
    const std::int32_t* category_set = nullptr;  // [nodes], -1 where the split is ordered
    const std::int64_t* set_offset = nullptr;    // [sets + 1], into set_member
    const std::uint8_t* set_member = nullptr;    // one byte per cell: 1 goes left
    const std::int32_t* missing_cell = nullptr;  // [features], -1 where the feature has none
};

// Whether an inner node sends a cell of its feature to the left child.
inline bool goes_left(const CellTrees& trees, std::int32_t node, std::int32_t cell) {
    if (trees.category_set[node] >= 0) return trees.set_member[trees.set_offset[trees.category_set[node]] + cell] != 0;
    if (cell == trees.missing_cell[trees.feature[node]]) return trees.default_left[node] != 0;
    return cell <= trees.cut[node];
}

// The leaf that a row of cells reaches in one tree.
inline std::int32_t reach_leaf(const CellTrees& trees, std::int64_t tree, const std::int32_t* row) {
    std::int32_t node = trees.root[tree];
    while (trees.feature[node] >= 0) {
        node = goes_left(trees, node, row[trees.feature[node]]) ? trees.left[node] : trees.right[node];
    }
    return trees.leaf[node];
}

// Writes the leaf of every row in every tree to out[rows][trees].
void reach_leaves(const CellTrees& trees, const std::int32_t* cells, std::int64_t rows, std::int64_t features,
                  std::int32_t* out);

}  // namespace treesens
