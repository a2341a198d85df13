#include "bound/join.hpp"

#include <algorithm>

#include "problem/checked.hpp"

namespace treesens {

namespace {
constexpr std::int64_t kStepsPerEntry = 16;
constexpr std::int64_t kStepsPerCheck = 1 << 12;
}  // namespace

Join::Join(const Problem& p, const Forest& f, const std::vector<RowSum>& rows, bool collapse)
    : p_(p), f_(f), rows_(rows), collapse_(collapse), low_(p.variables(), 0), high_(p.size) {
    for (Cell& h : high_) --h;
    // mixes_[r]: the prover's rows that contain row r of the problem
    mixes_.resize(p.rows);
    for (std::size_t m = 0; m < rows.size(); ++m) {
        for (std::int32_t r : rows[m]) mixes_[r].push_back(narrow<std::int32_t>(m));
    }
    // Relations between copies ("a.income <= b.income") are clauses of two literals.
    pairs_.resize(p.variables());
    rays_.resize(p.variables());
    for (std::int64_t c = 0; c < p.clauses(); ++c) {
        if (p.clause_offset[c + 1] - p.clause_offset[c] != 2) continue;
        const Literal& l = p.clause_literals[p.clause_offset[c]];
        const Literal& k = p.clause_literals[p.clause_offset[c] + 1];
        if (l.variable == k.variable) continue;
        add_pair(l, k);
        add_pair(k, l);
    }
    sort_rays();
}

void Join::add_pair(const Literal& own, const Literal& other) {
    const bool up = own.high == p_.size[own.variable] - 1;
    const bool other_up = other.high == p_.size[other.variable] - 1;
    if ((!up && own.low > 0) || (!other_up && other.low > 0)) {
        pairs_[own.variable].push_back({own, other});
        return;
    }
    std::vector<Rays>& list = rays_[own.variable];
    auto found = std::find_if(list.begin(), list.end(), [&](const Rays& r) {
        return r.other == other.variable && r.up == up && r.other_up == other_up;
    });
    if (found == list.end()) found = list.insert(list.end(), Rays{other.variable, up, other_up, {}, {}});
    found->bounds.push_back({up ? own.low : own.high, other_up ? other.low : other.high});
}

void Join::sort_rays() {
    for (std::vector<Rays>& list : rays_) {
        for (Rays& rays : list) {
            std::sort(rays.bounds.begin(), rays.bounds.end());
            const std::size_t n = rays.bounds.size();
            rays.best.resize(n);
            // A region that misses an upward ray misses all with larger bounds; for downward rays, all with smaller
            // ones.
            for (std::size_t step = 0; step < n; ++step) {
                const std::size_t i = rays.up ? n - 1 - step : step;
                const Cell bound = rays.bounds[i].second;
                const Cell so_far = step == 0 ? bound : rays.best[rays.up ? i + 1 : i - 1];
                rays.best[i] = rays.other_up ? std::max(bound, so_far) : std::min(bound, so_far);
            }
        }
    }
}

void Join::leave_out(std::int64_t least) {
    leaves_out_ = true;
    least_ = least;
    most_.resize(f_.nodes.size(), 0);
}

bool Join::run(const std::vector<std::int32_t>& groups, std::int64_t limit) {
    return walk(groups, limit, true);
}

bool Join::walk(const std::vector<std::int32_t>& groups, std::int64_t limit, bool writes_boxes) {
    writes_boxes_ = writes_boxes;
    entries.clear();
    literals.clear();
    values.clear();
    limit_ = limit;
    steps_ = 0;
    groups_ = groups;
    left_out_ = false;
    std::vector<Place> places;
    for (std::int32_t g : groups) {
        places.push_back({f_.root[g], 0});
        if (leaves_out_) fill_most(g, f_.root[g]);
    }
    bool complete = visit(places);
    if (complete && entries.empty() && !left_out_) {
        // The clauses refute every combination of leaves: the prover finds this itself, from any entries.
        filter_ = false;
        complete = visit(places);
        filter_ = true;
    }
    narrowed_.clear();
    return complete;
}

std::int64_t Join::count(const std::vector<std::int32_t>& groups, std::int64_t limit) {
    return walk(groups, limit, false) ? static_cast<std::int64_t>(entries.size()) : limit + 1;
}

std::int64_t Join::leaf_sum(std::int32_t group, std::int32_t leaf) const {
    const std::int64_t* value = f_.values(p_, group, leaf);
    std::int64_t sum = 0;
    for (std::int32_t j = f_.row_offset[group]; j < f_.row_offset[group + 1]; ++j, ++value) {
        for (const std::int32_t m : mixes_[f_.group_rows[j]]) sum += m == 0 ? *value : 0;
    }
    return sum;
}

std::int64_t Join::fill_most(std::int32_t group, std::int32_t node) {
    if (node < 0) return leaf_sum(group, ~node);
    most_[node] = std::max(fill_most(group, f_.nodes[node].left), fill_most(group, f_.nodes[node].right));
    return most_[node];
}

// True if no combination of leaves below exceeds `least_`.
bool Join::hopeless(const std::vector<Place>& places) const {
    std::int64_t most = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::int32_t node = places[i].node;
        most += node < 0 ? leaf_sum(groups_[i], ~node) : most_[node];
    }
    return most <= least_;
}

