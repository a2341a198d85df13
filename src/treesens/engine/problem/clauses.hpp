// Clauses: disjunctions of "x_v in [low, high]". They are filters: in propagation they shrink domains, in local search
// they restrict the cells a move may choose.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "problem/domains.hpp"
#include "problem/problem.hpp"

namespace treesens {

class Clauses {
public:
    explicit Clauses(const Problem& problem);

    bool none() const { return problem_.clauses() == 0; }
    bool involves(std::int32_t v) const { return use_offset_[v] < use_offset_[v + 1]; }
    // Unit propagation from the variables in `changed` (all when empty). False when a clause or a domain is empty.
    // Variables whose domain shrank are appended to `changed`.
    bool propagate(Domains& domains, std::vector<std::int32_t>& changed);
    // Clears mask[k] for the cells of v that violate a clause at x; clauses with a literal on a variable for which
    // open[variable] is set are left to a later check.
    void restrict_cells(const Cell* x, std::int32_t v, const std::uint8_t* open, std::uint8_t* mask) const;
    bool satisfied(const Cell* x) const;
    bool satisfied_around(const Cell* x, std::int32_t v) const;
    // The first violated clause, or -1.
    std::int64_t violated(const Cell* x) const;
    // Repairs x by random moves over violated clauses; false when it did not succeed.
    bool repair(std::vector<Cell>& x, std::mt19937_64& random) const;

private:
    bool holds(std::int64_t clause, const Cell* x) const;
    bool examine(std::int64_t clause, Domains& domains, std::vector<std::int32_t>& changed);

    const Problem& problem_;
    std::vector<std::int64_t> use_offset_;
    std::vector<std::int64_t> use_clause_;
    std::vector<std::uint8_t> queued_;  // [variables]
};

}  // namespace treesens
