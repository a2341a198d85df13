// The proof side: branch and bound over the domains with the bound levels' bounds; depth-first where a question is
// decided, best-first with dives where something is optimised (ADR 0012). One resumable state: run() goes on where the
// last call stopped.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bound/bound_levels.hpp"
#include "local/local_search.hpp"
#include "problem/clauses.hpp"
#include "problem/goal.hpp"
#include "problem/limits.hpp"
#include "prove/branching.hpp"
#include "prove/gap.hpp"
#include "prove/open_nodes.hpp"
#include "prove/recheck.hpp"

namespace treesens::search {

// The factor sets of one problem; independent of bounds, so a sweep over bounds builds them once.
struct FactorSets {
    std::shared_ptr<const FactorSet> collapsed;  // null when no rows cancel
    std::shared_ptr<const FactorSet> full;
};
// With `together` trees share factors, see bundles.hpp.
FactorSets build_factor_sets(const Problem& problem, const Forest& forest, const Goal& goal, MemoryBudget& budget,
                             std::int64_t together = 0);

// What the bound_levels start with: the collapsed row at its weight, and the same weights row by row (equal ones where
// nothing collapses).
std::vector<std::int32_t> collapsed_multiplier(const FactorSets& sets);
std::vector<std::int32_t> start_multipliers(const FactorSets& sets);

// How a long search goes on in parts (ADR 0016).
struct Parts {
    std::int64_t together = 0;  // entries of factors of several trees in a part; 0: no parts
    std::int32_t depth = 3;     // nodes so deep become parts
    bool at_once = false;       // without waiting until the search looks long
};

class Subproblem;

class Prover {
public:
    enum class Start {
        root,
        part,  // of a larger problem: less effort at the root, since there are many
        idle   // has finished, until it adopts a subtree
    };
    Prover(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal, const FactorSets& sets,
           const Gap& gap, MemoryBudget& budget, Start how = Start::root);
    ~Prover();

    // Works until `work` is used up, the control expires, the tree is finished, or (decide) a witness is found.
    void run(std::int64_t work, std::int64_t node_limit, Incumbent& incumbent, LocalSearch& polisher, Control& control);
    // The node limit counts nodes that are dealt with, not nodes entered.
    bool has_done(std::int64_t nodes) const;
    bool finished() const { return finished_; }
    // No solution has more than this in its soft rows (INT64_MAX: not known yet).
    std::int64_t upper(const Incumbent& incumbent) const;
    // From now on, if the search looks long, it begins again in parts. Before the first run.
    void set_parts(const Parts& parts);
    // Whether it is known how the search goes on: it may be shared from now on.
    bool settled() const { return !watches_; }
    // What is known of the parts of the tree that this prover has dealt with or still holds; INT64_MIN: it holds
    // nothing.
    std::int64_t proved_upper() const;
    // Re-checks one pruned node in `every`, see audit.hpp.
    void set_audit(std::int64_t every) {
        audit_every_ = every;
        audit_.set_share(every);
    }
    std::int64_t audited() const { return audit_.nodes() + audited_in_parts_; }
    // A bound for the whole problem from its root.
    std::int64_t root_upper() const { return root_upper_; }
    // Gives away a subtree that was put off; false when there is none.
    bool donate(OpenNode& out);
    // Takes back what it gave away.
    void take_back(OpenNode node);
    // Takes over a subtree of another prover of the same problem; only when finished.
    void adopt(OpenNode subtree);
    std::int64_t work() const;
    const ProverStatistics& statistics() const { return statistics_; }
    // Goes on counting where another prover of the same problem has stopped.
    void count_from(const ProverStatistics& statistics) { statistics_ = statistics; }
    const std::vector<std::unique_ptr<BoundLevel>>& bound_levels() const { return bound_levels_; }
    bool first_is_collapsed() const { return collapsed_ != nullptr; }
    const char* phase_name() const;
    // Takes over the multipliers and messages of the root of an earlier run with other bounds.
    void warm_start(const Prover& other);

private:
    enum class Phase { enter, collapsed, full, multipliers, branch, part };
    void step(std::int64_t node_limit, Incumbent& incumbent, LocalSearch& polisher, Control& control);
    void enter();
    void sweep_tier(BoundLevel& bound_level, Incumbent& incumbent, LocalSearch& polisher, Control& control);
    bool passes_pay(const BoundLevel& bound_level) const;
    void pass(BoundLevel& bound_level, Control& control);
    void leave_tier();
    void try_multipliers(Incumbent& incumbent, LocalSearch& polisher, Control& control);
    void branch(Incumbent& incumbent);
    void load(BoundLevel& bound_level);
    std::size_t index_of(const BoundLevel& bound_level) const;
    void prune(const Messages* pruned_by = nullptr);
    void check_point(const Score& score) const;
    void next();
    void visit(OpenNode node);
    void leave_messages(OpenNode& child);
    OpenNode child_of_node();
    void watch_pace();
    void begin_in_parts();
    bool is_part() const;
    bool enter_part(const Incumbent& incumbent);
    void run_part(std::int64_t node_limit, Incumbent& incumbent, Control& control);
    void split(const Split& cut);
    void decode(const BoundLevel& bound_level, Incumbent& incumbent, LocalSearch& polisher, Control& control);
    void tighten(const BoundLevel& bound_level);
    BoundLevel& side_for_point();
    bool at_root() const { return path_.empty() && !adopted_; }

