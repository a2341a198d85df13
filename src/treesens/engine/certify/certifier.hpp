// Repeats a search's proof in an independently checkable form (docs/certificates.md).
//
// Both refute: all hard rows hold, and every soft row is at least `level`. An incomplete proof has a reason.
#pragma once

#include <cstdint>

#include "bound/bound_stack.hpp"
#include "certify/proof.hpp"
#include "prove/overlap_prover.hpp"

namespace treesens {

// By cuts, unit propagation and messages. It starts from the messages and multipliers of a search that is over
// (`start`; null: from none).
//
// The prover also removes cells by reduced costs. That is not allowed here: every node depends only on the box of its
// cuts, so that a leaf can be checked without the ones above it.
Proof certify_by_messages(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal,
                          const FactorSets& sets, const BoundStack* start, std::int64_t level, std::int64_t node_limit,
                          MemoryBudget& budget, Control& control);

// For deep trees: repeats the overlap prover's search, whose leaves are sums of the best boxes that intersect a node,
// without messages.
Proof certify_by_overlap(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal,
                         const BoxLayers& layers, std::int64_t level, std::int64_t node_limit, MemoryBudget& budget,
                         Control& control);

}  // namespace treesens
