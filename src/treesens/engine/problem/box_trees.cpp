#include "problem/box_trees.hpp"

#include <algorithm>

#include "problem/checked.hpp"

namespace treesens {

namespace {

struct Box {
    std::int64_t first;  // literals
    std::int64_t last;
    std::int32_t leaf;
};

// Rebuilds one group. A cut that no box straddles always exists when the boxes come from a tree; if it does not,
// straddling boxes go to both sides, which is correct for any partition.
class TreeBuilder {
public:
    TreeBuilder(const Problem& p, std::vector<TreeNode>& nodes)
        : p_(p), nodes_(nodes), low_(p.variables(), 0), high_(p.size), count_(p.variables(), 0) {
        for (Cell& h : high_) --h;
    }

    std::int32_t build(std::int32_t group) {
        boxes_.clear();
        for (std::int64_t l = p_.group_offset[group]; l < p_.group_offset[group + 1]; ++l) {
            for (std::int64_t b = p_.leaf_offset[l]; b < p_.leaf_offset[l + 1]; ++b) {
                boxes_.push_back({p_.box_offset[b], p_.box_offset[b + 1], narrow<std::int32_t>(l)});
            }
        }
        if (boxes_.empty()) throw std::invalid_argument("a group has no box");
        largest_ = static_cast<std::int64_t>(nodes_.size()) + 64 * static_cast<std::int64_t>(boxes_.size()) + 64;
        return split(0, boxes_.size());
    }

private:
    struct Cut {
        std::int32_t variable = -1;
        Cell at = 0;
    };

    std::int32_t split(std::size_t begin, std::size_t end) {
        if (begin == end) throw std::invalid_argument("the boxes of a group leave a gap");
        if (static_cast<std::int64_t>(nodes_.size()) > largest_)
            throw std::invalid_argument("the boxes of a group overlap");
        const Cut cut = end - begin == 1 ? only_box_fills_region(begin) : choose(begin, end);
        if (cut.variable < 0) {
            if (end - begin != 1) throw std::invalid_argument("the boxes of a group overlap");
            return ~boxes_[begin].leaf;
        }
        const std::int32_t v = cut.variable;
        const Cell low = low_[v];
        const Cell high = high_[v];
        const std::size_t mark = boxes_.size();
        const std::int32_t node = narrow<std::int32_t>(nodes_.size());
        nodes_.push_back({v, cut.at, 0, 0});
        std::int32_t child[2];
        for (int side = 0; side < 2; ++side) {
            low_[v] = side ? cut.at + 1 : low;
            high_[v] = side ? high : cut.at;
            for (std::size_t b = begin; b < end; ++b) {
                const Box box = boxes_[b];
                if (meets_region(box, v)) boxes_.push_back(box);
            }
            child[side] = split(mark, boxes_.size());
            boxes_.resize(mark);
        }
        low_[v] = low;
        high_[v] = high;
        // Two boxes of one leaf side by side: the question was not needed.
        if (child[0] < 0 && child[0] == child[1]) {
            nodes_.resize(node);
            return child[0];
        }
        nodes_[node].left = child[0];
        nodes_[node].right = child[1];
        return node;
    }

    bool meets_region(const Box& box, std::int32_t v) const {
        for (std::int64_t i = box.first; i < box.last; ++i) {
            const Literal& l = p_.literals[i];
            if (l.variable == v && (l.low > high_[v] || l.high < low_[v])) return false;
        }
        return true;
    }

    Cut only_box_fills_region(std::size_t b) const {
        for (std::int64_t i = boxes_[b].first; i < boxes_[b].last; ++i) {
            const Literal& l = p_.literals[i];
            if (l.low > low_[l.variable] || l.high < high_[l.variable]) {
                throw std::invalid_argument("the boxes of a group leave a gap");
            }
        }
        return {};
    }

    bool narrows(const Literal& l) const { return l.low > low_[l.variable] || l.high < high_[l.variable]; }

    // The most even cut that no box straddles; ties by feature (not by variable), so that the copies of a tree for two
    // points get the same shape and can be traversed in step.
    Cut choose(std::size_t begin, std::size_t end) {
        const std::int64_t n = static_cast<std::int64_t>(end - begin);
        touched_.clear();
        for (std::size_t b = begin; b < end; ++b) {
            for (std::int64_t i = boxes_[b].first; i < boxes_[b].last; ++i) {
                const Literal& l = p_.literals[i];
                if (!narrows(l)) continue;
                if (count_[l.variable]++ == 0) touched_.push_back(l.variable);
            }
        }
        Cut best;
        std::int64_t best_balance = 0;
        Cut any;
        std::int64_t any_count = 0;
        for (std::int32_t v : touched_) {
            if (count_[v] > any_count) {
                any_count = count_[v];
                any = boundary(begin, end, v);
            }
            if (count_[v] < n) continue;
            collect(begin, end, v);
            Cell reach = spans_[0].second;
            for (std::int64_t i = 1; i < n; ++i) {
                if (spans_[i].first > reach) {
                    const std::int64_t balance = std::min(i, n - i);
                    const bool tie = balance == best_balance && best.variable >= 0 &&
                                     (p_.feature[v] < p_.feature[best.variable] ||
                                      (p_.feature[v] == p_.feature[best.variable] && reach < best.at));
                    if (balance > best_balance || tie) {
                        best_balance = balance;
                        best = {v, reach};
                    }
                }
                reach = std::max(reach, spans_[i].second);
            }
        }
        for (std::int32_t v : touched_) count_[v] = 0;
        return best.variable >= 0 ? best : any;
    }

