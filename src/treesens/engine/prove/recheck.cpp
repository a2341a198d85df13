#include "prove/recheck.hpp"

#include <algorithm>

#include "problem/checked.hpp"
#include "problem/rounding.hpp"

namespace treesens {

namespace {

constexpr std::int64_t kEnumerated = 4096;  // points of a node that are all evaluated
constexpr int kDrawn = 32;

using Wide = __int128;
constexpr Wide kNothing = -(static_cast<Wide>(1) << 120);

Wide ceil_quotient(Wide a, Wide n) {
    return a / n + (a % n > 0 ? 1 : 0);
}

// The combined unary term and A of every cell: A_v(k) = unary_v(k) + sum of r over the factors of v.
std::vector<Wide> sums_of_cells(const Problem& p, const Messages& messages, std::vector<Wide>& unary) {
    const FactorSet& set = messages.set();
    unary.assign(p.cells(), 0);
    for (std::size_t m = 0; m < set.rows.size(); ++m) {
        for (std::int32_t v = 0; v < p.variables(); ++v) {
            for (Cell k = 0; k < p.size[v]; ++k) {
                std::int64_t sum = 0;
                for (const std::int32_t r : set.rows[m]) sum += p.unary_at(r, v, k);
                unary[p.cell_offset[v] + k] +=
                    static_cast<Wide>(messages.multipliers()[m]) * to_grid(sum, set.shift[m]);
            }
        }
    }
    std::vector<Wide> total = unary;
    for (std::int32_t s = 0; s < set.slots(); ++s) {
        for (std::int64_t g = set.slot_segment[s]; g < set.slot_segment[s + 1]; ++g) {
            for (Cell k = set.segment_start[g]; k <= set.segment_end[g]; ++k) {
                total[p.cell_offset[set.slot_variable[s]] + k] += truncated<std::int64_t>(messages.reduced()[g]);
            }
        }
    }
    return total;
}

}  // namespace

bool refutes(const Problem& p, const Messages& messages, const Domains& domains) {
    const FactorSet& set = messages.set();
    std::vector<Wide> unary;
    const std::vector<Wide> total = sums_of_cells(p, messages, unary);
    Wide bound = 0;
    for (std::size_t m = 0; m < set.rows.size(); ++m) {
        bound += static_cast<Wide>(messages.multipliers()[m]) * (messages.row_constant(m) + set.constant[m]);
    }
    for (std::int32_t t = 0; t < set.factors(); ++t) {
        Wide best = kNothing;
        for (std::int64_t e = set.entry_offset[t]; e < set.entry_offset[t + 1]; ++e) {
            Wide value = 0;
            for (std::size_t m = 0; m < set.rows.size(); ++m) {
                value += static_cast<Wide>(messages.multipliers()[m]) * truncated<std::int64_t>(set.value[m][e]);
            }
            for (std::int32_t s = set.slot_offset[t]; s < set.slot_offset[t + 1] && value > kNothing; ++s) {
                const Literal l = messages.range(s, e);
                const std::int32_t users = set.use_offset[l.variable + 1] - set.use_offset[l.variable];
                Wide message = kNothing;
                for (std::int64_t g = set.slot_segment[s]; g < set.slot_segment[s + 1]; ++g) {
                    const Wide reduced = truncated<std::int64_t>(messages.reduced()[g]);
                    for (Cell k = std::max(l.low, set.segment_start[g]); k <= std::min(l.high, set.segment_end[g]);
                         ++k) {
                        if (!domains.has(l.variable, k)) continue;
                        message =
                            std::max(message, ceil_quotient(total[p.cell_offset[l.variable] + k], users) - reduced);
                    }
                }
                value = message == kNothing ? kNothing : value + message;
            }
            best = std::max(best, value);
        }
        if (best == kNothing) return true;
        bound += best;
    }
    for (std::int32_t v = 0; v < p.variables(); ++v) {
        if (domains.empty(v)) return true;
        if (set.use_offset[v] < set.use_offset[v + 1]) continue;
        Wide best = kNothing;
        for (Cell k = 0; k < p.size[v]; ++k) {
            if (domains.has(v, k)) best = std::max(best, unary[p.cell_offset[v] + k]);
        }
        bound += best;
    }
    return bound < 0;
}

namespace {

// The best sum of one tree's copies over the domains, by following every path that the domains allow.
class BestOfTree {
public:
    BestOfTree(const Problem& p, const Forest& f, const RowSum& rows, const Domains& domains)
        : p_(p), f_(f), rows_(rows), domains_(domains), low_(p.variables()), high_(p.variables()) {
        for (std::int32_t v = 0; v < p.variables(); ++v) {
            low_[v] = domains.first(v);
            high_[v] = domains.last(v);
        }
    }

