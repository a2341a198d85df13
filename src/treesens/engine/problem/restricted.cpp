#include "problem/restricted.hpp"

#include <algorithm>

#include "problem/checked.hpp"

namespace treesens {

std::vector<Cell> widened(const Restricted& part, const std::vector<Cell>& x) {
    std::vector<Cell> point = part.rest;
    for (std::size_t v = 0; v < part.variable.size(); ++v) {
        point[part.variable[v]] = part.cell[part.cell_offset[v] + x[v]];
    }
    return point;
}

Restrictor::Restrictor(const Problem& whole, const Forest& forest)
    : whole_(whole), forest_(forest), low_(whole.variables(), 0), high_(whole.variables(), 0) {}

Restricted Restrictor::restrict(const std::uint8_t* allowed, const std::int32_t* level,
                                const std::vector<std::int64_t>& bound, const std::vector<std::vector<Cell>>& hints) {
    Restricted part;
    if (!keep_cells(allowed) || !keep_clauses()) return part;
    specialise_groups();
    part.failing_row = failing(best_, bound);
    if (part.failing_row >= 0) return part;
    mark_cuts();
    number_cells(part, level);
    // Without variables every row is known: it holds everywhere, or is hopeless.
    if (part.variable.empty() || (clauses_.empty() && !whole_.has_objective && failing(worst_, bound) < 0)) {
        part.left = Left::point;
        if (part.variable.empty()) {
            for (std::int32_t r = 0; r < whole_.rows; ++r) part.slack.push_back(best_[r] - bound[r]);
        }
        return part;
    }
    part.left = Left::problem;
    write_rows(part, bound);
    write_groups(part);
    write_clauses(part);
    write_hints(part, hints);
    return part;
}

bool Restrictor::keep_cells(const std::uint8_t* allowed) {
    kept_.clear();
    first_.assign(1, 0);
    below_.resize(whole_.cells());
    for (std::int32_t v = 0; v < whole_.variables(); ++v) {
        const std::int32_t offset = whole_.cell_offset[v];
        for (Cell k = 0; k < whole_.size[v]; ++k) {
            if (allowed[offset + k] && whole_.allowed[offset + k]) kept_.push_back(k);
            below_[offset + k] = narrow<std::int32_t>(kept_.size()) - first_.back();
        }
        if (narrow<std::int32_t>(kept_.size()) == first_.back()) return false;
        first_.push_back(narrow<std::int32_t>(kept_.size()));
    }
    return true;
}

// Literals as ranges of places; what every cell, or none, satisfies is left out.
bool Restrictor::keep_clauses() {
    clauses_.clear();
    for (std::int64_t c = 0; c < whole_.clauses(); ++c) {
        Clause clause;
        bool satisfied = false;
        for (std::int64_t i = whole_.clause_offset[c]; i < whole_.clause_offset[c + 1] && !satisfied; ++i) {
            const Literal& l = whole_.clause_literals[i];
            const std::int32_t* below = below_.data() + whole_.cell_offset[l.variable];
            const Cell low = l.low == 0 ? 0 : below[l.low - 1];
            const Cell high = below[l.high] - 1;
            satisfied = low == 0 && high + 1 == first_[l.variable + 1] - first_[l.variable];
            if (low <= high) clause.literals.push_back({l.variable, low, high});
        }
        if (satisfied) continue;
        if (clause.literals.empty()) return false;
        clauses_.push_back(std::move(clause));
    }
    return true;
}

void Restrictor::specialise_groups() {
    nodes_.clear();
    root_.assign(whole_.groups(), 0);
    best_.assign(whole_.rows, 0);
    worst_.assign(whole_.rows, 0);
    constant_.assign(whole_.rows, 0);
    for (std::int32_t v = 0; v < whole_.variables(); ++v) {
        low_[v] = 0;
        high_[v] = first_[v + 1] - first_[v] - 1;
    }
    std::vector<std::int64_t> most;
    std::vector<std::int64_t> least;
    for (std::int32_t g = 0; g < whole_.groups(); ++g) {
        const std::size_t before = nodes_.size();
        root_[g] = specialise(g, forest_.root[g]);
        const std::int32_t* rows = forest_.group_rows.data() + forest_.row_offset[g];
        const std::int32_t n = forest_.rows_of(g);
        most.assign(n, INT64_MIN);
        least.assign(n, INT64_MAX);
        const auto take = [&](std::int32_t leaf) {
            const std::int64_t* value = forest_.values(whole_, g, leaf);
            for (std::int32_t j = 0; j < n; ++j) {
                most[j] = std::max(most[j], value[j]);
                least[j] = std::min(least[j], value[j]);
            }
        };
        if (root_[g] < 0) take(~root_[g]);
        for (std::size_t i = before; i < nodes_.size(); ++i) {
            if (nodes_[i].left < 0) take(~nodes_[i].left);
            if (nodes_[i].right < 0) take(~nodes_[i].right);
        }
        for (std::int32_t j = 0; j < n; ++j) {
            best_[rows[j]] += most[j];
            worst_[rows[j]] += least[j];
            if (root_[g] < 0) constant_[rows[j]] += most[j];
        }
    }
    for (std::int32_t r = 0; r < whole_.rows && whole_.has_unary; ++r) {
        for (std::int32_t v = 0; v < whole_.variables(); ++v) {
            std::int64_t highest = INT64_MIN;
            std::int64_t lowest = INT64_MAX;
            for (std::int32_t i = first_[v]; i < first_[v + 1]; ++i) {
                const std::int64_t value = whole_.unary_at(r, v, kept_[i]);
                highest = std::max(highest, value);
                lowest = std::min(lowest, value);
            }
            best_[r] += highest;
            worst_[r] += lowest;
        }
    }
}

// The subtree within the present ranges; one whose leaves all give the same is a leaf.
std::int32_t Restrictor::specialise(std::int32_t group, std::int32_t node) {
    while (node >= 0) {
        const TreeNode& n = forest_.nodes[node];
        const std::int32_t v = n.variable;
        const Cell cut = below_[whole_.cell_offset[v] + n.cut] - 1;
        if (high_[v] <= cut) {
            node = n.left;
        } else if (low_[v] > cut) {
            node = n.right;
        } else {
            const std::size_t mark = nodes_.size();
            nodes_.push_back({v, cut, 0, 0});
            const Cell high = high_[v];
            high_[v] = cut;
            const std::int32_t left = specialise(group, n.left);
            high_[v] = high;
            const Cell low = low_[v];
            low_[v] = cut + 1;
            const std::int32_t right = specialise(group, n.right);
            low_[v] = low;
            if (left < 0 && right < 0 && same_values(group, ~left, ~right)) {
                nodes_.resize(mark);
                return left;
            }
            nodes_[mark].left = left;
            nodes_[mark].right = right;
            return narrow<std::int32_t>(mark);
        }
    }
    return node;
}

bool Restrictor::same_values(std::int32_t group, std::int32_t one, std::int32_t other) const {
    const std::int64_t* first = forest_.values(whole_, group, one);
    return std::equal(first, first + forest_.rows_of(group), forest_.values(whole_, group, other));
}

std::int32_t Restrictor::failing(const std::vector<std::int64_t>& reached,
                                 const std::vector<std::int64_t>& bound) const {
    for (std::int32_t r = 0; r < whole_.constraints; ++r) {
        if (reached[r] < bound[r]) return r;
    }
    return -1;
}

void Restrictor::mark_cuts() {
    cut_.assign(kept_.size(), 0);
    for (const TreeNode& n : nodes_) cut_[first_[n.variable] + n.cut] = 1;
    for (const Clause& clause : clauses_) {
        for (const Literal& l : clause.literals) {
            if (l.low > 0) cut_[first_[l.variable] + l.low - 1] = 1;
            cut_[first_[l.variable] + l.high] = 1;
        }
    }
    for (std::int32_t v = 0; v < whole_.variables() && whole_.has_unary; ++v) {
        for (std::int32_t i = first_[v]; i + 1 < first_[v + 1]; ++i) {
            for (std::int32_t r = 0; r < whole_.rows && !cut_[i]; ++r) {
                cut_[i] = whole_.unary_at(r, v, kept_[i]) != whole_.unary_at(r, v, kept_[i + 1]);
            }
        }
    }
    // The last place of a variable ends its last cell, whatever is said of it.
    for (std::int32_t v = 0; v < whole_.variables(); ++v) cut_[first_[v + 1] - 1] = 0;
}

void Restrictor::number_cells(Restricted& part, const std::int32_t* level) {
    run_.resize(kept_.size());
    number_.assign(whole_.variables(), -1);
    part.rest.assign(whole_.variables(), 0);
    part.problem.cell_offset.assign(1, 0);
    const auto better = [&](std::int32_t v, Cell one, Cell other) {
        return level != nullptr && level[whole_.cell_offset[v] + one] < level[whole_.cell_offset[v] + other];
    };
    for (std::int32_t v = 0; v < whole_.variables(); ++v) {
        const std::size_t start = part.cell.size();
        std::int32_t run = 0;
        for (std::int32_t i = first_[v]; i < first_[v + 1]; ++i) {
            run_[i] = run;
            if (part.cell.size() == start + run)
                part.cell.push_back(kept_[i]);
            else if (better(v, kept_[i], part.cell.back()))
                part.cell.back() = kept_[i];
            run += cut_[i];
        }
        part.rest[v] = part.cell[start];
        if (run == 0) {
            for (std::int32_t r = 0; r < whole_.rows; ++r) constant_[r] += whole_.unary_at(r, v, part.cell[start]);
            part.cell.resize(start);
            continue;
        }
        number_[v] = narrow<std::int32_t>(part.variable.size());
        part.variable.push_back(v);
        part.problem.size.push_back(run + 1);
        part.problem.feature.push_back(whole_.feature[v]);
        part.problem.cell_offset.push_back(narrow<std::int32_t>(part.cell.size()));
    }
    part.cell_offset = part.problem.cell_offset;
}

void Restrictor::write_rows(Restricted& part, const std::vector<std::int64_t>& bound) const {
    Problem& p = part.problem;
    p.allowed.assign(p.cells(), 1);
    p.rows = whole_.rows;
    p.constraints = whole_.constraints;
    p.has_objective = whole_.has_objective;
    p.slack_weight = whole_.slack_weight;
    p.bound.resize(whole_.rows);
    for (std::int32_t r = 0; r < whole_.rows; ++r) p.bound[r] = bound[r] - constant_[r];
    p.has_unary = whole_.has_unary;
    if (!p.has_unary) return;
    p.unary.assign(static_cast<std::size_t>(p.rows) * p.cells(), 0);
    for (std::int32_t r = 0; r < p.rows; ++r) {
        for (std::int32_t v = 0; v < p.variables(); ++v) {
            for (std::int32_t i = p.cell_offset[v]; i < p.cell_offset[v + 1]; ++i) {
                p.unary[static_cast<std::size_t>(r) * p.cells() + i] =
                    whole_.unary_at(r, part.variable[v], part.cell[i]);
            }
        }
    }
}

// Trees without constant ones. Their leaves have no boxes, and only the forest has their values.
void Restrictor::write_groups(Restricted& part) {
    Problem& p = part.problem;
    Forest& f = part.forest;
    p.group_offset.assign(1, 0);
    f.row_offset.assign(1, 0);
    f.value_offset.assign(1, 0);
    leaves_ = 0;
    f.nodes.reserve(nodes_.size());
    for (std::int32_t g = 0; g < whole_.groups(); ++g) {
        if (root_[g] < 0) continue;
        p.group_tree.push_back(whole_.group_tree[g]);
        part.group.push_back(g);
        choose_rows(g);
        f.root.push_back(write_tree(part, g, root_[g]));
        ensure(f.root.back() >= 0, "a tree with several leaves has become one");
        p.group_offset.push_back(leaves_);
        for (const std::int32_t j : rows_) f.group_rows.push_back(forest_.group_rows[forest_.row_offset[g] + j]);
        f.row_offset.push_back(narrow<std::int32_t>(f.group_rows.size()));
        f.value_offset.push_back(static_cast<std::int64_t>(f.value.size()));
    }
    f.value.shrink_to_fit();
    index_users(p, f);
}

// The rows of a tree, as places among those that it has in the whole, to which some leaf that is left adds something.
void Restrictor::choose_rows(std::int32_t group) {
    rows_.clear();
    const std::int32_t n = forest_.rows_of(group);
    used_.assign(n, 0);
    mark_rows(group, root_[group]);
    for (std::int32_t j = 0; j < n; ++j) {
        if (used_[j]) rows_.push_back(j);
    }
}

void Restrictor::mark_rows(std::int32_t group, std::int32_t node) {
    if (node >= 0) {
        mark_rows(group, nodes_[node].left);
        mark_rows(group, nodes_[node].right);
        return;
    }
    const std::int64_t* value = forest_.values(whole_, group, ~node);
    for (std::size_t j = 0; j < used_.size(); ++j) used_[j] = used_[j] || value[j] != 0;
}

std::int32_t Restrictor::write_tree(Restricted& part, std::int32_t group, std::int32_t node) {
    if (node < 0) {
        const std::int64_t* value = forest_.values(whole_, group, ~node);
        for (const std::int32_t j : rows_) part.forest.value.push_back(value[j]);
        return ~leaves_++;
    }
    const TreeNode& n = nodes_[node];
    const std::int32_t here = narrow<std::int32_t>(part.forest.nodes.size());
    part.forest.nodes.push_back({number_[n.variable], run_[first_[n.variable] + n.cut], 0, 0});
    const std::int32_t left = write_tree(part, group, n.left);
    const std::int32_t right = write_tree(part, group, n.right);
    part.forest.nodes[here].left = left;
    part.forest.nodes[here].right = right;
    return here;
}

void Restrictor::write_clauses(Restricted& part) const {
    Problem& p = part.problem;
    p.clause_offset.assign(1, 0);
    for (const Clause& clause : clauses_) {
        for (const Literal& l : clause.literals) {
            const std::int32_t* run = run_.data() + first_[l.variable];
            p.clause_literals.push_back({number_[l.variable], run[l.low], run[l.high]});
        }
        p.clause_offset.push_back(narrow<std::int64_t>(p.clause_literals.size()));
    }
}

// Points of the whole, moved to the nearest cells that are left.
void Restrictor::write_hints(Restricted& part, const std::vector<std::vector<Cell>>& hints) const {
    Problem& p = part.problem;
    for (const std::vector<Cell>& x : hints) {
        for (const std::int32_t v : part.variable) {
            const std::int32_t places = first_[v + 1] - first_[v];
            const Cell k = x[v];
            std::int32_t place = std::min(std::max(below_[whole_.cell_offset[v] + k] - 1, 0), places - 1);
            const Cell* kept = kept_.data() + first_[v];
            if (place + 1 < places && std::abs(kept[place + 1] - k) < std::abs(kept[place] - k)) ++place;
            p.hints.push_back(run_[first_[v] + place]);
        }
        ++p.hint_count;
    }
}

}  // namespace treesens
