// Branch and bound over the domains with the bound levels' bounds; depth-first for decisions, best-first with dives for
// optimisation (ADR 0012). One resumable state: run() resumes where the last call stopped.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bound/bound_stack.hpp"
#include "prove/open_nodes.hpp"
#include "prove/tree_search.hpp"

namespace treesens {

// Parameters of parts of a long search (ADR 0016).
struct Parts {
    std::int64_t together = 0;  // entries of factors of several trees in a part; 0: no parts
    std::int32_t depth = 3;     // nodes so deep become parts
    bool at_once = false;       // without waiting for a long search
};

class Subproblem;

class Prover : public TreeSearch {
public:
    enum class Start {
        root,
        part,  // of a larger problem: less effort at the root, since there are many
        idle   // has finished, until it adopts a subtree
    };
    Prover(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal, const FactorSets& sets,
           const Gap& gap, MemoryBudget& budget, Start how = Start::root);
    ~Prover() override;

    bool has_done(std::int64_t nodes) const override;
    std::int64_t work() const override;
    std::int64_t audited() const override { return audit_.nodes() + audited_in_parts_; }
    // From now on, if the search looks long, it begins again in parts. Before the first run.
    void set_parts(const Parts& parts);
    // True if the further course of the search is decided: it may be shared from now on.
    bool settled() const { return !watches_; }
    // Gives away a deferred subtree; false if there is none.
    bool donate(OpenNode& out);
    // Takes back what it gave away.
    void take_back(OpenNode node);
    // Takes over a subtree of another prover of the same problem; only when finished.
    void adopt(OpenNode subtree);
    // Continues the counters of another prover of the same problem.
    void count_from(const ProverStatistics& statistics) { statistics_ = statistics; }
    const BoundStack& bounds() const { return bounds_; }
    const char* phase_name() const;
    // Takes over the multipliers and messages of the root of an earlier run with other bounds.
    void warm_start(const Prover& other) { bounds_.warm_start(other.bounds_); }

private:
    enum class Phase { enter, collapsed, full, multipliers, branch, part };
    void step(std::int64_t node_limit, Incumbent& incumbent, Control& control) override;
    void next() override;
    std::int64_t open_upper() const override { return open_.upper(); }
    bool at_root() const override { return path_.empty() && !adopted_; }
    void first_bound();
    void sweep_level(BoundLevel& bound_level, Incumbent& incumbent, Control& control);
    bool passes_pay(const BoundLevel& bound_level) const;
    void pass(BoundLevel& bound_level, Control& control);
    void leave_level();
    MultiplierSteps new_steps() const;
    bool step_pays(std::int64_t before, bool better) const;
    void try_multipliers(Incumbent& incumbent, Control& control);
    void branch(Incumbent& incumbent);
    void load(BoundLevel& bound_level);
    void visit(OpenNode node);
    void leave_messages(OpenNode& child);
    OpenNode child_of_node();
    void watch_pace();
    void begin_in_parts();
    bool is_part() const;
    bool enter_part(const Incumbent& incumbent);
    void run_part(std::int64_t node_limit, Incumbent& incumbent, Control& control);
    void split(const Split& cut);
    void decode(const BoundLevel& bound_level, Incumbent& incumbent, Control& control);
    void tighten(const BoundLevel& bound_level);

    MemoryBudget& budget_;
    BoundStack bounds_;

    OpenNodes open_;
    std::int32_t node_variable_ = -1;
    std::vector<std::int64_t> path_;
    std::vector<std::shared_ptr<const SavedMessages>> start_;
    Phase phase_ = Phase::enter;
    BoundLevel* bound_level_ = nullptr;  // the bound level at work
    int sweeps_ = 0;
    int passes_ = 0;
    MultiplierSteps steps_;
    std::int64_t last_bound_ = 0;
    bool entered_level_ = false;
    bool adopted_ = false;     // the current subtree belongs to another prover
    const bool weighs_apart_;  // an objective in another unit than the rows beside it (ADR 0034)
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
    std::int64_t part_turn_ = 0;  // work left until another node may be next
    std::int64_t audited_in_parts_ = 0;
};

}  // namespace treesens
