#include "prove/subproblem.hpp"

#include <algorithm>
#include <utility>

#include "problem/checked.hpp"

namespace treesens {

namespace {

constexpr std::uint64_t kSeed = 1;

Restricted validated(Restricted part) {
    validate(part.problem, part.forest);
    return part;
}

}  // namespace

Subproblem::Subproblem(Restricted part, const Goal& goal, const Gap& gap, const Parts& parts, MemoryBudget& budget,
                       std::int64_t audit)
    : budget_(budget, MemoryBudget::Share{}),
      part_(validated(std::move(part))),
      goal_(part_.problem, goal.mode, part_.problem.bound),
      clauses_(part_.problem),
      polisher_(part_.problem, part_.forest, clauses_, kSeed),
      prover_(part_.problem, part_.forest, clauses_, goal_,
              build_factor_sets(part_.problem, part_.forest, goal_, budget_, parts.together), gap, budget_,
              Prover::Start::part) {
    const Forest& f = part_.forest;
    budget_.charge(static_cast<std::int64_t>(sizeof(TreeNode) * f.nodes.size() + 8 * f.value.size() +
                                             8 * part_.problem.unary.size()));
    polisher_.set_goal(goal_);
    prover_.set_parts(parts);
    prover_.set_audit(audit);
    const auto first = part_.problem.hints.begin();
    incumbent_.x.assign(first, first + part_.problem.variables());
}

void Subproblem::run(std::int64_t work, std::int64_t node_limit, Incumbent& incumbent, Control& control) {
    // The point stands for one elsewhere, until a better one is found here.
    if (incumbent.present() && incumbent_.score < incumbent.score) incumbent_.score = incumbent.score;
    const Score known = incumbent_.score;
    prover_.run(work, node_limit, incumbent_, polisher_, control);
    if (known < incumbent_.score) incumbent.offer(incumbent_.score, widened(part_, incumbent_.x));
}

bool Subproblem::donate(const Domains& node, OpenNode& out) {
    OpenNode inner;
    if (!prover_.donate(inner)) return false;
    OpenNode deeper;
    if (inner.part && inner.part->donate(inner.domains, deeper)) {
        deeper.upper = std::min(deeper.upper, inner.upper);
        prover_.take_back(std::move(inner));
        inner = std::move(deeper);
    }
    out = OpenNode();
    out.upper = inner.upper;
    out.domains = widened_domains(node, inner.domains);
    return true;
}

// The cells of the node that stand in a cell of the inner domains.
Domains Subproblem::widened_domains(const Domains& node, const Domains& inner) const {
    Domains domains = node;
    for (std::size_t i = 0; i < part_.variable.size(); ++i) {
        const std::int32_t v = part_.variable[i];
        const Cell* first = part_.cell.data() + part_.cell_offset[i];
        const std::int32_t cells = part_.cell_offset[i + 1] - part_.cell_offset[i];
        Cell run = 0;
        for (Cell k = node.first(v); k <= node.last(v); ++k) {
            if (!node.has(v, k)) continue;
            // A cell of the part is called by the first of the cells that became one.
            while (run + 1 < cells && first[run + 1] <= k) ++run;
            if (!inner.has(narrow<std::int32_t>(i), run)) domains.remove(v, k);
        }
    }
    return domains;
}

}  // namespace treesens
