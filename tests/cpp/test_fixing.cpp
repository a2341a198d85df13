#include <algorithm>

#include "prove/reduced_cost_fixing.hpp"
#include "sample.hpp"
#include "third_party/doctest.h"

using namespace treesens;

namespace fixing_tests {

namespace {

struct Truth {
    std::vector<std::vector<Cell>> points;
    std::vector<std::int64_t> level;  // least slack at bound 0
    std::int64_t best = INT64_MIN;
};

Truth truth_of(const Problem& p, const Forest& f) {
    Truth truth;
    const std::vector<std::int64_t> zero(p.rows, 0);
    std::vector<std::int64_t> slack(p.rows);
    sample::for_all(p, [&](const std::vector<Cell>& x) {
        evaluate(p, f, zero, x.data(), slack.data());
        truth.points.push_back(x);
        truth.level.push_back(*std::min_element(slack.begin(), slack.end()));
        truth.best = std::max(truth.best, truth.level.back());
    });
    return truth;
}

Fixing fix(const Problem& p, const Forest& f, std::int64_t bound, std::int64_t work, bool probe) {
    MemoryBudget budget;
    Clauses clauses(p);
    Control control;
    control.start(-1, -1);
    return Fixer(p, f, clauses, std::vector<std::int64_t>(p.rows, bound), work, probe, budget).run(control);
}

}  // namespace

TEST_CASE("no solution uses what is out of reach") {
    int impossible = 0;
    int refuted = 0;
    for (std::uint64_t seed = 1; seed < 16; ++seed) {
        const Problem p = sample::problem(seed);
        const Forest f = build_forest(p);
        const Truth truth = truth_of(p, f);
        for (const std::int64_t offset : {-40, -1, 0, 1, 40}) {
            for (const bool probe : {false, true}) {
                for (const std::int64_t work : {std::int64_t{0}, std::int64_t{20'000}, std::int64_t{1'000'000'000}}) {
                    const std::int64_t bound = truth.best + offset;
                    const Fixing fixing = fix(p, f, bound, work, probe);
                    if (offset > 0) {
                        impossible += work > 20'000;
                        refuted += work > 20'000 && fixing.infeasible;
                        continue;
                    }
                    CHECK(!fixing.infeasible);
                    for (std::size_t i = 0; i < truth.points.size(); ++i) {
                        if (truth.level[i] < bound) continue;
                        const std::vector<Cell>& x = truth.points[i];
                        for (std::int32_t v = 0; v < p.variables(); ++v) CHECK(fixing.cells[p.cell_offset[v] + x[v]]);
                        for (std::int32_t g = 0; g < p.groups(); ++g) CHECK(fixing.leaves[f.leaf_of(g, x.data())]);
                    }
                }
            }
        }
    }
    CHECK(impossible > 0);
    CHECK(refuted > 0);
}

TEST_CASE("entries are dropped only below the bound") {
    for (std::uint64_t seed = 1; seed < 8; ++seed) {
        const Problem p = sample::problem(seed);
        const Forest f = build_forest(p);
        const Truth truth = truth_of(p, f);
        const Goal goal(p, Mode::decide, std::vector<std::int64_t>(p.rows, truth.best));
        MemoryBudget budget;
        const FactorSets sets = build_factor_sets(p, f, goal, budget);
        BoundLevel bound_level(p, goal, sets.full, start_multipliers(sets), budget);
        Control control;
        control.start(-1, -1);
        Domains domains(p);
        bound_level.messages.reset(domains, false);
        std::int64_t before = 0;
        std::int64_t after = 0;
        for (int i = 0; i < 20; ++i) {
            bound_level.messages.sweep(i % 2 == 0, domains, control);
            const std::int64_t bound = bound_level.messages.bound();
            for (std::int32_t t = 0; t < sets.full->factors(); ++t) before += bound_level.messages.alive(t);
            bound_level.messages.drop_hopeless();
            for (std::int32_t t = 0; t < sets.full->factors(); ++t) after += bound_level.messages.alive(t);
            CHECK(bound_level.messages.bound() == bound);
            for (std::size_t k = 0; k < truth.points.size(); ++k) {
                if (truth.level[k] < truth.best) continue;
                for (std::int32_t t = 0; t < sets.full->factors(); ++t)
                    CHECK(bound_level.messages.place_at(t, truth.points[k]) >= 0);
            }
        }
        CHECK(after <= before);
    }
}

}  // namespace fixing_tests
