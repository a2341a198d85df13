// The remaining goal of a search, given its results; and its counters.
#pragma once

#include <algorithm>
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

    void add(const ProverStatistics& other) {
        nodes += other.nodes;
        closed += other.closed;
        pruned_by_clauses += other.pruned_by_clauses;
        multiplier_steps += other.multiplier_steps;
        parts += other.parts;
        deepest = std::max(deepest, other.deepest);
    }
};

struct Gap {
    double relative = 0;
    std::int64_t absolute = 1;
    std::int64_t reference = 0;      // the relative gap is taken of |incumbent + reference|
    std::int64_t least = INT64_MIN;  // values below are of no interest, whatever the incumbent; they stay unproved
};

// The least interesting value of the soft rows: values below are pruned.
std::int64_t level_to_reach(const Problem& problem, const Goal& goal, const Gap& gap, const Incumbent& incumbent);

}  // namespace treesens
