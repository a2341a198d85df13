// Rechecks pruned nodes independently: for test builds and tests (set_audit).
//
// A node is pruned if no point of it reaches the level. Small nodes are enumerated and evaluated exactly; larger ones
// are sampled, and a bound claimed by the bound_level is recomputed from the definition in 128-bit integers.
#pragma once

#include <cstdint>
#include <random>

#include "bound/messages.hpp"
#include "problem/clauses.hpp"
#include "problem/goal.hpp"

namespace treesens {

class PruneAudit {
public:
    PruneAudit(const Problem& problem, const Forest& forest, const Clauses& clauses, const Goal& goal);

    // Rechecks one node in `every` (0: none).
    void set_share(std::int64_t every) { every_ = every; }
    std::int64_t share() const { return every_; }
    // Stores the entered node, before anything is removed from it.
    void enter(const Domains& node);
    // InternalError when a point of the node that was entered reaches the level, or the bound_level's bound is not
    // below zero.
    void prune(const Domains& left, std::int64_t level, const Messages* pruned_by = nullptr);
    // InternalError when the trees allow a sum of rows of `needed` within the domains of the node that was entered.
    void check_sum(const Domains& left, const RowSum& rows, std::int64_t needed) const;
    std::int64_t nodes() const { return nodes_; }

private:
    void check_point(const std::vector<Cell>& x, std::int64_t level) const;
    void check_all(std::int64_t level);
    void check_some(std::int64_t level);

    const Problem& problem_;
    const Forest& forest_;
    const Clauses& clauses_;
    const Goal& goal_;
    std::int64_t every_ = 0;
    std::int64_t seen_ = 0;
    std::int64_t nodes_ = 0;
    bool chosen_ = false;
    Domains entered_;
    std::mt19937_64 random_{1};
};

// The bound of the messages over `domains`, from the multipliers, the entries and the reduced values alone; whether it
// is below zero, or nothing is left to bound.
bool refutes(const Problem& problem, const Messages& messages, const Domains& domains);

// Whether a sum of rows stays below `needed` over `domains`, every tree at its best by itself: from the leaves alone.
bool stays_below(const Problem& problem, const Forest& forest, const Domains& domains, const RowSum& rows,
                 std::int64_t needed);

}  // namespace treesens
