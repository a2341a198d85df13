// The proof of deep trees for others: the search of the overlap prover once more, whose leaves are sums of the best
// boxes that a node meets, without any messages (docs/certificates.md).
#pragma once

#include <cstdint>

#include "certify/proof.hpp"
#include "prove/overlap_prover.hpp"

namespace treesens {

// Refutes: all hard rows hold, and every soft row is at least `level`.
Proof certify_by_overlap(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal,
                         const BoxLayers& layers, std::int64_t level, std::int64_t node_limit, MemoryBudget& budget,
                         Control& control);

}  // namespace treesens
