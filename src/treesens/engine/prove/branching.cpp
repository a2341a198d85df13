#include "prove/branching.hpp"

#include <algorithm>

namespace treesens {

Branching::Branching(const Problem& problem, const Clauses& clauses)
    : problem_(problem), clauses_(clauses), total_(problem.variables(), 0), vote_(problem.cells() + 1, 0) {}

Split Branching::by_deficit(const Messages& messages, const Domains& domains, const std::vector<Cell>& x) {
    const FactorSet& set = messages.set();
    std::fill(total_.begin(), total_.end(), 0);
    std::fill(vote_.begin(), vote_.end(), 0);
    for (std::int32_t t = 0; t < set.factors(); ++t) {
        if (messages.alive(t) < 2) continue;
        const std::int64_t place = messages.best_place(t);
        const std::int64_t here = messages.place_at(t, x);
        if (here < 0 || here == place) continue;
        const std::int64_t best = messages.entry(place);
        const double deficit = messages.theta(place) - messages.theta(here);
        if (deficit <= 0) continue;
        std::int32_t conflicts = 0;
        for (std::int32_t s = set.slot_offset[t]; s < set.slot_offset[t + 1]; ++s) {
            const Literal l = messages.range(s, best);
            conflicts += x[l.variable] < l.low || x[l.variable] > l.high;
        }
        for (std::int32_t s = set.slot_offset[t]; s < set.slot_offset[t + 1]; ++s) {
            const Literal l = messages.range(s, best);
            const Cell k = x[l.variable];
            if (l.low <= k && k <= l.high) continue;
            total_[l.variable] += deficit / conflicts;
            // Every cut from the near end of the range up to x separates them.
            const std::int32_t base = problem_.cell_offset[l.variable];
            const Cell from = k < l.low ? k : l.high;
            const Cell to = k < l.low ? l.low - 1 : k - 1;
            vote_[base + from] += deficit / conflicts;
            vote_[base + to + 1] -= deficit / conflicts;
        }
    }
    return best_cut(domains, total_);
}

Split Branching::best_cut(const Domains& domains, const std::vector<double>& total) {
    Split split;
    double most = 0;
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (total[v] > most && domains.first(v) < domains.last(v)) most = total[v], split.variable = v;
    }
    if (split.variable < 0) return split;
    const std::int32_t base = problem_.cell_offset[split.variable];
    const Cell first = domains.first(split.variable);
    const Cell last = domains.last(split.variable);
    // Balanced cuts: one that only isolates the point leaves the other side as hard as the node was.
    const double width = last - first + 1;
    double votes = 0;
    double most_worth = -1;
    split.cut = first;
    for (Cell k = 0; k < last; ++k) {
        votes += vote_[base + k];
        if (k < first) continue;
        const double below = (k - first + 1) / width;
        const double worth = votes * below * (1 - below);
        if (worth > most_worth) most_worth = worth, split.cut = k;
    }
    return split;
}

Split Branching::by_clause(const Domains& domains, const std::vector<Cell>& x) const {
    const std::int64_t clause = clauses_.violated(x.data());
    if (clause < 0) return {};
    for (std::int64_t i = problem_.clause_offset[clause]; i < problem_.clause_offset[clause + 1]; ++i) {
        const Literal& l = problem_.clause_literals[i];
        if (!domains.any(l.variable, l.low, l.high)) continue;
        if (x[l.variable] < l.low) return {l.variable, l.low - 1};
        return {l.variable, l.high};
    }
    return {};
}

Split Branching::by_spread(const Messages& messages, const Domains& domains) {
    const FactorSet& set = messages.set();
    std::fill(total_.begin(), total_.end(), 0);
    std::fill(vote_.begin(), vote_.end(), 0);
    for (std::int32_t t = 0; t < set.factors(); ++t) {
        if (messages.alive(t) < 2) continue;
        const double weight = messages.alive(t);
        for (std::int32_t s = set.slot_offset[t]; s < set.slot_offset[t + 1]; ++s) {
            const std::int32_t v = set.slot_variable[s];
            const Cell first = domains.first(v);
            const Cell last = domains.last(v);
            for (std::int64_t g = set.slot_segment[s]; g < set.slot_segment[s + 1]; ++g) {
                const Cell cut = set.segment_end[g];
                if (cut < first || cut >= last) continue;
                total_[v] += weight;
                vote_[problem_.cell_offset[v] + cut] += weight;
                vote_[problem_.cell_offset[v] + cut + 1] -= weight;
            }
        }
    }
    const Split split = best_cut(domains, total_);
    if (split.variable >= 0 || !problem_.has_unary) return split;
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (domains.first(v) == domains.last(v)) continue;
        for (std::int32_t r = 0; r < problem_.rows; ++r) {
            const std::int64_t expected = problem_.unary_at(r, v, domains.first(v));
            for (Cell k = domains.first(v); k <= domains.last(v); ++k) {
                if (!domains.has(v, k) || problem_.unary_at(r, v, k) == expected) continue;
                return {v, (domains.first(v) + domains.last(v)) / 2};
            }
        }
    }
    return {};
}

}  // namespace treesens
