#include "levels/leaf_moves.hpp"

#include <algorithm>
#include <numeric>

#include "problem/checked.hpp"

namespace treesens {

Costs::Costs(const Problem& problem, std::vector<std::int64_t> cost) : problem_(problem), cost_(std::move(cost)) {
    for (std::int32_t v = 0; v < problem.variables(); ++v) {
        const std::int64_t* c = cost_.data() + problem.cell_offset[v];
        Cell first = 0;
        Cell last = problem.size[v] - 1;
        while (first < last && c[first] < 0) ++first;
        while (last > first && c[last] < 0) --last;
        const Cell home = narrow<Cell>(std::min_element(c + first, c + last + 1) - c);
        bool falls = c[home] >= 0;
        for (Cell k = first; k < home; ++k) falls = falls && c[k] >= c[k + 1];
        for (Cell k = home; k < last; ++k) falls = falls && c[k] <= c[k + 1];
        home_.push_back(falls ? home : -1);
        first_.push_back(first);
        last_.push_back(last);
    }
}

std::int64_t Costs::sum(const std::vector<Cell>& x) const {
    std::int64_t total = 0;
    for (std::int32_t v = 0; v < problem_.variables(); ++v) total += of(v, x[v]);
    return total;
}

Cell Costs::cheapest(std::int32_t v, Cell low, Cell high) const {
    if (home_[v] >= 0) {
        const Cell k = std::clamp(home_[v], low, high);
        return k >= first_[v] && k <= last_[v] ? k : -1;
    }
    Cell best = -1;
    for (Cell k = low; k <= high; ++k) {
        if (of(v, k) >= 0 && (best < 0 || of(v, k) < of(v, best))) best = k;
    }
    return best;
}

LeafMoves::LeafMoves(const Problem& problem, const Forest& forest, const Costs& costs,
                     const std::vector<std::int64_t>& bound)
    : problem_(problem),
      forest_(forest),
      costs_(costs),
      bound_(bound),
      clauses_(problem),
      slack_(problem.rows, 0),
      low_side_(problem.variables()),
      high_side_(problem.variables()),
      low_(problem.variables(), 0),
      high_(problem.variables(), 0),
      leaf_(problem.groups(), 0) {}

bool LeafMoves::solves(const std::vector<Cell>& x) {
    work_ += problem_.groups() * 8;
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (costs_.of(v, x[v]) < 0 || !problem_.allowed[problem_.cell_offset[v] + x[v]]) return false;
    }
    if (!clauses_.satisfied(x.data())) return false;
    evaluate(problem_, forest_, bound_, x.data(), slack_.data());
    return std::all_of(slack_.begin(), slack_.begin() + problem_.constraints, [](std::int64_t s) { return s >= 0; });
}

// The box of a leaf, and the groups that set the ends of the intersection of all leaves' boxes.
void LeafMoves::find_box(const std::vector<Cell>& x) {
    path_offset_.assign(1, 0);
    path_.clear();
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        low_side_[v] = {0, 0, -1};
        high_side_[v] = {problem_.size[v] - 1, problem_.size[v] - 1, -1};
    }
    for (std::int32_t g = 0; g < problem_.groups(); ++g) {
        const std::size_t start = path_.size();
        std::int32_t node = forest_.root[g];
        while (node >= 0) {
            const TreeNode& n = forest_.nodes[node];
            if (std::find(path_.begin() + narrow<std::int64_t>(start), path_.end(), n.variable) == path_.end()) {
                path_.push_back(n.variable);
                low_[n.variable] = 0;
                high_[n.variable] = problem_.size[n.variable] - 1;
            }
            if (x[n.variable] <= n.cut)
                high_[n.variable] = std::min(high_[n.variable], n.cut);
            else
                low_[n.variable] = std::max(low_[n.variable], n.cut + 1);
            node = x[n.variable] <= n.cut ? n.left : n.right;
        }
        leaf_[g] = ~node;
        for (std::size_t i = start; i < path_.size(); ++i) narrow_box(g, path_[i], low_[path_[i]], high_[path_[i]]);
        path_offset_.push_back(narrow<std::int64_t>(path_.size()));
    }
    work_ += narrow<std::int64_t>(path_.size()) * 4;
}

void LeafMoves::narrow_box(std::int32_t group, std::int32_t v, Cell low, Cell high) {
    Side& l = low_side_[v];
    if (low > l.end)
        l = {low, l.end, group};
    else if (low == l.end)
        l = {low, low, -1};
    else
        l.other_end = std::max(l.other_end, low);
    Side& h = high_side_[v];
    if (high < h.end)
        h = {high, h.end, group};
    else if (high == h.end)
        h = {high, high, -1};
    else
        h.other_end = std::min(h.other_end, high);
}

// True if, without the group, the point could be cheaper, or other leaves could be reached.
bool LeafMoves::binds(std::int32_t group) const {
    for (std::int64_t i = path_offset_[group]; i < path_offset_[group + 1]; ++i) {
        if (low_side_[path_[i]].owner == group || high_side_[path_[i]].owner == group) return true;
    }
    return false;
}

std::int64_t LeafMoves::least(std::int32_t v) const {
    const Cell k = costs_.cheapest(v, low_[v], high_[v]);
    return k < 0 ? INT64_MAX : costs_.of(v, k);
}

// Every leaf of a group in the box of all others.
void LeafMoves::relax(std::int32_t group, const std::vector<Cell>& x) {
    std::int64_t cost = now_;
    for (std::int64_t i = path_offset_[group]; i < path_offset_[group + 1]; ++i) {
        const std::int32_t v = path_[i];
        const Side& l = low_side_[v];
        const Side& h = high_side_[v];
        low_[v] = l.owner == group ? l.other_end : l.end;
        high_[v] = h.owner == group ? h.other_end : h.end;
        cost += least(v) - costs_.of(v, x[v]);
    }
    visit(group, forest_.root[group], cost);
    for (std::int64_t i = path_offset_[group]; i < path_offset_[group + 1]; ++i) {
        low_[path_[i]] = low_side_[path_[i]].end;
        high_[path_[i]] = high_side_[path_[i]].end;
    }
}

