#include "problem/clauses.hpp"

#include <algorithm>

namespace treesens {

Clauses::Clauses(const Problem& problem) : problem_(problem), queued_(problem.variables(), 0) {
    std::vector<std::vector<std::int64_t>> users(problem.variables());
    for (std::int64_t c = 0; c < problem.clauses(); ++c) {
        for (std::int64_t i = problem.clause_offset[c]; i < problem.clause_offset[c + 1]; ++i) {
            auto& list = users[problem.clause_literals[i].variable];
            if (list.empty() || list.back() != c) list.push_back(c);
        }
    }
    use_offset_.assign(1, 0);
    for (const auto& list : users) {
        use_clause_.insert(use_clause_.end(), list.begin(), list.end());
        use_offset_.push_back(static_cast<std::int64_t>(use_clause_.size()));
    }
}

bool Clauses::examine(std::int64_t clause, Domains& domains, std::vector<std::int32_t>& changed) {
    // If all literals that can still hold are on one variable, it is restricted to the union of their ranges.
    const Literal* begin = problem_.clause_literals.data() + problem_.clause_offset[clause];
    const Literal* end = problem_.clause_literals.data() + problem_.clause_offset[clause + 1];
    std::int32_t only = -1;
    for (const Literal* l = begin; l != end; ++l) {
        if (!domains.any(l->variable, l->low, l->high)) continue;
        if (only >= 0 && only != l->variable) return true;
        only = l->variable;
    }
    if (only < 0) return false;
    bool shrank = false;
    for (Cell k = domains.first(only); k >= 0 && k <= domains.last(only); ++k) {
        if (!domains.has(only, k)) continue;
        const bool covered =
            std::any_of(begin, end, [&](const Literal& l) { return l.variable == only && l.low <= k && k <= l.high; });
        if (!covered) domains.remove(only, k), shrank = true;
    }
    if (shrank && !queued_[only]) {
        queued_[only] = 1;
        changed.push_back(only);
    }
    return !domains.empty(only);
}

bool Clauses::propagate(Domains& domains, std::vector<std::int32_t>& changed) {
    if (none()) return true;
    bool consistent = true;
    if (changed.empty()) {
        for (std::int64_t c = 0; c < problem_.clauses() && consistent; ++c) consistent = examine(c, domains, changed);
    }
    std::fill(queued_.begin(), queued_.end(), 0);
    for (std::int32_t v : changed) queued_[v] = 1;
    for (std::size_t next = 0; next < changed.size() && consistent; ++next) {
        const std::int32_t v = changed[next];
        queued_[v] = 0;
        for (std::int64_t i = use_offset_[v]; i < use_offset_[v + 1] && consistent; ++i) {
            consistent = examine(use_clause_[i], domains, changed);
        }
    }
    std::fill(queued_.begin(), queued_.end(), 0);
    return consistent;
}

bool Clauses::holds(std::int64_t clause, const Cell* x) const {
    for (std::int64_t i = problem_.clause_offset[clause]; i < problem_.clause_offset[clause + 1]; ++i) {
        const Literal& l = problem_.clause_literals[i];
        if (l.low <= x[l.variable] && x[l.variable] <= l.high) return true;
    }
    return false;
}

void Clauses::restrict_cells(const Cell* x, std::int32_t v, const std::uint8_t* open, std::uint8_t* mask) const {
    for (std::int64_t i = use_offset_[v]; i < use_offset_[v + 1]; ++i) {
        const std::int64_t c = use_clause_[i];
        const Literal* begin = problem_.clause_literals.data() + problem_.clause_offset[c];
        const Literal* end = problem_.clause_literals.data() + problem_.clause_offset[c + 1];
        const bool elsewhere = std::any_of(begin, end, [&](const Literal& l) {
            if (l.variable == v) return false;
            return open[l.variable] != 0 || (l.low <= x[l.variable] && x[l.variable] <= l.high);
        });
        if (elsewhere) continue;
        for (Cell k = 0; k < problem_.size[v]; ++k) {
            if (!mask[k]) continue;
            mask[k] =
                std::any_of(begin, end, [&](const Literal& l) { return l.variable == v && l.low <= k && k <= l.high; });
        }
    }
}

bool Clauses::satisfied(const Cell* x) const {
    return violated(x) < 0;
}

std::int64_t Clauses::violated(const Cell* x) const {
    for (std::int64_t c = 0; c < problem_.clauses(); ++c) {
        if (!holds(c, x)) return c;
    }
    return -1;
}

bool Clauses::satisfied_around(const Cell* x, std::int32_t v) const {
    for (std::int64_t i = use_offset_[v]; i < use_offset_[v + 1]; ++i) {
        if (!holds(use_clause_[i], x)) return false;
    }
    return true;
}

bool Clauses::repair(std::vector<Cell>& x, std::mt19937_64& random) const {
    std::vector<Cell> cells;
    for (int step = 0; step < 400; ++step) {
        const std::int64_t c = violated(x.data());
        if (c < 0) return true;
        const std::int64_t begin = problem_.clause_offset[c];
        const std::int64_t width = problem_.clause_offset[c + 1] - begin;
        if (width == 0) return false;
        const Literal& l = problem_.clause_literals[begin + static_cast<std::int64_t>(random() % width)];
        cells.clear();
        for (Cell k = l.low; k <= l.high; ++k) {
            if (problem_.allowed[problem_.cell_offset[l.variable] + k]) cells.push_back(k);
        }
        if (!cells.empty()) x[l.variable] = cells[random() % cells.size()];
    }
    return false;
}

}  // namespace treesens
