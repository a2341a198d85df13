#include "bound/factors.hpp"

#include <algorithm>
#include <map>

#include "problem/checked.hpp"
#include "problem/rounding.hpp"

namespace treesens::search {

namespace {

struct Entry {
    std::int64_t first_literal;
    std::int64_t last_literal;
    std::int64_t first_value;
};

// Writes the entries of one factor by simultaneous traversal of its groups.
class Join {
public:
    Join(const Problem& p, const Forest& f, const std::vector<RowSum>& rows, bool collapse)
        : p_(p), f_(f), rows_(rows), collapse_(collapse), low_(p.variables(), 0), high_(p.size) {
        for (Cell& h : high_) --h;
        // mixes_[r]: the prover's rows that contain row r of the problem
        mixes_.resize(p.rows);
        for (std::size_t m = 0; m < rows.size(); ++m) {
            for (std::int32_t r : rows[m]) mixes_[r].push_back(narrow<std::int32_t>(m));
        }
        // Relations between copies ("a.income <= b.income") are clauses of two literals.
        pairs_.resize(p.variables());
        for (std::int64_t c = 0; c < p.clauses(); ++c) {
            if (p.clause_offset[c + 1] - p.clause_offset[c] != 2) continue;
            const Literal& l = p.clause_literals[p.clause_offset[c]];
            const Literal& k = p.clause_literals[p.clause_offset[c] + 1];
            if (l.variable == k.variable) continue;
            pairs_[l.variable].push_back({l, k});
            pairs_[k.variable].push_back({k, l});
        }
    }

    std::vector<Entry> entries;
    std::vector<Literal> literals;
    std::vector<std::int64_t> values;  // [entries][rows], exact

    // False when more than `limit` entries would be needed.
    bool run(const std::vector<std::int32_t>& groups, std::int64_t limit) {
        entries.clear();
        literals.clear();
        values.clear();
        limit_ = limit;
        groups_ = groups;
        std::vector<Place> places;
        for (std::int32_t g : groups) places.push_back({f_.root[g], 0});
        bool complete = visit(places);
        if (complete && entries.empty()) {
            // The clauses refute every combination of leaves: the prover finds that out by itself, from any entries.
            filter_ = false;
            complete = visit(places);
            filter_ = true;
        }
        narrowed_.clear();
        return complete;
    }

private:
    struct Place {
        std::int32_t node;
        std::int32_t depth;
    };

    bool visit(std::vector<Place>& places) {
        // Follow the questions that the region already answers; take the shallowest open one, so that copies stay in
        // step.
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

    // Whether a clause of two literals is false in the whole region: no solution reaches these leaves together.
    // Dropping them only sharpens the bound, and it is what proves that a monotone model is monotone.
    bool refuted(std::int32_t v) const {
        if (!filter_) return false;
        const auto outside = [this](const Literal& l) {
            return high_[l.variable] < l.low || low_[l.variable] > l.high;
        };
        for (const auto& [mine, other] : pairs_[v]) {
            if (outside(mine) && outside(other)) return true;
        }
        return false;
    }

    bool emit(const std::vector<Place>& places) {
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
        entries.push_back({0, 0, static_cast<std::int64_t>(at)});
        write_box(entries.back());
        return true;
    }

    void write_box(Entry& e) {
        e.first_literal = static_cast<std::int64_t>(literals.size());
        for (std::int32_t v : narrowed_) literals.push_back({v, low_[v], high_[v]});
        e.last_literal = static_cast<std::int64_t>(literals.size());
    }

    void merge(std::size_t first) {
        const std::int64_t* a = values.data() + entries[first].first_value;
        const std::int64_t* b = values.data() + entries[first + 1].first_value;
        if (!std::equal(a, a + rows_.size(), b)) return;
        values.resize(entries[first + 1].first_value);
        entries.pop_back();
        literals.resize(entries[first].first_literal);
        write_box(entries[first]);
    }

    const Problem& p_;
    const Forest& f_;
    const std::vector<RowSum>& rows_;
    const bool collapse_;
    std::vector<std::vector<std::int32_t>> mixes_;
    std::vector<std::int32_t> groups_;
    std::vector<Cell> low_;
    std::vector<Cell> high_;
    std::vector<std::vector<std::pair<Literal, Literal>>>
        pairs_;  // [variables]: clauses of two literals, own literal first
    bool filter_ = true;
    std::vector<std::int32_t> narrowed_;  // variables with a smaller range than their domain, in order of the path
    std::int64_t limit_ = 0;
};

// Appends the entries of a Join to the set, with segments and literals per scope variable.
class Writer {
public:
    Writer(const Problem& p, FactorSet& set) : p_(p), set_(set), slot_of_(p.variables(), -1) {}

