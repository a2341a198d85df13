// One question: local search and prover taking turns on one resumable state (docs/engine.md).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "certify/proof.hpp"
#include "local/local_search.hpp"
#include "problem/box_trees.hpp"
#include "problem/clauses.hpp"
#include "problem/goal.hpp"
#include "problem/limits.hpp"
#include "problem/problem.hpp"
#include "problem/schedule.hpp"
#include "prove/overlap_prover.hpp"
#include "prove/prover.hpp"
#include "prove/reduced_cost_fixing.hpp"
#include "prove/work_sharing.hpp"

namespace treesens {

// Termination, incumbent and bound are three separate facts.
enum class Status { open, witness, infeasible, optimal };
// Who proves: messages, overlap (for deep trees), both in turns, or what the problem asks for.
enum class Method { automatic, messages, overlap, both };
enum class Reason { none, time, nodes, memory, stopped, internal };

struct Seconds {
    double build = 0;
    double factors = 0;
    double local = 0;
    double prove = 0;
};

class Search {
public:
    // Throws std::invalid_argument when the arrays are inconsistent, MemoryLimit when they do not fit.
    Search(Problem problem, Mode mode, std::uint64_t seed, std::int64_t max_bytes);
    // With trees that are known: the problem needs neither boxes nor coefficients of leaves.
    Search(Problem problem, Forest forest, Mode mode, std::uint64_t seed, std::int64_t max_bytes);

    // Pauses after `slice` seconds, breaks off after `seconds` (negative: no limit), see problem/limits.hpp.
    void run(double slice, double seconds, std::int64_t node_limit);
    void stop() { control_.request_stop(); }
    void clear_stop() { control_.clear_stop(); }
    // Other bounds or another question: factors, messages, and the points met so far are kept.
    void reset(std::vector<std::int64_t> bound, Mode mode);
    // What no solution of the constraints at the present bounds can use; independent of the search and its state.
    Fixing fix(std::int64_t work, bool probe);
    // Proves in a form for others that no solution reaches `level` (0 in the mode decide); independent of the search,
    // but for messages to start from.
    Proof certify(std::int64_t level, double seconds, std::int64_t node_limit);
    void set_gap(const Gap& gap) { gap_ = gap; }
    // The first turn of the local search does no more than this. Before the first run.
    void shorten_first_turn(std::int64_t work) { turn_left_ = std::min(turn_left_, work); }
    // Number of prover threads once a search is long. With more than one, verdicts are deterministic; node counts and
    // the witness are not. A node limit is kept by a single one.
    void set_threads(int threads) { threads_ = threads; }
    // Re-checks one pruned node in `every` by other means, see recheck.hpp (0: none). Before the first run.
    void set_audit(std::int64_t every) { audit_ = every; }
    // Before the first run, or a reset.
    void set_method(Method method) { method_ = method; }
    // Trees share factors of so many entries from the beginning (0: never), not only once a search is long. Before the
    // first run, or a reset.
    void set_together(std::int64_t entries) {
        together_ = entries;
        together_at_once_ = entries > 0;
    }
    // Nodes so deep become problems of their own (ADR 0016) from the beginning (0: only once a search looks long).
    // Before the first run.
    void set_parts(std::int32_t depth) { parts_depth_ = depth; }
    std::int64_t audited() const;

    Status status() const { return status_; }
    Reason reason() const { return reason_; }
    // What was found to be wrong, if the reason is `internal`; then nothing counts as proved.
    const std::string& fault() const { return fault_; }
    const Incumbent& incumbent() const { return incumbent_; }
    bool is_witness() const { return incumbent_.present() && goal_.is_witness(incumbent_.score); }
    std::vector<std::int64_t> slacks() const;
    std::int64_t upper() const;
    const Problem& problem() const { return problem_; }
    const Forest& forest() const { return forest_; }
    const Prover* prover() const { return prover_.get(); }
    const OverlapProver* overlap() const { return overlap_.get(); }
    const LocalSearch& local_search() const { return local_; }
    const Seconds& seconds() const { return seconds_; }
    const MemoryBudget& memory() const { return budget_; }
    std::int64_t factor_entries() const;
    ProverStatistics statistics() const;         // of all provers
    std::vector<const Prover*> provers() const;  // the first, and its helpers

private:
    void begin();
    void local_phase();
    void prove_phase(std::int64_t node_limit);
    void next_turn();
    std::int64_t turn_work(int turn) const;
    std::int64_t largest_level() const;
    std::int64_t proved_upper() const;
    void check_bounds();
    void turns(std::int64_t node_limit);
    bool done();
    bool proved() const;
    // Whether trees come to share factors if the search is long (ADR 0013).
    bool will_bundle() const {
        return together_ > 0 && goal_.mode == Mode::objective && !objective_cancels_ && !is_deep();
    }
    bool is_deep() const { return problem_.leaves() >= schedule.deep_tree * problem_.groups(); }
    bool wants_overlap() const;
    bool wants_messages() const;
    bool overlap_is_next() const;
    void prove_with_overlap(std::int64_t node_limit);
    void start_overlap();
    void set_objective_cancels();
    void build_sets();
    void start_prover();
    void bundle_trees();
    Parts parts_of(const FactorSets& sets) const;

    MemoryBudget budget_;
    Problem problem_;
    Forest forest_;
    Goal goal_;
    Gap gap_;
    Clauses clauses_;
    LocalSearch local_;
    Control control_;
    FactorSets sets_;
    Goal sets_goal_;        // the goal for which sets_ were built
    bool bundled_ = false;  // trees of sets_ share factors, or cannot
    std::int64_t together_ = schedule.together;
    bool together_at_once_ = false;
    std::int32_t parts_depth_ = 0;
    BoxLayers layers_;
    Goal layers_goal_;                        // the goal for which layers_ were built
    std::unique_ptr<OverlapProver> overlap_;  // beside prover_ or in its place, in deep forests
    std::unique_ptr<Prover> prover_;
    std::unique_ptr<WorkSharing> sharing_;  // refers to prover_
    std::unique_ptr<Prover> previous_;
    Incumbent incumbent_;
    std::vector<std::vector<Cell>> pool_;                // incumbents of earlier bounds
    std::vector<std::vector<std::int64_t>> infeasible_;  // bounds proved infeasible
    Status status_ = Status::open;
    Reason reason_ = Reason::none;
    std::string fault_;
    std::int64_t audit_ = 0;
    Method method_ = Method::automatic;
    bool objective_cancels_ = false;  // the objective is a difference of points, and shared trees drop out of it
    std::int64_t largest_level_ = INT64_MAX;  // of the present goal
    std::int64_t retired_upper_ = INT64_MAX;  // what a prover has shown that another one has taken the place of
    std::int64_t last_upper_ = INT64_MAX;     // the last bound that was looked at: bounds only fall
    Seconds seconds_;
    bool possible_ = true;  // every variable has an allowed cell
    int threads_ = 1;
    std::uint64_t seed_;
    std::int64_t patience_ = 1;  // how much longer the prover's turns have become
    int turn_ = 0;
    int prover_turns_ = 0;
    std::int64_t turn_left_;  // work left in this turn; a turn cut short by the clock goes on in the next run
};

}  // namespace treesens