    const Problem& problem_;
    const Forest& forest_;
    Clauses& clauses_;
    const Goal& goal_;
    const Gap gap_;
    MemoryBudget& budget_;
    Branching branching_;
    std::vector<std::unique_ptr<BoundLevel>> bound_levels_;
    BoundLevel* collapsed_ = nullptr;
    std::vector<BoundLevel*> full_;

    OpenNodes open_;
    Domains node_;  // the node at work
    std::int32_t node_variable_ = -1;
    std::vector<std::int64_t> path_;
    std::vector<std::shared_ptr<const SavedMessages>> start_;
    std::int64_t node_id_ = 0;
    std::int64_t next_id_ = 0;
    std::int64_t node_upper_ = INT64_MAX;
    Phase phase_ = Phase::enter;
    BoundLevel* bound_level_ = nullptr;  // the bound_level at work
    int sweeps_ = 0;
    int passes_ = 0;
    int steps_ = 0;
    int failures_ = 0;  // steps in a row that did not help
    std::int64_t last_bound_ = 0;
    bool entered_tier_ = false;
    std::vector<std::int32_t> changed_;
    std::vector<Cell> x_;
    std::vector<std::int64_t> slack_;
    bool finished_ = false;
    bool adopted_ = false;  // the subtree at work is somebody else's
    const int root_sweeps_;
    const int root_passes_;
    Parts parts_;
    bool in_parts_ = false;  // nodes of some depth become parts
    bool watches_ = false;   // whether the search is long
    std::int64_t first_node_ = 0;
    std::int64_t early_distance_ = 0;  // of the bound from the level, after a few nodes
    OpenNode root_;                    // to begin again from
    std::shared_ptr<Subproblem> part_;
    std::int64_t part_work_ = 0;
    std::int64_t end_ = 0;        // the work at which this run ends
    std::int64_t part_turn_ = 0;  // work left until another node may be next
    std::int64_t audited_in_parts_ = 0;
    std::int64_t audit_every_ = 0;
    std::int64_t root_upper_ = INT64_MAX;
    std::int64_t pruned_upper_ = INT64_MIN;
    std::int64_t level_ = 0;
    std::int64_t polish_work_ = 0;
    std::int64_t misses_ = 0;  // polished points in a row that were no better
    ProverStatistics statistics_;
    PruneAudit audit_;
};

}  // namespace treesens::search
