// Several provers on one search tree, each in a thread with its own workspace (ADR 0009).
//
// Idle provers request work; a busy prover donates its shallowest unexplored subtree. What every prover proves holds
// for its own subtrees, so the bound of the whole is the largest of all bounds: of the provers, and of the subtrees
// that wait. Factors, problem and cell trees are shared and never written to.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "problem/schedule.hpp"
#include "prove/prover.hpp"

namespace treesens {

class WorkSharing {
public:
    // `first` is the prover with the tree. Helpers without memory are left out.
    WorkSharing(const Problem& problem, const Forest& forest, const Goal& goal, const FactorSets& sets, const Gap& gap,
                MemoryBudget& budget, Prover& first, int threads, std::uint64_t seed,
                std::int64_t quantum = schedule.share_quantum);

    // Every thread works until `work` is used up, the control pauses, the tree is finished or (decide) a witness is
    // found. Exceptions of any thread are thrown here, after all threads have ended.
    void run(std::int64_t work, Incumbent& incumbent, LocalSearch& polisher, Control& control);
    bool finished() const;
    std::int64_t proved_upper() const;  // see Prover
    std::int64_t work() const;
    void set_audit(std::int64_t every);
    // The provers beside the first.
    std::vector<const Prover*> helpers() const;

protected:
    // A test stops here, with subtrees that wait: threads leave some behind rarely.
    void donate(Prover& prover);
    std::atomic<int> idle_workers_{0};

private:
    struct Helper {
        Helper(const Problem& problem, const Forest& forest, const Goal& goal, const FactorSets& sets, const Gap& gap,
               MemoryBudget& budget, std::uint64_t seed)
            : clauses(problem),
              local(problem, forest, clauses, seed),
              prover(problem, forest, clauses, goal, sets, gap, budget, Prover::Start::idle) {}
        Clauses clauses;
        LocalSearch local;
        Prover prover;
        Incumbent incumbent;
        Control control;
    };

    void run_worker(Prover& prover, Incumbent& incumbent, LocalSearch& polisher, Control& control, std::int64_t work);
    bool receive(Prover& prover, Control& control);
    void exchange(Incumbent& incumbent);
    void end();

    const Goal& goal_;
    Prover& first_;
    const std::int64_t quantum_;
    std::vector<std::unique_ptr<Helper>> helpers_;

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<OpenNode> waiting_;  // guarded by mutex_ while threads run
    Incumbent best_;                // guarded by mutex_
    std::exception_ptr error_;      // guarded by mutex_
    bool subtree_lost_ =
        false;         // guarded by mutex_: a subtree may have been lost on its way, so nothing is proved any more
    int workers_ = 0;  // threads of this run
    std::atomic<bool> over_{false};
};

}  // namespace treesens
