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

// True if two points with the same trees share the variables of all splits in a subtree.
bool asks_the_same(const PointTrees& one, const PointTrees& other, std::int32_t node) {
    const std::int32_t f = one.trees.feature[node];
    return f < 0 || (one.variable[f] == other.variable[f] && asks_the_same(one, other, one.trees.left[node]) &&
                     asks_the_same(one, other, one.trees.right[node]));
}

// The groups of all points; points that share all variables of a tree's splits have one group for it.
std::vector<TreeCopies> join_copies(const std::vector<PointTrees>& points) {
    std::vector<TreeCopies> groups;
    std::vector<std::vector<std::int32_t>> group_of(points.size());
    for (std::int32_t p = 0; p < narrow<std::int32_t>(points.size()); ++p) {
        for (std::int32_t t = 0; t < points[p].trees.trees; ++t) {
            std::int32_t group = -1;
            for (std::int32_t q = 0; q < p && group < 0; ++q) {
                if (points[q].first_tree != points[p].first_tree) continue;
                if (points[q].trees.trees != points[p].trees.trees)
                    throw std::invalid_argument("points with one model have different trees");
                if (asks_the_same(points[p], points[q], points[p].trees.root[t])) group = group_of[q][t];
            }
            if (group < 0) {
                group = narrow<std::int32_t>(groups.size());
                groups.push_back({{}, t});
            }
            groups[group].points.push_back(p);
            group_of[p].push_back(group);
        }
    }
    return groups;
}

}  // namespace

Forest add_points(Problem& p, const std::vector<PointTrees>& points, std::vector<TreeCopies>& copies) {
    copies = join_copies(points);
    Forest forest;
    p.group_offset.assign(1, 0);
    p.coefficient_offset.assign(1, 0);
    std::vector<std::int64_t> sum(p.rows, 0);
    for (const TreeCopies& group : copies) {
        const PointTrees& first = points[group.points[0]];
        const std::int64_t begin = first.first_leaf[group.tree];
        const std::int64_t end = first.first_leaf[group.tree + 1];
        // The leaves of a group begin behind those of the last one; those of a point begin with its first tree.
        const std::int64_t base = p.group_offset.back() - begin;
        Converter converter(first, narrow<std::int32_t>(base), forest.nodes);
        p.group_tree.push_back(first.first_tree + group.tree);
        p.group_offset.push_back(base + end);
        forest.root.push_back(converter.convert_tree(group.tree));
        for (std::int64_t l = begin; l < end; ++l) {
            std::fill(sum.begin(), sum.end(), 0);
            for (const std::int32_t point : group.points) {
                for (const PointTrees::Row& row : points[point].rows) sum[row.row] += row.value[l];
            }
            for (std::int32_t r = 0; r < p.rows; ++r) {
                if (sum[r] == 0) continue;
                p.coefficient_row.push_back(r);
                p.coefficient_value.push_back(sum[r]);
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
