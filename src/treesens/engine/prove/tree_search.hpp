// The common part of all branch-and-bound searches, whatever refutes and cuts nodes and proposes points: entering,
// pruning, deciding exactly, polishing, and accounting for the proved bounds.
//
// The account: no point that the search has dealt with or still holds is worth more than proved_upper(). A node that is
// left adds what may be in it. It is at least level - 1, even if nothing was met there: cells that were removed on the
// way stay below the level, and may be better than what is left.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "local/local_search.hpp"
#include "problem/clauses.hpp"
#include "problem/goal.hpp"
#include "problem/limits.hpp"
#include "prove/branching.hpp"
#include "prove/recheck.hpp"

namespace treesens {

struct ProverStatistics {
    std::int64_t nodes = 0;
    std::int64_t closed = 0;  // decided exactly without a bound
    std::int64_t pruned_by_clauses = 0;
    std::int64_t multiplier_steps = 0;
    std::int64_t deepest = 0;
    std::int64_t parts = 0;  // nodes that became problems of their own

    void add(const ProverStatistics& other) {
        nodes += other.nodes;
        closed += other.closed;
        pruned_by_clauses += other.pruned_by_clauses;
        multiplier_steps += other.multiplier_steps;
        parts += other.parts;
        deepest = std::max(deepest, other.deepest);
    }
};

struct Gap {
    double relative = 0;
    std::int64_t absolute = 1;
    std::int64_t reference = 0;      // the relative gap is taken of |incumbent + reference|
    std::int64_t least = INT64_MIN;  // values below are of no interest, whatever the incumbent; they remain unproved
};

// The least value of the soft rows that is of interest: what is below is pruned.
std::int64_t level_to_reach(const Problem& problem, const Goal& goal, const Gap& gap, const Incumbent& incumbent);

// What of the work of a search polishing of its points may take: one part in `part`, so much `first` in any case, and
// less after so many polished points in a row that were no better.
struct Polishing {
    std::int64_t part;
    std::int64_t part_after_misses;
    std::int64_t misses;
    std::int64_t first;
};

class TreeSearch {
public:
    virtual ~TreeSearch() = default;
    TreeSearch(const TreeSearch&) = delete;
    TreeSearch& operator=(const TreeSearch&) = delete;

    // Works until `work` is used up, the control pauses, the tree is finished, or (decide) a witness is found. One
    // resumable state: it goes on where the last call stopped.
    void run(std::int64_t work, std::int64_t node_limit, Incumbent& incumbent, LocalSearch& polisher, Control& control);
    // The node limit counts nodes that are dealt with, not nodes entered.
    virtual bool has_done(std::int64_t nodes) const { return nodes >= 0 && statistics_.nodes >= nodes; }
    bool finished() const { return finished_; }
    virtual std::int64_t work() const = 0;
    // What is known of the parts of the tree that this search has dealt with or still holds; INT64_MIN: it holds
    // nothing.
    std::int64_t proved_upper() const;
    // A bound for the whole problem from its root.
    std::int64_t root_upper() const { return root_upper_; }
    // Looks at one pruned node in `every` again, see recheck.hpp.
    void set_audit(std::int64_t every) { audit_.set_share(every); }
    virtual std::int64_t audited() const { return audit_.nodes(); }
    const ProverStatistics& statistics() const { return statistics_; }

protected:
    TreeSearch(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal, const Gap& gap,
               const Polishing& polishing);

    // The whole search for `level`, written down by its method: why it has not come to its end, or nothing.
    std::string refute(std::int64_t level, std::int64_t node_limit, Control& control);
    // The nodes that are written down.
    virtual std::int64_t written() const { return 0; }
    virtual void step(std::int64_t node_limit, Incumbent& incumbent, Control& control) = 0;
    // Goes to another open node, or finishes.
    virtual void next() = 0;
    // The most that the nodes that are put off may hold; INT64_MIN without any.
    virtual std::int64_t open_upper() const = 0;
    virtual bool at_root() const = 0;

    void begin_node(Domains domains, std::int64_t upper);
    // The clauses at the node at work, which is so deep and has come from a cut of `variable` (< 0: from none). False
    // if the node is left.
    bool enter(std::size_t depth, std::int32_t variable);
    // Leaves the node: no point of it reaches the level.
    void prune(const Messages* pruned_by = nullptr);
    // Leaves the node: all rows are constant over it, and the point satisfies the clauses.
    void close(Incumbent& incumbent);
    // What lies in cells that are removed from the node, or left with it, is worth no more than this.
    void count_in(std::int64_t upper) { pruned_upper_ = std::max(pruned_upper_, std::min(node_upper_, upper)); }
    // Every cell of the point at work that the node does not have becomes the nearest one that it has.
    void move_into_node();
    // Evaluates the point at work, offers it if the clauses allow it, and polishes it. Within run().
    void propose(Incumbent& incumbent, Control& control);

    const Problem& problem_;
    const Forest& forest_;
    Clauses& clauses_;
    const Goal& goal_;
    const Gap gap_;
    Branching branching_;
    Domains node_;  // the node at work
    std::int64_t node_id_ = 0;
    std::int64_t node_upper_ = INT64_MAX;
    std::int64_t root_upper_ = INT64_MAX;
    std::int64_t level_ = 0;  // what is to be reached
    bool finished_ = false;
    std::int64_t end_ = 0;  // the work at which this run ends
    std::vector<std::int32_t> changed_;
    std::vector<Cell> x_;  // the point at work
    std::vector<std::int64_t> slack_;
    ProverStatistics statistics_;
    PruneAudit audit_;

private:
    Score offer(Incumbent& incumbent) const;
    void polish(Incumbent& incumbent, Control& control);

    const Polishing polishing_;
    LocalSearch* polisher_ = nullptr;  // of this run
    std::int64_t next_id_ = 0;
    std::int64_t pruned_upper_ = INT64_MIN;
    std::int64_t polish_work_ = 0;
    std::int64_t misses_ = 0;  // polished points in a row that were no better
};

}  // namespace treesens