void LeafMoves::visit(std::int32_t group, std::int32_t node, std::int64_t cost) {
    ++work_;
    if (cost >= now_) return;
    if (node < 0) {
        consider(group, ~node, cost);
        return;
    }
    const TreeNode& n = forest_.nodes[node];
    const std::int32_t v = n.variable;
    const Cell low = low_[v];
    const Cell high = high_[v];
    const std::int64_t before = least(v);
    if (low <= n.cut) {
        high_[v] = std::min(high, n.cut);
        const std::int64_t here = least(v);
        if (here != INT64_MAX) visit(group, n.left, cost - before + here);
        high_[v] = high;
    }
    if (high > n.cut) {
        low_[v] = std::max(low, n.cut + 1);
        const std::int64_t here = least(v);
        if (here != INT64_MAX) visit(group, n.right, cost - before + here);
        low_[v] = low;
    }
}

// Keeps a leaf if every row holds with it in place of the present one.
void LeafMoves::consider(std::int32_t group, std::int32_t leaf, std::int64_t cost) {
    const std::int64_t* old = forest_.values(problem_, group, leaf_[group]);
    const std::int64_t* now = forest_.values(problem_, group, leaf);
    for (std::int32_t j = 0; j < forest_.rows_of(group); ++j) {
        const std::int32_t r = forest_.group_rows[forest_.row_offset[group] + j];
        if (r < problem_.constraints && slack_[r] - old[j] + now[j] < 0) return;
    }
    found_.push_back({cost, group, leaf});
}

// The cheapest point of the present box, if it is a solution.
bool LeafMoves::project(std::vector<Cell>& x) {
    std::vector<Cell> y = x;
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        const Cell k = costs_.cheapest(v, low_[v], high_[v]);
        if (k >= 0 && costs_.of(v, k) < costs_.of(v, x[v])) y[v] = k;
    }
    if (!solves(y)) return false;
    x = std::move(y);
    return true;
}

// Narrows the box of all others to a leaf of the group; false if the leaf is not below the node.
bool LeafMoves::enter(std::int32_t group, std::int32_t node, std::int32_t leaf) {
    if (node < 0) return ~node == leaf;
    const TreeNode& n = forest_.nodes[node];
    const Cell low = low_[n.variable];
    const Cell high = high_[n.variable];
    if (low <= n.cut) {
        high_[n.variable] = std::min(high, n.cut);
        if (enter(group, n.left, leaf)) return true;
        high_[n.variable] = high;
    }
    if (high > n.cut) {
        low_[n.variable] = std::max(low, n.cut + 1);
        if (enter(group, n.right, leaf)) return true;
        low_[n.variable] = low;
    }
    return false;
}

bool LeafMoves::apply(const Move& move, std::vector<Cell>& x) {
    for (std::int64_t i = path_offset_[move.group]; i < path_offset_[move.group + 1]; ++i) {
        const std::int32_t v = path_[i];
        if (low_side_[v].owner == move.group) low_[v] = low_side_[v].other_end;
        if (high_side_[v].owner == move.group) high_[v] = high_side_[v].other_end;
    }
    bool better = enter(move.group, forest_.root[move.group], move.leaf);
    std::vector<Cell> y = x;
    for (std::int32_t v = 0; v < problem_.variables() && better; ++v) {
        const Cell k = costs_.cheapest(v, low_[v], high_[v]);
        better = k >= 0;
        if (better && (y[v] < low_[v] || y[v] > high_[v] || costs_.of(v, k) < costs_.of(v, y[v]))) y[v] = k;
    }
    better = better && costs_.sum(y) < now_ && solves(y);
    if (better) x = std::move(y);
    return better;
}

void LeafMoves::descend(std::vector<Cell>& x) {
    constexpr std::size_t kTried = 8;
    for (;;) {
        find_box(x);
        for (std::int32_t v = 0; v < problem_.variables(); ++v) {
            low_[v] = low_side_[v].end;
            high_[v] = high_side_[v].end;
        }
        project(x);
        if (!solves(x)) return;
        now_ = costs_.sum(x);
        found_.clear();
        for (std::int32_t g = 0; g < problem_.groups(); ++g) {
            if (binds(g)) relax(g, x);
        }
        const std::size_t tried = std::min(kTried, found_.size());
        std::partial_sort(found_.begin(), found_.begin() + narrow<std::int64_t>(tried), found_.end(),
                          [](const Move& a, const Move& b) { return a.cost < b.cost; });
        bool moved = false;
        for (std::size_t i = 0; i < tried && !moved; ++i) {
            const std::vector<Cell> low = low_;
            const std::vector<Cell> high = high_;
            moved = apply(found_[i], x);
            if (!moved) {
                low_ = low;
                high_ = high;
            }
        }
        if (!moved) return;
    }
}

void LeafMoves::return_home(std::vector<Cell>& x, std::mt19937_64& random) {
    std::vector<std::int32_t> order;
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        const Cell home = costs_.cheapest(v, 0, problem_.size[v] - 1);
        if (home >= 0 && costs_.of(v, home) < costs_.of(v, x[v])) order.push_back(v);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (const std::int32_t v : order) {
        const Cell before = x[v];
        x[v] = costs_.cheapest(v, 0, problem_.size[v] - 1);
        if (!solves(x)) x[v] = before;
    }
    descend(x);
}

}  // namespace treesens
