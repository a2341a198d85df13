// The trees of a model with one output's values at their leaves, and the values that they reach over a box of cells.
#pragma once

#include <cstdint>
#include <vector>

#include "ensemble/cell_trees.hpp"

namespace treesens {

// A box of cells, a mask [cells] per feature one after the other, with an index of the split sides that it meets.
class CellBox {
public:
    // `cells` and `missing_cell` (-1 without) per feature.
    CellBox(const std::vector<std::int32_t>& cells, const std::vector<std::int32_t>& missing_cell);

    const std::uint8_t* mask(std::int32_t feature) const { return mask_.data() + offset_[feature]; }
    std::int32_t width(std::int32_t feature) const { return offset_[feature + 1] - offset_[feature]; }
    void set(std::int32_t feature, const std::uint8_t* chosen);
    bool has_missing(std::int32_t feature) const {
        return missing_cell_[feature] >= 0 && mask(feature)[missing_cell_[feature]] != 0;
    }
    // True if a cell from `low` to `high` is chosen, ignoring the missing one.
    bool has_any(std::int32_t feature, std::int32_t low, std::int32_t high) const {
        const std::int32_t* below = below_.data() + offset_[feature] + feature;
        return low <= high && below[high + 1] > below[low];
    }

private:
    std::vector<std::int32_t> offset_;  // [features + 1]
    std::vector<std::int32_t> missing_cell_;
    std::vector<std::uint8_t> mask_;
    std::vector<std::int32_t> below_;  // [cells + features]: chosen cells with an order before each
};

class ValueTrees {
public:
    struct Range {
        std::int64_t least;
        std::int64_t most;
    };
    // Where a walk down a tree is: the cells that the splits above leave, per feature. Trees of files may be too deep
    // for calls.
    class Walk {
    public:
        explicit Walk(const std::vector<std::int32_t>& cells);

    private:
        friend class ValueTrees;
        struct Cells {
            std::int32_t low;
            std::int32_t high;
            std::int64_t mask;  // where in masks_; -1: those of the box
            bool missing;
        };
        // Enters a node from the side of its parent, or (node -1) restores a feature.
        struct Step {
            std::int32_t node;
            std::int32_t parent;
            bool left;
            std::int32_t feature;
            Cells before;
        };
        std::vector<Cells> cells_;  // [features]
        std::vector<std::uint8_t> masks_;
        std::vector<Step> steps_;
    };

    // Copies the required parts of `trees` with `nodes` nodes, whose children come after their parents; `value`
    // [leaves]. A sum over trees may lie `slack` below the exact one, `base` is added to it.
    ValueTrees(const CellTrees& trees, std::int64_t nodes, const std::int64_t* value, std::vector<std::int32_t> cells,
               std::int64_t base, std::int64_t slack);

    std::int32_t trees() const { return static_cast<std::int32_t>(root_.size()); }
    const std::vector<std::int32_t>& cells() const { return cells_; }
    const std::vector<std::int32_t>& missing_cell() const { return missing_cell_; }
    std::int64_t base() const { return base_; }
    std::int64_t slack() const { return slack_; }
    // The trees that split on a feature.
    const std::vector<std::int32_t>& asking(std::int32_t feature) const { return asking_[feature]; }
    // The values that a tree reaches in a box, and those of `known`, which are skipped. They are exact for features
    // whose splits all have an order, or none.
    Range reach(std::int32_t tree, const CellBox& box, Range known, Walk& walk) const;
    // Narrows masks [cells of all features] to the cells that lead to the leaves of a point [features].
    void keep_leaves(const std::int32_t* point, std::uint8_t* masks) const;

private:
    struct Node {
        std::int64_t least = 0;  // of the leaves below, or the value of the leaf
        std::int64_t most = 0;
        std::int32_t feature = -1;  // -1: a leaf
        std::int32_t cut = -1;
        std::int32_t left = -1;
        std::int32_t right = -1;
        std::int32_t set = -1;  // -1: the split has an order
        bool default_left = false;
    };

    CellSplit split(const Node& node) const {
        return {node.cut, missing_cell_[node.feature], node.default_left,
                node.set < 0 ? nullptr : set_member_.data() + set_offset_[node.set]};
    }
    void narrow(const Node& node, bool left, const CellBox& box, Walk& walk) const;
    bool meets(const Node& node, bool left, const CellBox& box, const Walk& walk) const;

    std::vector<Node> nodes_;
    std::vector<std::int32_t> root_;
    std::vector<std::int32_t> cells_;
    std::vector<std::int32_t> missing_cell_;
    std::vector<std::int64_t> set_offset_;
    std::vector<std::uint8_t> set_member_;
    std::vector<std::vector<std::int32_t>> asking_;  // [features]
    std::int64_t base_;
    std::int64_t slack_;
};

}  // namespace treesens
