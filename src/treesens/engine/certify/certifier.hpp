// Proves again what a search has proved, in a form that others can check (docs/certificates.md).
//
// Both refute: all hard rows hold, and every soft row is at least `level`. The proof says why it is not complete.
#pragma once

#include <cstdint>

#include "bound/bound_stack.hpp"
#include "certify/proof.hpp"
#include "prove/overlap_prover.hpp"

namespace treesens {

// By cuts, unit propagation and messages. It starts from the messages and multipliers of a search that is over
// (`start`; null: from none).
//
// The prover also removes cells by reduced costs. Here it may not: every node rests on the box of its cuts, so that a
// leaf can be checked without the ones above it.
Proof certify_by_messages(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal,
                          const FactorSets& sets, const BoundStack* start, std::int64_t level, std::int64_t node_limit,
                          MemoryBudget& budget, Control& control);

// For deep trees: the search of the overlap prover once more, whose leaves are sums of the best boxes that a node
// meets, without any messages.
Proof certify_by_overlap(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal,
                         const BoxLayers& layers, std::int64_t level, std::int64_t node_limit, MemoryBudget& budget,
                         Control& control);

}  // namespace treesens
