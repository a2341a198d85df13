#include "regions/value_trees.hpp"

#include <algorithm>
#include <utility>

namespace treesens {

CellBox::CellBox(const std::vector<std::int32_t>& cells, const std::vector<std::int32_t>& missing_cell)
    : offset_(1, 0), missing_cell_(missing_cell) {
    for (const std::int32_t n : cells) offset_.push_back(offset_.back() + n);
    mask_.assign(offset_.back(), 0);
    below_.assign(offset_.back() + cells.size(), 0);
}

void CellBox::set(std::int32_t feature, const std::uint8_t* chosen) {
    std::copy_n(chosen, width(feature), mask_.data() + offset_[feature]);
    std::int32_t* below = below_.data() + offset_[feature] + feature;
    for (std::int32_t k = 0; k < width(feature); ++k) {
        below[k + 1] = below[k] + (chosen[k] != 0 && k != missing_cell_[feature] ? 1 : 0);
    }
}

ValueTrees::ValueTrees(const CellTrees& trees, std::int64_t nodes, const std::int64_t* value,
                       std::vector<std::int32_t> cells, std::int64_t base, std::int64_t slack)
    : nodes_(nodes),
      root_(trees.root, trees.root + trees.trees),
      cells_(std::move(cells)),
      missing_cell_(trees.missing_cell, trees.missing_cell + cells_.size()),
      set_offset_(1, 0),
      asking_(cells_.size()),
      base_(base),
      slack_(slack) {
    for (std::int64_t n = nodes - 1; n >= 0; --n) {
        Node& node = nodes_[n];
        node.feature = trees.feature[n];
        if (node.feature < 0) {
            node.least = node.most = value[trees.leaf[n]];
            continue;
        }
        node.left = trees.left[n];
        node.right = trees.right[n];
        node.set = trees.category_set[n];
        node.default_left = trees.default_left[n] != 0;
        // No cell lies beyond these.
        node.cut = std::clamp(trees.cut[n], -1, cells_[node.feature] - 1);
        node.least = std::min(nodes_[node.left].least, nodes_[node.right].least);
        node.most = std::max(nodes_[node.left].most, nodes_[node.right].most);
        if (node.set < 0) continue;
        // A separate set for every node: the copy is the data read.
        const std::uint8_t* member = trees.set_member + trees.set_offset[node.set];
        set_member_.insert(set_member_.end(), member, member + cells_[node.feature]);
        node.set = static_cast<std::int32_t>(set_offset_.size()) - 1;
        set_offset_.push_back(static_cast<std::int64_t>(set_member_.size()));
    }
    std::vector<std::int32_t> stack;
    for (std::int32_t t = 0; t < this->trees(); ++t) {
        stack.assign(1, root_[t]);
        while (!stack.empty()) {
            const Node& node = nodes_[stack.back()];
            stack.pop_back();
            if (node.feature < 0) continue;
            std::vector<std::int32_t>& asking = asking_[node.feature];
            if (asking.empty() || asking.back() != t) asking.push_back(t);
            stack.push_back(node.left);
            stack.push_back(node.right);
        }
    }
}

ValueTrees::Walk::Walk(const std::vector<std::int32_t>& cells) {
    for (const std::int32_t n : cells) cells_.push_back({0, n - 1, -1, true});
}

// True if the box has a cell that the splits above leave and that goes to a side.
bool ValueTrees::meets(const Node& node, bool left, const CellBox& box, const Walk& walk) const {
    const Walk::Cells& cells = walk.cells_[node.feature];
    if (node.set < 0) {
        const bool here = left ? box.has_any(node.feature, cells.low, std::min(cells.high, node.cut))
                               : box.has_any(node.feature, std::max(cells.low, node.cut + 1), cells.high);
        return here || (node.default_left == left && cells.missing && box.has_missing(node.feature));
    }
    const std::uint8_t* mask = cells.mask < 0 ? box.mask(node.feature) : walk.masks_.data() + cells.mask;
    const CellSplit split = this->split(node);
    for (std::int32_t k = 0; k < cells_[node.feature]; ++k) {
        if (mask[k] && split.goes_left(k) == left) return true;
    }
    return false;
}

// Leaves the cells that go to a side.
void ValueTrees::narrow(const Node& node, bool left, const CellBox& box, Walk& walk) const {
    Walk::Cells& cells = walk.cells_[node.feature];
    if (node.set < 0) {
        cells.missing = cells.missing && node.default_left == left;
        if (left)
            cells.high = std::min(cells.high, node.cut);
        else
            cells.low = std::max(cells.low, node.cut + 1);
        return;
    }
    const std::size_t count = cells_[node.feature];
    const std::size_t end = walk.masks_.size();
    walk.masks_.resize(end + count);
    const std::uint8_t* mask = cells.mask < 0 ? box.mask(node.feature) : walk.masks_.data() + cells.mask;
    const CellSplit split = this->split(node);
    for (std::size_t k = 0; k < count; ++k)
        walk.masks_[end + k] = mask[k] && split.goes_left(static_cast<Cell>(k)) == left;
    cells.mask = static_cast<std::int64_t>(end);
}

ValueTrees::Range ValueTrees::reach(std::int32_t tree, const CellBox& box, Range known, Walk& walk) const {
    walk.steps_.assign(1, {root_[tree], -1, false, -1, {}});
    while (!walk.steps_.empty()) {
        const Walk::Step step = walk.steps_.back();
        walk.steps_.pop_back();
        if (step.node < 0) {
            Walk::Cells& cells = walk.cells_[step.feature];
            if (cells.mask != step.before.mask) walk.masks_.resize(cells.mask);
            cells = step.before;
            continue;
        }
        const Node& node = nodes_[step.node];
        if (node.least >= known.least && node.most <= known.most) continue;
        if (node.feature < 0) {
            known = {std::min(known.least, node.least), std::max(known.most, node.most)};
            continue;
        }
        if (step.parent >= 0) {
            const Node& parent = nodes_[step.parent];
            walk.steps_.push_back({-1, -1, false, parent.feature, walk.cells_[parent.feature]});
            narrow(parent, step.left, box, walk);
        }
        for (const bool left : {true, false}) {
            if (!meets(node, left, box, walk)) continue;
            walk.steps_.push_back({left ? node.left : node.right, step.node, left, -1, {}});
        }
    }
    return known;
}

void ValueTrees::keep_leaves(const std::int32_t* point, std::uint8_t* masks) const {
    std::vector<std::int32_t> low(cells_.size(), 0);
    std::vector<std::int32_t> high;
    std::vector<std::int64_t> offset(1, 0);
    std::vector<std::uint8_t> missing(cells_.size(), 1);
    for (const std::int32_t n : cells_) {
        high.push_back(n - 1);
        offset.push_back(offset.back() + n);
    }
    for (const std::int32_t root : root_) {
        std::int32_t at = root;
        while (nodes_[at].feature >= 0) {
            const Node& node = nodes_[at];
            const std::int32_t f = node.feature;
            const CellSplit split = this->split(node);
            const bool left = split.goes_left(point[f]);
            at = left ? node.left : node.right;
            if (node.set >= 0) {
                for (std::int32_t k = 0; k < cells_[f]; ++k) {
                    if (split.goes_left(k) != left) masks[offset[f] + k] = 0;
                }
                continue;
            }
            missing[f] = missing[f] && node.default_left == left;
            if (left)
                high[f] = std::min(high[f], node.cut);
            else
                low[f] = std::max(low[f], node.cut + 1);
        }
    }
    for (std::size_t f = 0; f < cells_.size(); ++f) {
        for (std::int32_t k = 0; k < cells_[f]; ++k) {
            const bool in = k == missing_cell_[f] ? missing[f] != 0 : low[f] <= k && k <= high[f];
            if (!in) masks[offset[f] + k] = 0;
        }
    }
}

}  // namespace treesens
