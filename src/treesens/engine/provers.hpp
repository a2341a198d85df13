// The provers of one search and its proved bounds: the messages prover, the overlap prover, and threads that share the
// former's tree.
//
// A long search does not go on as it began. The messages prover begins again with factors of several trees (ADR 0013)
// and then in parts (ADR 0016), or threads share its tree (ADR 0009). The order in which this happens is one function,
// `run`. What was proved before a prover is replaced stays proved.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "certify/proof.hpp"
#include "problem/schedule.hpp"
#include "prove/overlap_prover.hpp"
#include "prove/prover.hpp"
#include "prove/work_sharing.hpp"

namespace treesens {

// The prover: messages, overlap (for deep trees), both in turns, or chosen by the problem.
enum class Method { automatic, messages, overlap, both };

// Where a search is: turns of local search have even numbers, those of provers odd ones. The last two repeat for ever.
struct Turn {
    static constexpr int kLast = 4;
    static constexpr int kRepeatFrom = 3;

    int number = 0;
    int of_provers = 0;     // turns of provers that are over
    std::int64_t left = 0;  // work; a turn cut short by the clock goes on in the next run

    bool is_local() const { return number % 2 == 0; }
};

class Provers {
public:
    // All arguments must outlive it. `restart` must be called when the goal changes.
    Provers(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal, const Gap& gap,
            MemoryBudget& budget, std::uint64_t seed);

    // Proves until the turn has no work left, or the control pauses, or `node_limit` nodes are dealt with (< 0: no
    // limit), or the question is decided.
    void run(Turn& turn, std::int64_t node_limit, Incumbent& incumbent, LocalSearch& polisher, Control& control);
    // For a goal with other bounds, or another mode. Factors are kept if possible, and messages to start from.
    void restart();
    // What the goal alone tells. Before the first run, and after the goal has changed.
    void read_goal();

    // True if every node has been processed.
    bool finished() const;
    // Whether a prover has dealt with so many nodes (< 0: never).
    bool have_done(std::int64_t nodes) const;
    // The most nodes that one prover has dealt with.
    std::int64_t most_nodes() const;
    // Upper bound of all points, except for those that a prover skipped in favour of the best one.
    std::int64_t upper(const Incumbent& incumbent) const;
    // Every tree and every variable at its best: what is known without a prover.
    std::int64_t largest_level() const { return largest_level_; }
    // What contradicts itself is not believed: a bound below a value that was reached, or one that rises.
    void check_bounds(const Incumbent& incumbent);
    // Proves in a form for others that no solution reaches `level`; independent of the search, but for messages to
    // start from.
    Proof certify(std::int64_t level, std::int64_t node_limit, Control& control);

    void set_threads(int threads) { threads_ = threads; }
    void set_audit(std::int64_t every) { audit_ = every; }
    void set_method(Method method) { method_ = method; }
    void set_together(std::int64_t entries) {
        together_ = entries;
        together_at_once_ = entries > 0;
    }
    void set_parts(std::int32_t depth) { parts_depth_ = depth; }

    bool is_deep() const { return problem_.leaves() >= schedule.deep_tree * problem_.groups(); }
    bool decides_many_rows() const { return goal_.mode == Mode::decide && problem_.constraints >= schedule.many_rows; }
    bool wants_overlap() const;
    // Whether trees come to share factors if the search is long (ADR 0013).
    bool will_bundle() const {
        return together_ > 0 && goal_.mode == Mode::objective && !objective_cancels_ && !is_deep();
    }

    const Prover* messages() const { return messages_.get(); }
    const OverlapProver* overlap() const { return overlap_.get(); }
    std::vector<const Prover*> all_messages() const;  // the first, and its helpers
    ProverStatistics statistics() const;              // of all provers
    std::int64_t audited() const;
    std::int64_t factor_entries() const;
    double seconds_of_factors() const { return seconds_of_factors_; }
    double seconds_of_proving() const { return seconds_of_proving_; }

private:
    bool wants_messages() const;
    bool overlap_is_next(const Turn& turn) const;
    template <class Build>
    bool within_limits(Build build);
    void start_overlap(Control& control);
    void build_layers(Control& control);
    void start_messages(Control& control);
    bool bundles_now(const Turn& turn) const;
    void bundle_trees(const Incumbent& incumbent, Control& control);
    void settle(Turn& turn, Incumbent& incumbent, LocalSearch& polisher, Control& control);
    void share_tree();
    void run_shared(Turn& turn, Incumbent& incumbent, LocalSearch& polisher, Control& control);
    void run_alone(TreeSearch& prover, Turn& turn, std::int64_t work, std::int64_t node_limit, Incumbent& incumbent,
                   LocalSearch& polisher, Control& control);
    void build_sets(Control& control);
    Parts parts_of(const FactorSets& sets) const;
    std::int64_t proved_upper() const;
    std::int64_t level_of_the_best() const;

    const Problem& problem_;
    const Forest& forest_;
    Clauses& clauses_;
    const Goal& goal_;
    const Gap& gap_;
    MemoryBudget& budget_;
    const std::uint64_t seed_;

    Method method_ = Method::automatic;
    int threads_ = 1;
    std::int64_t audit_ = 0;
    std::int64_t together_ = schedule.together;
    bool together_at_once_ = false;
    std::int32_t parts_depth_ = 0;

    FactorSets sets_;
    Goal sets_goal_;        // the goal for which sets_ were built
    bool bundled_ = false;  // trees of sets_ share factors, or cannot
    BoxLayers layers_;
    Goal layers_goal_;  // the goal for which layers_ were built
    std::unique_ptr<OverlapProver> overlap_;
    std::unique_ptr<Prover> messages_;
    std::unique_ptr<WorkSharing> sharing_;  // refers to messages_
    std::unique_ptr<Prover> previous_;      // of the goal before, to start from

    bool objective_cancels_ = false;  // the objective is a difference of points, and shared trees drop out of it
    std::int64_t largest_level_ = INT64_MAX;
    std::int64_t retired_upper_ = INT64_MAX;  // what was proved by a prover whose place another one has taken
    std::int64_t last_upper_ = INT64_MAX;     // the last bound that was looked at: bounds only fall
    double seconds_of_factors_ = 0;
    double seconds_of_proving_ = 0;
};

}  // namespace treesens
