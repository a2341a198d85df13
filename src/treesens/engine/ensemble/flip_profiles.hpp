// Scores along one feature: of every cell at one point, and the extremes for every row of data.
#pragma once

#include <cstdint>

#include "ensemble/cell_trees.hpp"

namespace treesens {

// The traversal of all that look along one feature: the other features are at a point.

// The trees as they are. A tree to look into tells for each of its nodes whether it is a leaf and with what value, the
// node of the ensemble that it stands for, and its children.
struct WholeTrees {
    const CellTrees& trees;
    const std::int64_t* leaf_value;

    bool is_leaf(std::int32_t node) const { return trees.feature[node] < 0; }
    std::int64_t value(std::int32_t node) const { return leaf_value[trees.leaf[node]]; }
    std::int32_t source(std::int32_t node) const { return node; }
    std::int32_t left(std::int32_t node) const { return trees.left[node]; }
    std::int32_t right(std::int32_t node) const { return trees.right[node]; }
};

// Adds what the cells low..high of `feature` reach below a node to the differences `profile` [cells + 1], whose running
// sums are the values of the leaves. `row` holds the cells of all other features.
template <typename Tree>
void add_profile(const CellTrees& trees, const Tree& tree, std::int32_t node, const std::int32_t* row,
                 std::int64_t feature, std::int32_t low, std::int32_t high, std::int64_t* profile) {
    while (!tree.is_leaf(node)) {
        const std::int32_t source = tree.source(node);
        const std::int32_t f = trees.feature[source];
        const CellSplit split = trees.split(source);
        if (f != feature) {
            node = split.goes_left(row[f]) ? tree.left(node) : tree.right(node);
            continue;
        }
        // One run of cells at a time; the last one goes on in this loop.
        for (Cell end = split.run_end(low, high); end < high; end = split.run_end(low, high)) {
            const std::int32_t child = split.goes_left(low) ? tree.left(node) : tree.right(node);
            add_profile(trees, tree, child, row, feature, low, end, profile);
            low = end + 1;
        }
        node = split.goes_left(low) ? tree.left(node) : tree.right(node);
    }
    const std::int64_t value = tree.value(node);
    profile[low] += value;
    profile[high + 1] -= value;
}

// Real rows first: for every row of data, the highest and the lowest score that changing one feature alone can reach.
// leaf_value[leaf] is the exact contribution of a leaf; sums must fit int64 (the binding checks). `allowed` marks the
// cells of `feature` to be tried. Outputs have one entry per row; cells are the first that reach the extreme.
struct FlipProfiles {
    std::int64_t* highest;
    std::int64_t* lowest;
    std::int32_t* highest_cell;
    std::int32_t* lowest_cell;
};

void flip_profiles(const CellTrees& trees, const std::int64_t* leaf_value, std::int32_t feature,
                   std::int32_t feature_cells, const std::uint8_t* allowed, const std::int32_t* cells,
                   std::int64_t rows, std::int64_t features, const FlipProfiles& out);

}  // namespace treesens
