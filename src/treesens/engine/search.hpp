// One question: local search and provers take turns on one resumable state (docs/engine.md).
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
#include "prove/reduced_cost_fixing.hpp"
#include "provers.hpp"

namespace treesens {

// Termination, incumbent and bound are three separate facts.
enum class Status { open, witness, infeasible, optimal };
enum class Reason { none, time, nodes, memory, stopped, internal };

struct Seconds {
    double factors = 0;
    double local = 0;
    double prove = 0;
};

class Search {
public:
    // Throws std::invalid_argument when the arrays are inconsistent, MemoryLimit when they do not fit.
    Search(Problem problem, Mode mode, std::uint64_t seed, std::int64_t max_bytes)
        : Search(std::move(problem), std::nullopt, mode, seed, max_bytes) {}
    // With trees that are known: the problem needs neither boxes nor coefficients of leaves.
    Search(Problem problem, std::optional<Forest> forest, Mode mode, std::uint64_t seed, std::int64_t max_bytes);

    // Pauses after `slice` seconds, breaks off after `seconds` (negative: no limit), see problem/limits.hpp.
    void run(double slice, double seconds, std::int64_t node_limit);
    void stop() { control_.request_stop(); }
    void clear_stop() { control_.clear_stop(); }
    // Other bounds or another question: factors, messages, and the points met so far are kept.
    void reset(std::vector<std::int64_t> bound, Mode mode);
    // Cells and leaves that no solution of the constraints at the present bounds uses; independent of the search state.
    Fixing fix(std::int64_t work, bool probe);
    // Proves in a form for others that no solution reaches `level` (0 in the mode decide); independent of the search,
    // but for messages to start from.
    Proof certify(std::int64_t level, double seconds, std::int64_t node_limit);
    void set_gap(const Gap& gap) { gap_ = gap; }
    // The first turn of the local search does no more than this. Before the first run.
    void shorten_first_turn(std::int64_t work) { turn_.left = std::min(turn_.left, work); }
    // Number of prover threads once a search is long. With more than one, verdicts are deterministic; node counts and
    // the witness are not. A node limit is kept by a single one.
    void set_threads(int threads) { provers_.set_threads(threads); }
    // Re-checks one pruned node in `every` by other means, see recheck.hpp (0: none). Before the first run.
    void set_audit(std::int64_t every) { provers_.set_audit(every); }
    // Before the first run, or a reset.
    void set_method(Method method) { provers_.set_method(method); }
    // Trees share factors of so many entries from the beginning (0: never), not only once a search is long. Before the
    // first run, or a reset.
    void set_together(std::int64_t entries) { provers_.set_together(entries); }
    // Nodes so deep become problems of their own (ADR 0016) from the beginning (0: only once a search looks long).
    // Before the first run.
    void set_parts(std::int32_t depth) { provers_.set_parts(depth); }

    Status status() const { return status_; }
    Reason reason() const { return reason_; }
    // The internal error, if the reason is `internal`; then nothing counts as proved.
    const std::string& fault() const { return fault_; }
    const Incumbent& incumbent() const { return incumbent_; }
    bool is_witness() const { return incumbent_.present() && goal_.is_witness(incumbent_.score); }
    std::vector<std::int64_t> slacks() const;
    std::int64_t upper() const;
    const Problem& problem() const { return problem_; }
    const Forest& forest() const { return forest_; }
    const Provers& provers() const { return provers_; }
    const LocalSearch& local_search() const { return local_; }
    Seconds seconds() const;
    const MemoryBudget& memory() const { return budget_; }

private:
    // The main loop, and its steps.
    void take_turns(std::int64_t node_limit);
    bool decided();
    bool out_of_time();
    bool out_of_nodes(std::int64_t last_node);
    void search_locally();
    bool turn_is_over();
    void next_turn();
    void choose_region();
    std::int64_t turn_work(int turn) const;

    // The question.
    MemoryBudget budget_;
    Problem problem_;
    Forest forest_;
    Goal goal_;
    Gap gap_;
    Clauses clauses_;
    bool possible_ = true;  // every variable has an allowed cell

    // The workers, and their turns.
    LocalSearch local_;
    bool in_region_ = false;  // the local search stays within a node of the overlap prover
    // Turns anywhere between two that do, of a search that raises a sum, and those since the last one that did.
    static constexpr int kAnywhereOfSums = 3;
    int turns_anywhere_ = kAnywhereOfSums;
    Provers provers_;
    Control control_;
    Turn turn_;
    std::int64_t patience_ = 1;  // how much longer the turns of provers have become
    Seconds seconds_;

    // The facts.
    Incumbent incumbent_;
    std::vector<std::vector<Cell>> pool_;                // incumbents of earlier bounds
    std::vector<std::vector<std::int64_t>> infeasible_;  // bounds proved infeasible
    Status status_ = Status::open;
    Reason reason_ = Reason::none;
    std::string fault_;
};

}  // namespace treesens
