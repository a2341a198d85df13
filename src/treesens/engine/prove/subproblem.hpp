// A node of a long search as a separate problem (ADR 0016).
//
// Within the domains of a node most branches of most trees are dead: more trees fit into one factor, indistinguishable
// cells are merged, and numbers are smaller, so that the grid is finer. A subproblem has factors chosen for the rest,
// and its own prover.
#pragma once

#include <cstdint>
#include <memory>

#include "problem/restricted.hpp"
#include "prove/prover.hpp"

namespace treesens {

class Subproblem {
public:
    // `part` is what is left of the whole within the domains of the node: a problem with an objective. MemoryLimit if
    // there is no room.
    Subproblem(Restricted part, const Goal& goal, const Gap& gap, const Parts& parts, MemoryBudget& budget,
               std::int64_t audit);

    // As Prover::run; the incumbent is one of the whole.
    void run(std::int64_t work, std::int64_t node_limit, Incumbent& incumbent, Control& control);
    bool has_done(std::int64_t nodes) const { return prover_.has_done(nodes); }
    bool finished() const { return prover_.finished(); }
    std::int64_t proved_upper() const { return prover_.proved_upper(); }
    std::int64_t work() const { return prover_.work(); }
    std::int64_t audited() const { return prover_.audited(); }
    const ProverStatistics& statistics() const { return prover_.statistics(); }
    // Gives away a subtree that was put off, in the cells of the whole; `node` has the domains that the problem was
    // made from. False if there is none.
    bool donate(const Domains& node, OpenNode& out);

private:
    Domains widened_domains(const Domains& node, const Domains& inner) const;

    MemoryBudget budget_;  // goes last: what it has counted is given back
    Restricted part_;
    Goal goal_;
    Clauses clauses_;
    LocalSearch polisher_;
    Prover prover_;
    Incumbent incumbent_;
};

}  // namespace treesens