    void add(const Join& join) {
        const std::size_t n = join.entries.size();
        if (n == 1) {
            for (std::size_t m = 0; m < set_.rows.size(); ++m)
                set_.constant[m] += to_grid(join.values[m], set_.shift[m]);
            return;
        }
        const std::int32_t factor = set_.factors();
        collect_scope(join);
        for (std::size_t s = 0; s < scope_.size(); ++s) write_slot(join, factor, s);
        for (std::size_t m = 0; m < set_.rows.size(); ++m) {
            for (const Entry& e : join.entries) {
                set_.value[m].push_back(static_cast<double>(to_grid(join.values[e.first_value + m], set_.shift[m])));
            }
        }
        set_.entry_offset.push_back(set_.entry_offset.back() + static_cast<std::int64_t>(n));
        set_.slot_offset.push_back(set_.slots());
        for (std::int32_t v : scope_) slot_of_[v] = -1;
    }

private:
    void collect_scope(const Join& join) {
        scope_.clear();
        for (const Literal& l : join.literals) {
            if (slot_of_[l.variable] < 0) {
                slot_of_[l.variable] = 0;
                scope_.push_back(l.variable);
            }
        }
        std::sort(scope_.begin(), scope_.end());
        for (std::size_t s = 0; s < scope_.size(); ++s) slot_of_[scope_[s]] = narrow<std::int32_t>(s);
        const std::size_t n = join.entries.size();
        ranges_.assign(scope_.size() * n, {0, 0});
        for (std::size_t s = 0; s < scope_.size(); ++s) {
            std::fill_n(ranges_.data() + s * n, n, std::make_pair(0, p_.size[scope_[s]] - 1));
        }
        for (std::size_t e = 0; e < n; ++e) {
            for (std::int64_t i = join.entries[e].first_literal; i < join.entries[e].last_literal; ++i) {
                const Literal& l = join.literals[i];
                ranges_[slot_of_[l.variable] * n + e] = {l.low, l.high};
            }
        }
    }

    void write_slot(const Join& join, std::int32_t factor, std::size_t s) {
        const std::size_t n = join.entries.size();
        const auto* begin = ranges_.data() + s * n;
        distinct_.assign(begin, begin + n);
        std::sort(distinct_.begin(), distinct_.end());
        distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
        // The ends of the domain too: cells that no entry covers (clauses refute them) are a segment without an entry.
        starts_.assign({0, p_.size[scope_[s]]});
        for (const auto& r : distinct_) {
            starts_.push_back(r.first);
            starts_.push_back(r.second + 1);
        }
        std::sort(starts_.begin(), starts_.end());
        starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());
        if (distinct_.size() > UINT16_MAX) throw std::invalid_argument("a factor has too many different ranges");
        set_.slot_variable.push_back(scope_[s]);
        set_.slot_factor.push_back(factor);
        set_.slot_column.push_back(static_cast<std::int64_t>(set_.column.size()));
        for (std::size_t i = 0; i + 1 < starts_.size(); ++i) {
            set_.segment_start.push_back(starts_[i]);
            set_.segment_end.push_back(starts_[i + 1] - 1);
            std::uint8_t level = 0;
            while ((2 << level) <= starts_[i + 1] - starts_[i]) ++level;
            set_.segment_level.push_back(level);
        }
        const auto segment = [&](Cell start) {
            return narrow<std::int32_t>(std::lower_bound(starts_.begin(), starts_.end(), start) - starts_.begin());
        };
        for (const auto& r : distinct_) {
            set_.literal_low.push_back(segment(r.first));
            set_.literal_high.push_back(segment(r.second + 1) - 1);
        }
        for (std::size_t e = 0; e < n; ++e) {
            const auto at = std::lower_bound(distinct_.begin(), distinct_.end(), begin[e]);
            set_.column.push_back(narrow<std::uint16_t>(at - distinct_.begin()));
        }
        set_.slot_segment.push_back(static_cast<std::int64_t>(set_.segment_start.size()));
        set_.slot_literal.push_back(static_cast<std::int64_t>(set_.literal_low.size()));
    }

