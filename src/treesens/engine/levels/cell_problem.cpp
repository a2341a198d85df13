#include "levels/cell_problem.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "problem/checked.hpp"

namespace treesens {

namespace {

// Nodes over single cuts. A node that sends the missing cell or categories elsewhere becomes a chain of cuts, whose
// sides are the same two subtrees again and again.
class Converter {
public:
    Converter(const PointTrees& point, std::int32_t first_leaf, std::vector<TreeNode>& nodes)
        : point_(point), first_leaf_(first_leaf), nodes_(nodes) {}

    // Throws std::invalid_argument where a leaf belongs to another tree.
    std::int32_t convert_tree(std::int64_t tree) {
        tree_ = tree;
        return convert(point_.trees.root[tree]);
    }

private:
    std::int32_t convert(std::int32_t source) {
        const CellTrees& trees = point_.trees;
        const std::int32_t f = trees.feature[source];
        if (f < 0) {
            const std::int32_t leaf = trees.leaf[source];
            if (leaf < point_.first_leaf[tree_] || leaf >= point_.first_leaf[tree_ + 1])
                throw std::invalid_argument("a leaf belongs to another tree");
            return ~(first_leaf_ + leaf);
        }
        runs(source);
        const std::vector<std::pair<Cell, bool>> ends = ends_;  // last cell of each run, and whether it goes left
        if (ends.size() == 1) return convert(ends[0].second ? trees.left[source] : trees.right[source]);
        const std::int32_t first = narrow<std::int32_t>(nodes_.size());
        for (std::size_t i = 0; i + 1 < ends.size(); ++i) nodes_.push_back({point_.variable[f], ends[i].first, 0, 0});
        const std::int32_t left = convert(trees.left[source]);
        const std::int32_t right = convert(trees.right[source]);
        for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
            const bool last = i + 2 == ends.size();
            TreeNode& node = nodes_[first + i];
            node.left = ends[i].second ? left : right;
            node.right = last ? (ends[i + 1].second ? left : right) : first + narrow<std::int32_t>(i) + 1;
        }
        return first;
    }

    void runs(std::int32_t source) {
        const CellSplit split = point_.trees.split(source);
        const Cell last = point_.cells[point_.trees.feature[source]] - 1;
        ends_.clear();
        for (Cell first = 0; first <= last; first = ends_.back().first + 1) {
            ends_.emplace_back(split.run_end(first, last), split.goes_left(first));
        }
    }

    const PointTrees& point_;
    const std::int32_t first_leaf_;
    std::vector<TreeNode>& nodes_;
    std::int64_t tree_ = 0;
    std::vector<std::pair<Cell, bool>> ends_;
};

}  // namespace

Forest add_points(Problem& p, const std::vector<PointTrees>& points) {
    Forest forest;
    p.group_offset.assign(1, 0);
    p.coefficient_offset.assign(1, 0);
    for (const PointTrees& point : points) {
        const std::int64_t base = p.group_offset.back();
        Converter converter(point, narrow<std::int32_t>(base), forest.nodes);
        for (std::int64_t t = 0; t < point.trees.trees; ++t) {
            p.group_tree.push_back(point.first_tree + narrow<std::int32_t>(t));
            p.group_offset.push_back(base + point.first_leaf[t + 1]);
            forest.root.push_back(converter.convert_tree(t));
        }
        for (std::int64_t l = 0; l < point.first_leaf.back(); ++l) {
            for (const PointTrees::Row& row : point.rows) {
                p.coefficient_row.push_back(row.row);
                p.coefficient_value.push_back(row.value[l]);
            }
            p.coefficient_offset.push_back(narrow<std::int64_t>(p.coefficient_value.size()));
        }
    }
    validate(p);
    forest.nodes.shrink_to_fit();
    index_forest(p, forest);
    drop_coefficients(p);
    return forest;
}

}  // namespace treesens
