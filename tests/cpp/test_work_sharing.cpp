// What a crew of provers has proved: subtrees that wait for a prover count, too.
#include <algorithm>
#include <vector>

#include "problem/schedule.hpp"
#include "prove/prover.hpp"
#include "prove/work_sharing.hpp"
#include "sample.hpp"
#include "third_party/doctest.h"

using namespace treesens;

namespace work_sharing_tests {

namespace {

// Bounds so weak, and so few points on the way, that a small problem takes many nodes and its best point is met late.
struct WeakSchedule {
    WeakSchedule() {
        set_schedule("root_sweeps=1,node_sweeps=0,root_steps=0,node_steps=0,root_passes=0,node_passes=0,polish=0");
    }
    ~WeakSchedule() { schedule = before; }
    const Schedule before = schedule;
};

// A crew whose subtrees wait at a pause. Threads leave some behind if whoever was idle has just left.
struct PausedCrew : WorkSharing {
    using WorkSharing::WorkSharing;
    void put_off(Prover& prover, int subtrees) {
        idle_workers_ = subtrees;
        for (int i = 0; i < subtrees; ++i) donate(prover);
    }
};

}  // namespace

TEST_CASE("subtrees that wait for a prover while a crew pauses count in its bound") {
    const WeakSchedule weak;
    int open = 0;
    for (std::uint64_t seed = 1; seed < 40; ++seed) {
        const Problem p = sample::problem(seed, 14);
        const Forest f = build_forest(p);
        const Goal goal(p, Mode::slack, p.bound);
        std::int64_t best = INT64_MIN;
        std::vector<std::int64_t> slack(2);
        sample::for_all(p, [&](const std::vector<Cell>& x) {
            evaluate(p, f, goal.bound, x.data(), slack.data());
            best = std::max(best, std::min(slack[0], slack[1]));
        });
        MemoryBudget budget;
        const FactorSets sets = build_factor_sets(p, f, goal, budget);
        Clauses clauses(p);
        LocalSearch local(p, f, clauses, seed);
        local.set_goal(goal);
        Prover first(p, f, clauses, goal, sets, Gap(), budget);
        PausedCrew crew(p, f, goal, sets, Gap(), budget, first, 1 + static_cast<int>(seed % 3), seed, 1);
        Incumbent incumbent;
        Control control;
        control.start(-1, -1);
        while (!crew.finished()) {
            crew.run(1, incumbent, local, control);
            crew.put_off(first, static_cast<int>(seed % 5));
            CHECK(sample::upper(crew, incumbent) >= best);
            open += incumbent.score.soft < best;
        }
        CHECK(incumbent.score.soft == best);
        CHECK(sample::upper(crew, incumbent) == best);
    }
    CHECK(open > 100);
}

}  // namespace work_sharing_tests
