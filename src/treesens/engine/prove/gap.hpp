// What a search still looks for, given what it has; and what it counts.
#pragma once

#include <cstdint>

#include "problem/goal.hpp"
#include "problem/problem.hpp"

namespace treesens {

struct ProverStatistics {
    std::int64_t nodes = 0;
    std::int64_t closed = 0;  // decided exactly without a bound
    std::int64_t pruned_by_clauses = 0;
    std::int64_t multiplier_steps = 0;
    std::int64_t deepest = 0;
    std::int64_t parts = 0;  // nodes that became problems of their own
};

struct Gap {
    double relative = 0;
    std::int64_t absolute = 1;
    std::int64_t reference = 0;      // the relative gap is taken of |incumbent + reference|
    std::int64_t least = INT64_MIN;  // values below are of no interest, whatever the incumbent; they remain unproved
};

// The least value of the soft rows that is of interest: what is below is pruned.
std::int64_t level_to_reach(const Problem& problem, const Goal& goal, const Gap& gap, const Incumbent& incumbent);

}  // namespace treesens
