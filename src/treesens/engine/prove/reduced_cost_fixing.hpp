// Cells and leaves that no solution uses: those with a negative max-marginal (reduced-cost fixing).
//
// Under any messages the bound of the prover is a sum of maxima, and with a cell, or an entry of a factor, chosen it is
//     bound - best of its factor(s) + value of the chosen one  >=  slack of every point that uses it.
// If that is negative nothing is lost without it. All numbers are integers rounded upwards (rounding.hpp), so this
// is a proof. What is removed sharpens the messages, which remove more: repeated until nothing changes or the work is
// used up.
#pragma once

#include <cstdint>
#include <vector>

#include "bound/bound_stack.hpp"
#include "problem/clauses.hpp"
#include "problem/limits.hpp"

namespace treesens {

struct Fixing {
    bool infeasible = false;
    std::vector<std::uint8_t> cells;   // [cells] 1: a solution may use it
    std::vector<std::uint8_t> leaves;  // [leaves] 1: a solution may reach it
    std::int64_t sweeps = 0;
    std::int64_t probes = 0;
};

class Fixer {
public:
    // The constraints of the problem at these bounds, deciding: an objective row counts nowhere. `work` in the units of
    // problem/limits.hpp; `probe` also removes runs of cells at the ends of a domain that the bound refutes once x is
    // put there. Throws SetupStopped soon after the limits of `control`, if there is one, are reached.
    Fixer(const Problem& problem, const Forest& forest, Clauses& clauses, std::vector<std::int64_t> bound,
          std::int64_t work, bool probe, MemoryBudget& budget, Control* control = nullptr);
    Fixing run(Control& control);

private:
    bool propagate();
    bool exhausted(Control& control) const { return bounds_.work() >= work_ || control.expired(); }
    bool tighten(BoundLevel& bound_level, Control& control);
    bool sweep(BoundLevel& bound_level, Control& control);
    bool step_multipliers(BoundLevel& bound_level, Control& control);
    bool probe(BoundLevel& bound_level, Control& control);
    bool probe_end(BoundLevel& bound_level, std::int32_t v, bool low, Control& control);
    bool refuted(BoundLevel& bound_level, Domains part, Control& control);
    std::int64_t left() const;
    void mark_leaves(const BoundLevel& bound_level, std::vector<std::uint8_t>& leaves, Control& control);
    void mark_leaf(const Messages& messages, std::int32_t factor, std::int64_t leaf, std::vector<std::uint8_t>& leaves);
    bool meets(const Messages& messages, std::int32_t factor, std::int64_t box);

    const Problem& problem_;
    Clauses& clauses_;
    const Goal goal_;
    const std::int64_t work_;
    std::int64_t comparisons_ = 0;  // of a range of a leaf with one of an entry
    const bool probe_;
    Domains domains_;
    FactorSets sets_;
    BoundStack bounds_;
    std::vector<std::int32_t> changed_;
    Fixing result_;
};

}  // namespace treesens