    void collect(std::size_t begin, std::size_t end, std::int32_t v) {
        spans_.clear();
        for (std::size_t b = begin; b < end; ++b) {
            for (std::int64_t i = boxes_[b].first; i < boxes_[b].last; ++i) {
                const Literal& l = p_.literals[i];
                if (l.variable == v && narrows(l))
                    spans_.emplace_back(std::max(l.low, low_[v]), std::min(l.high, high_[v]));
            }
        }
        std::sort(spans_.begin(), spans_.end());
    }

    Cut boundary(std::size_t begin, std::size_t end, std::int32_t v) {
        collect(begin, end, v);
        const auto& middle = spans_[spans_.size() / 2];
        return {v, middle.first > low_[v] ? middle.first - 1 : middle.second};
    }

    const Problem& p_;
    std::vector<TreeNode>& nodes_;
    std::vector<Cell> low_;
    std::vector<Cell> high_;
    std::vector<std::int64_t> count_;
    std::vector<std::int32_t> touched_;
    std::vector<std::pair<Cell, Cell>> spans_;
    std::vector<Box> boxes_;
    std::int64_t largest_ = 0;
};

void fill_values(const Problem& p, Forest& f) {
    f.row_offset.assign(1, 0);
    f.value_offset.assign(1, 0);
    std::vector<std::int32_t> place(p.rows, -1);
    for (std::int32_t g = 0; g < p.groups(); ++g) {
        const std::int64_t begin = p.coefficient_offset[p.group_offset[g]];
        const std::int64_t end = p.coefficient_offset[p.group_offset[g + 1]];
        const std::size_t first = f.group_rows.size();
        for (std::int64_t i = begin; i < end; ++i) {
            if (place[p.coefficient_row[i]] < 0 && p.coefficient_value[i] != 0) {
                place[p.coefficient_row[i]] = 0;
                f.group_rows.push_back(p.coefficient_row[i]);
            }
        }
        std::sort(f.group_rows.begin() + narrow<std::ptrdiff_t>(first), f.group_rows.end());
        const std::int32_t n = narrow<std::int32_t>(f.group_rows.size() - first);
        for (std::int32_t j = 0; j < n; ++j) place[f.group_rows[first + j]] = j;
        const std::int64_t leaves = p.group_offset[g + 1] - p.group_offset[g];
        f.value.resize(f.value.size() + leaves * n, 0);
        std::int64_t* out = f.value.data() + f.value_offset.back();
        for (std::int64_t l = 0; l < leaves; ++l) {
            const std::int64_t leaf = p.group_offset[g] + l;
            for (std::int64_t i = p.coefficient_offset[leaf]; i < p.coefficient_offset[leaf + 1]; ++i) {
                if (p.coefficient_value[i] != 0) out[l * n + place[p.coefficient_row[i]]] += p.coefficient_value[i];
            }
        }
        for (std::int32_t j = 0; j < n; ++j) place[f.group_rows[first + j]] = -1;
        f.row_offset.push_back(narrow<std::int32_t>(f.group_rows.size()));
        f.value_offset.push_back(static_cast<std::int64_t>(f.value.size()));
    }
}

}  // namespace

Forest build_forest(const Problem& problem) {
    if (!problem.has_boxes()) throw std::invalid_argument("the leaves have no boxes");
    Forest forest;
    TreeBuilder builder(problem, forest.nodes);
    for (std::int32_t g = 0; g < problem.groups(); ++g) forest.root.push_back(builder.build(g));
    index_forest(problem, forest);
    return forest;
}

void drop_coefficients(Problem& problem) {
    std::vector<std::int64_t>().swap(problem.coefficient_offset);
    std::vector<std::int32_t>().swap(problem.coefficient_row);
    std::vector<std::int64_t>().swap(problem.coefficient_value);
}

void index_forest(const Problem& problem, Forest& forest) {
    index_users(problem, forest);
    fill_values(problem, forest);
    forest.value.shrink_to_fit();
}

void index_users(const Problem& problem, Forest& forest) {
    // The nodes of a group are stored together, its root first.
    std::vector<std::vector<std::int32_t>> users(problem.variables());
    std::size_t n = 0;
    for (std::int32_t g = 0; g < problem.groups(); ++g) {
        if (forest.root[g] < 0) continue;
        std::size_t end = forest.nodes.size();
        for (std::int32_t next = g + 1; next < problem.groups(); ++next) {
            if (forest.root[next] < 0) continue;
            end = static_cast<std::size_t>(forest.root[next]);
            break;
        }
        for (; n < end; ++n) {
            auto& list = users[forest.nodes[n].variable];
            if (list.empty() || list.back() != g) list.push_back(g);
        }
    }
    forest.use_offset.assign(1, 0);
    for (const auto& list : users) {
        forest.use_group.insert(forest.use_group.end(), list.begin(), list.end());
        forest.use_offset.push_back(narrow<std::int32_t>(forest.use_group.size()));
    }
}

void evaluate(const Problem& p, const Forest& forest, const std::vector<std::int64_t>& bound, const Cell* x,
              std::int64_t* slack) {
    for (std::int32_t r = 0; r < p.rows; ++r) slack[r] = -bound[r];
    for (std::int32_t g = 0; g < p.groups(); ++g) {
        const std::int64_t* value = forest.values(p, g, forest.leaf_of(g, x));
        for (std::int32_t j = forest.row_offset[g]; j < forest.row_offset[g + 1]; ++j) {
            slack[forest.group_rows[j]] += *value++;
        }
    }
    if (!p.has_unary) return;
    for (std::int32_t r = 0; r < p.rows; ++r) {
        for (std::int32_t v = 0; v < p.variables(); ++v) slack[r] += p.unary_at(r, v, x[v]);
    }
}

}  // namespace treesens