    const Problem& p_;
    FactorSet& set_;
    std::vector<std::int32_t> slot_of_;
    std::vector<std::int32_t> scope_;
    std::vector<std::pair<Cell, Cell>> ranges_;  // [scope][entries]
    std::vector<std::pair<Cell, Cell>> distinct_;
    std::vector<Cell> starts_;
};

bool constant_on_group(const Problem& p, const Forest& f, std::int32_t g, const RowSum& rows) {
    std::int64_t expected = 0;
    for (std::int64_t l = p.group_offset[g]; l < p.group_offset[g + 1]; ++l) {
        const std::int64_t* value = f.values(p, g, narrow<std::int32_t>(l));
        std::int64_t sum = 0;
        for (std::int32_t j = f.row_offset[g]; j < f.row_offset[g + 1]; ++j, ++value) {
            if (std::find(rows.begin(), rows.end(), f.group_rows[j]) != rows.end()) sum += *value;
        }
        if (l == p.group_offset[g])
            expected = sum;
        else if (sum != expected)
            return false;
    }
    return true;
}

std::map<std::int32_t, std::vector<std::int32_t>> groups_by_tree(const Problem& p) {
    std::map<std::int32_t, std::vector<std::int32_t>> trees;
    for (std::int32_t g = 0; g < p.groups(); ++g) trees[p.group_tree[g]].push_back(g);
    return trees;
}

}  // namespace

std::int64_t FactorSet::bytes() const {
    const std::int64_t segments = static_cast<std::int64_t>(segment_start.size());
    const std::int64_t literals = static_cast<std::int64_t>(literal_low.size());
    return 8 * (segments + literals) + 2 * static_cast<std::int64_t>(column.size()) + 44 * slots() +
           8 * entries() * static_cast<std::int64_t>(rows.size());
}

FactorSet build_factors(const Problem& p, const Forest& forest, const std::vector<RowSum>& rows,
                        const std::vector<int>& shift, bool collapse, MemoryBudget& budget) {
    FactorSet set;
    set.rows = rows;
    set.shift = shift;
    set.collapsed = collapse;
    set.entry_offset.assign(1, 0);
    set.slot_offset.assign(1, 0);
    set.slot_segment.assign(1, 0);
    set.slot_literal.assign(1, 0);
    set.value.resize(rows.size());
    set.constant.assign(rows.size(), 0);
    Join join(p, forest, rows, collapse);
    Writer writer(p, set);
    std::int64_t charged = 0;
    for (const auto& [tree, groups] : groups_by_tree(p)) {
        static_cast<void>(tree);
        const auto write = [&](const std::vector<std::int32_t>& members) {
            const std::int32_t before = set.factors();
            writer.add(join);
            if (set.factors() > before) set.factor_groups.push_back(members);
        };
        if (join.run(groups, groups.size() == 1 ? INT64_MAX : kLargestFactor)) {
            write(groups);
        } else {
            for (std::int32_t g : groups) {
                join.run({g}, INT64_MAX);
                write({g});
            }
        }
        const std::int64_t bytes = 2 * set.bytes();  // vectors grow by doubling
        budget.charge(bytes - charged);
        charged = bytes;
    }
    std::vector<std::vector<std::int32_t>> users(p.variables());
    for (std::int32_t s = 0; s < set.slots(); ++s) users[set.slot_variable[s]].push_back(s);
    set.use_offset.assign(1, 0);
    for (const auto& list : users) {
        set.use_slot.insert(set.use_slot.end(), list.begin(), list.end());
        set.use_offset.push_back(narrow<std::int32_t>(set.use_slot.size()));
    }
    return set;
}

std::vector<RowSum> cancelling_rows(const Problem& p, const Forest& forest, const Goal& goal) {
    std::vector<RowSum> candidates;
    // The objective on its own (a difference of margins), then pairs of constraints.
    if (goal.mode == Mode::objective) candidates.push_back({p.constraints});
    for (std::int32_t r = 0; r < p.constraints; ++r) {
        for (std::int32_t s = r + 1; s < p.constraints; ++s) {
            if (goal.mode == Mode::objective || goal.soft[r] == goal.soft[s]) candidates.push_back({r, s});
        }
    }
    const auto trees = groups_by_tree(p);
    for (const RowSum& rows : candidates) {
        bool any_joint = false;
        bool any_cancelled = false;
        bool cancels = true;
        for (const auto& [tree, groups] : trees) {
            static_cast<void>(tree);
            const bool touched = std::any_of(groups.begin(), groups.end(), [&](std::int32_t g) {
                return std::any_of(rows.begin(), rows.end(), [&](std::int32_t r) {
                    const auto first = forest.group_rows.begin() + forest.row_offset[g];
                    const auto last = forest.group_rows.begin() + forest.row_offset[g + 1];
                    return std::binary_search(first, last, r);
                });
            });
            if (!touched) continue;
            if (groups.size() > 1)
                any_joint = true;
            else if (!constant_on_group(p, forest, groups[0], rows))
                cancels = false;
            else
                any_cancelled = true;
            if (!cancels) break;
        }
        if (cancels && (any_joint || any_cancelled)) return {rows};
    }
    return {};
}

}  // namespace treesens::search
