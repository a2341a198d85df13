// A second prover, for deep forests: branch and bound over the boxes that a node still meets (overlap/).
//
// Its bound is weaker than that of the messages and costs a fraction of it, in proportion to what is active. Depth
// first; every node is trimmed by its losses and cut where the lesser loss is largest. Exact integers throughout:
// values of boxes are sums of coefficients, below 2^63 (validate), and nothing is rounded.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "local/local_search.hpp"
#include "overlap/cut_losses.hpp"
#include "problem/clauses.hpp"
#include "problem/goal.hpp"
#include "problem/limits.hpp"
#include "prove/branching.hpp"
#include "prove/gap.hpp"
#include "prove/recheck.hpp"

namespace treesens::search {

// The layers of one problem; independent of bounds.
struct BoxLayers {
    std::vector<BoxLayer> layers;  // rows that cancel first, then every row by itself
};
BoxLayers build_box_layers(const Problem& problem, const Forest& forest, const Goal& goal, MemoryBudget& budget);

class OverlapProver {
public:
    OverlapProver(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal,
                  const BoxLayers& layers, const Gap& gap, MemoryBudget& budget);

    // As those of Prover.
    void run(std::int64_t work, std::int64_t node_limit, Incumbent& incumbent, LocalSearch& polisher, Control& control);
    bool has_done(std::int64_t nodes) const { return nodes >= 0 && statistics_.nodes >= nodes; }
    bool finished() const { return finished_; }
    std::int64_t proved_upper() const;
    std::int64_t root_upper() const { return root_upper_; }
    void set_audit(std::int64_t every) { audit_.set_share(every); }
    std::int64_t audited() const { return audit_.nodes(); }
    std::int64_t work() const;
    const ProverStatistics& statistics() const { return statistics_; }

private:
    // A node that an active list belongs to, to come back to.
    struct Station {
        std::int64_t node;
        std::size_t depth;
        ActiveBoxes::Mark mark;
        std::vector<Cell> low;
        std::vector<Cell> high;
    };
    struct State {
        State(const BoxLayer& layer, const Problem& problem, MemoryBudget& budget);
        ActiveBoxes boxes;
        std::vector<Station> stations;
        Station at;  // `mark` is not used
        std::int64_t tried = 0;
        std::int64_t pruned = 0;
        // Prunes too few nodes to be asked at each.
        bool idle() const { return tried >= 40 && pruned * 12 < tried; }
    };
    struct Frame {
        std::int64_t id;
        Domains other;  // of the child that is still to be visited
        std::int32_t variable;
        bool pending;
        std::int64_t upper;
    };

    void step(Incumbent& incumbent, LocalSearch& polisher, Control& control);
    bool enter();
    bool refuted(bool all);
    bool trim(bool all);
    bool narrow_to(const std::vector<Cell>& low, const std::vector<Cell>& high);
    void sync(State& state);
    bool is_on_path(const Station& station) const;
    bool settle(State& state);
    std::int64_t spare(const State& state) const;
    std::int64_t needed(const BoxLayer& layer) const;
    std::int64_t upper_of(const State& state) const;
    void read_hull();
    void choose_point(const Incumbent& incumbent);
    void decode(Incumbent& incumbent, LocalSearch& polisher, Control& control);
    void branch(Incumbent& incumbent);
    void split(std::int32_t variable, Cell cut, bool low_first);
    void close(Incumbent& incumbent);
    void prune();
    void backtrack();
    void visit(Domains domains, std::int64_t upper);
    void check_point(const Score& score) const;

    const Problem& problem_;
    const Forest& forest_;
    Clauses& clauses_;
    const Goal& goal_;
    const Gap gap_;
    Branching branching_;
    std::vector<std::unique_ptr<State>> states_;
    CutLosses losses_;

    std::vector<Frame> frames_;
    Domains node_;
    std::vector<Cell> low_;
    std::vector<Cell> high_;
    std::int64_t node_id_ = 0;
    std::int64_t next_id_ = 0;
    std::int64_t node_upper_ = INT64_MAX;
    std::int64_t root_upper_ = INT64_MAX;
    std::int64_t pruned_upper_ = INT64_MIN;
    std::int64_t level_ = 0;
    bool finished_ = false;
    std::vector<std::int32_t> changed_;
    std::vector<std::int32_t> narrowed_;
    std::vector<Cell> x_;
    std::vector<std::int64_t> slack_;
    std::vector<std::pair<Cell, std::int64_t>> votes_;
    std::int64_t polish_work_ = 0;
    std::int64_t point_work_ = 0;
    std::int64_t misses_ = 0;
    ProverStatistics statistics_;
    PruneAudit audit_;
};

}  // namespace treesens::search
