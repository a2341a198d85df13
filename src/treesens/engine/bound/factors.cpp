#include "bound/factors.hpp"

#include <algorithm>
#include <limits>

#include "bound/bundles.hpp"
#include "bound/join.hpp"
#include "problem/checked.hpp"
#include "problem/rounding.hpp"

namespace treesens {

namespace {

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
            for (const Join::Entry& e : join.entries) {
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
        // Includes the ends of the domain: cells that no entry covers (clauses refute them) form a segment without an
        // entry.
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
            const std::int32_t low = segment(r.first);
            const std::int32_t high = segment(r.second + 1) - 1;
            std::int32_t level = 0;
            while ((2 << level) <= high - low + 1) ++level;
            const std::int32_t line = level * narrow<std::int32_t>(starts_.size() - 1);
            set_.literal_low.push_back(low);
            set_.literal_high.push_back(high);
            set_.literal_first.push_back(line + low);
            set_.literal_second.push_back(line + high - (1 << level) + 1);
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

bool constant_on_group(const Problem& p, const Forest& f, std::int32_t g, const RowSum& rows, std::int64_t slop) {
    std::int64_t least = INT64_MAX;
    std::int64_t most = INT64_MIN;
    for (std::int64_t l = p.group_offset[g]; l < p.group_offset[g + 1]; ++l) {
        const std::int64_t* value = f.values(p, g, narrow<std::int32_t>(l));
        std::int64_t sum = 0;
        for (std::int32_t j = f.row_offset[g]; j < f.row_offset[g + 1]; ++j, ++value) {
            if (std::find(rows.begin(), rows.end(), f.group_rows[j]) != rows.end()) sum += *value;
        }
        least = std::min(least, sum);
        most = std::max(most, sum);
    }
    return least == most || (-slop <= least && most <= slop);
}

}  // namespace

std::int64_t FactorSet::bytes() const {
    const std::int64_t segments = static_cast<std::int64_t>(segment_start.size());
    const std::int64_t literals = static_cast<std::int64_t>(literal_low.size());
    return 8 * segments + 16 * literals + 2 * static_cast<std::int64_t>(column.size()) + 44 * slots() +
           8 * entries() * static_cast<std::int64_t>(rows.size());
}

FactorSet build_factors(const Problem& p, const Forest& forest, const std::vector<RowSum>& rows,
                        const std::vector<int>& shift, bool collapse, MemoryBudget& budget, std::int64_t together,
                        Control* control) {
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
    join.stop_by(control);
    if (collapse) join.even_out(rounding_slop(p, forest, rows[0]));
    // Every entry has a value for each row: memory is limited as for two rows.
    const std::int64_t largest = 2 * kLargestFactor / std::max<std::int64_t>(2, narrow<std::int64_t>(rows.size()));
    Writer writer(p, set);
    std::int64_t charged = 0;
    for (const std::vector<std::int32_t>& groups : bundle_trees(p, forest, join, together)) {
        const auto write = [&](const std::vector<std::int32_t>& members) {
            const std::int32_t before = set.factors();
            writer.add(join);
            if (set.factors() > before) set.factor_groups.push_back(members);
        };
        if (join.run(groups, groups.size() == 1 ? INT64_MAX : largest)) {
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

std::int64_t rounding_slop(const Problem& p, const Forest& forest, const RowSum& rows) {
    std::int64_t magnitude = 0;
    for (const std::int32_t r : rows) magnitude = std::max(magnitude, p.magnitude(r));
    // Far below significance, and far above rounding errors.
    const std::int64_t negligible = magnitude >> 40;
    std::int64_t slop = 0;
    std::vector<std::int32_t> place;
    for (std::int32_t g = 0; g < p.groups() && rows.size() > 1; ++g) {
        const std::int32_t first = forest.row_offset[g];
        const std::int32_t n = forest.rows_of(g);
        place.clear();
        for (std::int32_t j = 0; j < n; ++j) {
            if (std::find(rows.begin(), rows.end(), forest.group_rows[first + j]) != rows.end()) place.push_back(j);
        }
        if (place.size() < 2) continue;
        const std::int64_t* value = forest.value.data() + forest.value_offset[g];
        for (std::int64_t l = p.group_offset[g]; l < p.group_offset[g + 1]; ++l, value += n) {
            std::int64_t sum = 0;
            std::int32_t terms = 0;
            for (const std::int32_t j : place) {
                sum += value[j];
                terms += value[j] != 0;
            }
            if (terms > 1 && std::abs(sum) <= negligible) slop = std::max(slop, std::abs(sum));
        }
    }
    return slop;
}

bool cancel(const Problem& p, const Forest& forest, const RowSum& rows) {
    const std::int64_t slop = rounding_slop(p, forest, rows);
    bool any = false;
    for (const auto& [tree, groups] : groups_by_tree(p)) {
        static_cast<void>(tree);
        const bool touched = std::any_of(groups.begin(), groups.end(), [&](std::int32_t g) {
            return std::any_of(rows.begin(), rows.end(), [&](std::int32_t r) {
                const auto first = forest.group_rows.begin() + forest.row_offset[g];
                const auto last = forest.group_rows.begin() + forest.row_offset[g + 1];
                return std::binary_search(first, last, r);
            });
        });
        if (!touched) continue;
        if (groups.size() == 1 && !constant_on_group(p, forest, groups[0], rows, slop)) return false;
        any = true;
    }
    return any;
}

bool is_objective_apart(const Problem& p, const Forest& forest, const Goal& goal) {
    if (goal.mode != Mode::objective) return false;
    const auto trees = groups_by_tree(p);
    return std::none_of(trees.begin(), trees.end(), [&](const auto& tree) {
        bool objective = false;
        bool others = false;
        for (const std::int32_t g : tree.second) {
            for (std::int32_t j = forest.row_offset[g]; j < forest.row_offset[g + 1]; ++j) {
                (forest.group_rows[j] == p.constraints ? objective : others) = true;
            }
        }
        return objective && others;
    });
}

std::vector<std::int32_t> rows_beside(const Problem& p, const Forest& forest, const Goal& goal, const RowSum& sum) {
    const auto is_summed = [&](std::int32_t r) { return std::find(sum.begin(), sum.end(), r) != sum.end(); };
    std::vector<std::uint8_t> shares_trees(p.rows, 0);
    for (const auto& [tree, groups] : groups_by_tree(p)) {
        static_cast<void>(tree);
        std::vector<std::int32_t> touched;
        for (const std::int32_t g : groups) {
            touched.insert(touched.end(), forest.group_rows.begin() + forest.row_offset[g],
                           forest.group_rows.begin() + forest.row_offset[g + 1]);
        }
        if (std::none_of(touched.begin(), touched.end(), is_summed)) continue;
        for (const std::int32_t r : touched) shares_trees[r] = 1;
    }
    std::vector<std::int32_t> beside;
    for (std::int32_t r = 0; r < p.rows; ++r) {
        // The minimum of several slacks is kept with the rows it belongs to.
        const bool stands_alone = !goal.soft[r] || goal.mode != Mode::slack;
        const bool is_apart = goal.counts(p, r) && stands_alone && !is_summed(r) && !shares_trees[r];
        if (is_apart && p.magnitude(r) > 0) beside.push_back(r);
    }
    return beside;
}

namespace {

bool has_row(const Forest& forest, std::int32_t group, std::int32_t row) {
    const auto first = forest.group_rows.begin() + forest.row_offset[group];
    return std::binary_search(first, forest.group_rows.begin() + forest.row_offset[group + 1], row);
}

// True if two rows are about two points and their sum may vary: some tree has a copy with the first row and another
// copy with the second, with different sums over the leaves. The ends of a range for one point also cancel, without
// giving information.
bool oppose_points(const Problem& p, const Forest& forest, const RowSum& rows) {
    const std::int64_t slop = rounding_slop(p, forest, rows);
    const auto trees = groups_by_tree(p);
    return std::any_of(trees.begin(), trees.end(), [&](const auto& tree) {
        const std::vector<std::int32_t>& groups = tree.second;
        const auto varies = [&](std::int32_t g) { return !constant_on_group(p, forest, g, rows, slop); };
        if (groups.size() < 2 || std::none_of(groups.begin(), groups.end(), varies)) return false;
        return std::any_of(groups.begin(), groups.end(), [&](std::int32_t g) {
            return has_row(forest, g, rows[0]) && std::any_of(groups.begin(), groups.end(), [&](std::int32_t h) {
                       return h != g && has_row(forest, h, rows[1]);
                   });
        });
    });
}

// The excess of a sum of rows over its bound, with every copy of a tree at its best, as a share of its range.
double share_above(const Problem& p, const Forest& forest, const Goal& goal, const RowSum& rows) {
    double above = 0;
    double range = 1;
    for (const std::int32_t r : rows) {
        above -= static_cast<double>(goal.bound[r]);
        range += static_cast<double>(p.magnitude(r));
    }
    for (std::int32_t g = 0; g < p.groups(); ++g) {
        const std::int32_t* first = forest.group_rows.data() + forest.row_offset[g];
        const std::int32_t n = forest.rows_of(g);
        double most = -std::numeric_limits<double>::infinity();
        const std::int64_t* value = forest.value.data() + forest.value_offset[g];
        for (std::int64_t l = p.group_offset[g]; l < p.group_offset[g + 1]; ++l, value += n) {
            double sum = 0;
            for (std::int32_t j = 0; j < n; ++j) {
                if (std::find(rows.begin(), rows.end(), first[j]) != rows.end()) sum += static_cast<double>(value[j]);
            }
            most = std::max(most, sum);
        }
        above += most;
    }
    return above / range;
}

}  // namespace

std::vector<RowSum> cancelling_rows(const Problem& p, const Forest& forest, const Goal& goal) {
    std::vector<RowSum> candidates;
    // The objective on its own (a difference of margins), then pairs of constraints.
    if (goal.mode == Mode::objective) candidates.push_back({p.constraints});
    for (std::int32_t r = 0; r < p.constraints; ++r) {
        for (std::int32_t s = r + 1; s < p.constraints; ++s) {
            if (goal.mode == Mode::objective || goal.soft[r] == goal.soft[s]) candidates.push_back({r, s});
        }
    }
    std::vector<RowSum> best;
    double least = 0;
    for (const RowSum& rows : candidates) {
        if (!cancel(p, forest, rows) || (rows.size() == 2 && !oppose_points(p, forest, rows))) continue;
        if (rows.size() == 1) return {rows};
        const double above = share_above(p, forest, goal, rows);
        if (best.empty() || above < least) best = {rows}, least = above;
    }
    return best;
}

}  // namespace treesens