bool Join::visit(std::vector<Place>& places) {
    if (++steps_ / kStepsPerEntry > limit_) return false;
    if (control_ != nullptr && steps_ % kStepsPerCheck == 0 && control_->expired()) throw SetupStopped();
    // Follows splits already decided by the region; takes the shallowest open one, so that copies stay in step.
    int next = -1;
    for (std::size_t i = 0; i < places.size(); ++i) {
        Place& at = places[i];
        while (at.node >= 0) {
            const TreeNode& n = f_.nodes[at.node];
            if (high_[n.variable] <= n.cut)
                at = {n.left, at.depth + 1};
            else if (low_[n.variable] > n.cut)
                at = {n.right, at.depth + 1};
            else
                break;
        }
        if (at.node >= 0 && (next < 0 || at.depth < places[next].depth)) next = narrow<int>(i);
    }
    if (leaves_out_ && hopeless(places)) {
        left_out_ = true;
        return true;
    }
    if (next < 0) return emit(places);
    const TreeNode node = f_.nodes[places[next].node];
    const Cell low = low_[node.variable];
    const Cell high = high_[node.variable];
    const std::size_t before = entries.size();
    const bool is_new = low == 0 && high == p_.size[node.variable] - 1;
    if (is_new) narrowed_.push_back(node.variable);
    std::vector<Place> side = places;
    high_[node.variable] = node.cut;
    bool complete = refuted(node.variable) || visit(side);
    high_[node.variable] = high;
    const std::size_t middle = entries.size();
    if (complete) {
        side = places;
        low_[node.variable] = node.cut + 1;
        complete = refuted(node.variable) || visit(side);
        low_[node.variable] = low;
    }
    if (is_new) narrowed_.pop_back();
    if (complete && collapse_ && middle == before + 1 && entries.size() == before + 2) merge(before);
    return complete;
}

// True if a clause of two literals is false in the whole region: no solution reaches these leaves together. Dropping
// them sharpens the bound, and is necessary to prove that a monotone model is monotone.
bool Join::refuted(std::int32_t v) const {
    if (!filter_) return false;
    const auto outside = [this](const Literal& l) { return high_[l.variable] < l.low || low_[l.variable] > l.high; };
    for (const auto& [mine, other] : pairs_[v]) {
        if (outside(mine) && outside(other)) return true;
    }
    return std::any_of(rays_[v].begin(), rays_[v].end(), [&](const Rays& rays) { return misses(rays, v); });
}

// True if the region misses both rays of some clause.
bool Join::misses(const Rays& rays, std::int32_t v) const {
    const auto& bounds = rays.bounds;
    Cell best = 0;
    if (rays.up) {
        const auto first = std::upper_bound(bounds.begin(), bounds.end(), high_[v],
                                            [](Cell cell, const auto& bound) { return cell < bound.first; });
        if (first == bounds.end()) return false;
        best = rays.best[static_cast<std::size_t>(first - bounds.begin())];
    } else {
        const auto end = std::lower_bound(bounds.begin(), bounds.end(), low_[v],
                                          [](const auto& bound, Cell cell) { return bound.first < cell; });
        if (end == bounds.begin()) return false;
        best = rays.best[static_cast<std::size_t>(end - bounds.begin()) - 1];
    }
    return rays.other_up ? high_[rays.other] < best : low_[rays.other] > best;
}

bool Join::emit(const std::vector<Place>& places) {
    if (static_cast<std::int64_t>(entries.size()) >= limit_) return false;
    const std::size_t at = values.size();
    values.resize(at + rows_.size(), 0);
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::int32_t g = groups_[i];
        const std::int64_t* value = f_.values(p_, g, ~places[i].node);
        for (std::int32_t j = f_.row_offset[g]; j < f_.row_offset[g + 1]; ++j, ++value) {
            for (std::int32_t m : mixes_[f_.group_rows[j]]) values[at + m] += *value;
        }
    }
    if (slop_ > 0 && values[at] >= -slop_ && values[at] < slop_) values[at] = slop_;
    entries.push_back({0, 0, static_cast<std::int64_t>(at)});
    write_box(entries.back());
    return true;
}

void Join::write_box(Entry& e) {
    e.first_literal = static_cast<std::int64_t>(literals.size());
    for (std::size_t i = 0; i < narrowed_.size() && writes_boxes_; ++i) {
        const std::int32_t v = narrowed_[i];
        literals.push_back({v, low_[v], high_[v]});
    }
    e.last_literal = static_cast<std::int64_t>(literals.size());
}

void Join::merge(std::size_t first) {
    const std::int64_t* a = values.data() + entries[first].first_value;
    const std::int64_t* b = values.data() + entries[first + 1].first_value;
    if (!std::equal(a, a + rows_.size(), b)) return;
    values.resize(entries[first + 1].first_value);
    entries.pop_back();
    literals.resize(entries[first].first_literal);
    write_box(entries[first]);
}

std::map<std::int32_t, std::vector<std::int32_t>> groups_by_tree(const Problem& p) {
    std::map<std::int32_t, std::vector<std::int32_t>> trees;
    for (std::int32_t g = 0; g < p.groups(); ++g) trees[p.group_tree[g]].push_back(g);
    return trees;
}

}  // namespace treesens
