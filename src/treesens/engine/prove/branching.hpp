// Chooses the split of a node (docs/engine.md).
#pragma once

#include <vector>

#include "bound/messages.hpp"
#include "problem/clauses.hpp"
#include "problem/domains.hpp"
#include "problem/problem.hpp"

namespace treesens {

struct Split {
    std::int32_t variable = -1;  // -1: no split is left
    Cell cut = 0;                // cells <= cut on the one side, > cut on the other
};

class Branching {
public:
    Branching(const Problem& problem, const Clauses& clauses);

    // By deficit: theta(best entry) - theta(entry at x), shared among the variables on which the two conflict, at the
    // cut that separates x from most deficit and halves the domain (deficit times the shares of both sides: on large
    // models the tree has half to a third of the nodes that it has with the deficit alone). -1 when x attains the best
    // entry of every factor.
    Split by_deficit(const Messages& messages, const Domains& domains, const std::vector<Cell>& x);
    // Between x and a literal of a clause that x violates.
    Split by_clause(const Domains& domains, const std::vector<Cell>& x) const;
    // Any cut that separates entries or unary terms; -1 if every row is constant over the node.
    Split by_spread(const Messages& messages, const Domains& domains);

private:
    Split best_cut(const Domains& domains, const std::vector<double>& total);

    const Problem& problem_;
    const Clauses& clauses_;
    std::vector<double> total_;  // [variables]
    std::vector<double> vote_;   // [cells + 1]: differences of the votes for "cut after this cell"
};

}  // namespace treesens
