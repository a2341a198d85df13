// Proves again what a search has proved, in a form that others can check: a branch and bound whose nodes rest on cuts,
// unit propagation and messages alone (docs/certificates.md).
//
// The prover also removes cells by reduced costs. Here it may not: every node stands on the box of its cuts, so that a
// leaf can be checked without the ones above it.
#pragma once

#include <cstdint>
#include <vector>

#include "bound/bound_stack.hpp"
#include "certify/proof.hpp"
#include "problem/clauses.hpp"
#include "problem/limits.hpp"
#include "prove/branching.hpp"

namespace treesens {

class Certifier {
public:
    // Refutes: all hard rows hold, and every soft row is at least `level`.
    Certifier(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal, const FactorSets& sets,
              std::int64_t level, MemoryBudget& budget);
    // Starts from the messages and multipliers of a search that is over.
    void warm_start(const BoundStack& other) { bounds_.warm_start(other); }
    Proof run(std::int64_t node_limit, Control& control);

private:
    struct Frame {
        Domains domains;  // of the child that is still to be visited
        std::vector<Saved> saved;
    };
    // Of every row of the problem: how often a leaf counts it, and on which grid.
    struct Weights {
        explicit Weights(std::int32_t rows) : multiplier(rows, 0), shift(rows, 0) {}
        std::vector<std::int32_t> multiplier;
        std::vector<std::int32_t> shift;
    };

    // Clauses and bounds at one node; true if it is closed, and then a leaf of the proof.
    bool close(Domains& node, bool root, Control& control);
    bool close_by(BoundLevel& bound_level, Domains& node, bool root, Control& control);
    bool close_by_steps(BoundLevel& bound_level, Domains& node, bool root, Control& control);
    bool close_exactly();
    bool finish_leaf(BoundLevel& bound_level, Domains& node, Control& control);
    void decode(const BoundLevel& bound_level, const Domains& node);
    bool is_witness() const;
    Split split(const Domains& node);
    Weights weights(const Messages& messages) const;
    void write_leaf(const Weights& weights, int exponent);
    void save(std::vector<Saved>& out);
    void restore(const std::vector<Saved>& saved);

    const Problem& problem_;
    const Forest& forest_;
    Clauses& clauses_;
    const Goal& goal_;
    const std::int64_t level_;
    const FactorSets& sets_;
    Branching branching_;
    BoundStack bounds_;
    BoundLevel* last_ = nullptr;  // the bound that was tried last
    std::vector<Cell> x_;
    std::vector<std::int64_t> slack_;
    Proof proof_;
};

}  // namespace treesens