    Wide best(const std::vector<std::int32_t>& groups, std::size_t done = 0, std::int32_t node = INT32_MIN) {
        if (done == groups.size()) return 0;
        const std::int32_t at = node == INT32_MIN ? f_.root[groups[done]] : node;
        if (at < 0) {
            const Wide rest = best(groups, done + 1);
            return rest == kNothing ? kNothing : rest + leaf(groups[done], ~at);
        }
        const TreeNode& n = f_.nodes[at];
        const Cell low = low_[n.variable];
        const Cell high = high_[n.variable];
        Wide most = kNothing;
        if (low <= std::min(high, n.cut) && domains_.any(n.variable, low, std::min(high, n.cut))) {
            high_[n.variable] = std::min(high, n.cut);
            most = std::max(most, best(groups, done, n.left));
            high_[n.variable] = high;
        }
        if (std::max(low, n.cut + 1) <= high && domains_.any(n.variable, std::max(low, n.cut + 1), high)) {
            low_[n.variable] = std::max(low, n.cut + 1);
            most = std::max(most, best(groups, done, n.right));
            low_[n.variable] = low;
        }
        return most;
    }

private:
    Wide leaf(std::int32_t group, std::int32_t leaf) const {
        const std::int64_t* value = f_.values(p_, group, leaf);
        Wide sum = 0;
        for (std::int32_t j = f_.row_offset[group]; j < f_.row_offset[group + 1]; ++j, ++value) {
            if (std::find(rows_.begin(), rows_.end(), f_.group_rows[j]) != rows_.end()) sum += *value;
        }
        return sum;
    }

    const Problem& p_;
    const Forest& f_;
    const RowSum& rows_;
    const Domains& domains_;
    std::vector<Cell> low_;
    std::vector<Cell> high_;
};

}  // namespace

bool stays_below(const Problem& p, const Forest& f, const Domains& domains, const RowSum& rows, std::int64_t needed) {
    Wide sum = 0;
    for (std::int32_t v = 0; v < p.variables(); ++v) {
        if (domains.empty(v)) return true;
        Wide best = kNothing;
        for (Cell k = 0; k < p.size[v]; ++k) {
            Wide unary = 0;
            for (const std::int32_t r : rows) unary += p.unary_at(r, v, k);
            if (domains.has(v, k)) best = std::max(best, unary);
        }
        sum += best;
    }
    BestOfTree trees(p, f, rows, domains);
    for (const auto& [tree, groups] : groups_by_tree(p)) {
        static_cast<void>(tree);
        sum += trees.best(groups);
    }
    return sum < needed;
}

PruneAudit::PruneAudit(const Problem& problem, const Forest& forest, const Clauses& clauses, const Goal& goal)
    : problem_(problem), forest_(forest), clauses_(clauses), goal_(goal) {}

void PruneAudit::enter(const Domains& node) {
    chosen_ = every_ > 0 && seen_++ % every_ == 0;
    if (chosen_) entered_ = node;
}

void PruneAudit::prune(const Domains& left, std::int64_t level, const Messages* pruned_by) {
    if (!chosen_) return;
    chosen_ = false;
    // Without a soft row every solution is worth the largest number, and none is better than another.
    if (level == INT64_MAX) return;
    ++nodes_;
    if (pruned_by != nullptr)
        ensure(refutes(problem_, *pruned_by, left), "a node was pruned by a bound that is not below zero");
    std::int64_t points = 1;
    for (std::int32_t v = 0; v < problem_.variables() && points <= kEnumerated; ++v) points *= entered_.count(v);
    if (points == 0) return;
    if (points <= kEnumerated)
        check_all(level);
    else
        check_some(level);
}

void PruneAudit::check_sum(const Domains& left, const RowSum& rows, std::int64_t needed) const {
    // Clauses between copies rule out pairs of leaves, which the trees by themselves do not know.
    if (!chosen_ || !clauses_.none()) return;
    ensure(stays_below(problem_, forest_, left, rows, needed),
           "a node was pruned by boxes that its trees do not confirm");
}

void PruneAudit::check_point(const std::vector<Cell>& x, std::int64_t level) const {
    if (!clauses_.satisfied(x.data())) return;
    std::vector<std::int64_t> slack(problem_.rows, 0);
    evaluate(problem_, forest_, goal_.bound, x.data(), slack.data());
    const Score s = goal_.score(problem_, slack.data());
    ensure(s.hard < 0 || s.soft < level, "a node was pruned that holds a better point");
}

void PruneAudit::check_all(std::int64_t level) {
    std::vector<Cell> x(problem_.variables());
    for (std::int32_t v = 0; v < problem_.variables(); ++v) x[v] = entered_.first(v);
    for (;;) {
        check_point(x, level);
        std::int32_t v = 0;
        for (; v < problem_.variables(); ++v) {
            do ++x[v];
            while (x[v] < problem_.size[v] && !entered_.has(v, x[v]));
            if (x[v] < problem_.size[v]) break;
            x[v] = entered_.first(v);
        }
        if (v == problem_.variables()) return;
    }
}

void PruneAudit::check_some(std::int64_t level) {
    std::vector<Cell> x(problem_.variables());
    for (int i = 0; i < kDrawn; ++i) {
        for (std::int32_t v = 0; v < problem_.variables(); ++v) {
            x[v] = entered_.nearest(v, narrow<Cell>(random_() % static_cast<std::uint64_t>(problem_.size[v])));
        }
        check_point(x, level);
    }
}

}  // namespace treesens
