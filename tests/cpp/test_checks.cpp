#include "third_party/doctest.h"
// What makes a false bound impossible, or at least found out: checked casts, checked multipliers, the audit of pruned
// nodes.
#include "problem/checked.hpp"
#include "problem/rounding.hpp"
#include "prove/prover.hpp"
#include "prove/recheck.hpp"
#include "sample.hpp"
#include "search.hpp"

using namespace treesens;

namespace checks_tests {

namespace {

struct Setting {
    explicit Setting(std::uint64_t seed, std::int64_t bound = 0)
        : p(sample::problem(seed, 6, bound)), f(build_forest(p)), clauses(p), goal(p, Mode::slack, p.bound) {
        sets = build_factor_sets(p, f, goal, budget);
        sample::for_all(p, [&](const std::vector<Cell>& x) {
            std::vector<std::int64_t> slack(2);
            evaluate(p, f, goal.bound, x.data(), slack.data());
            best = std::max(best, goal.score(p, slack.data()).soft);
        });
    }
    MemoryBudget budget;
    Problem p;
    Forest f;
    Clauses clauses;
    Goal goal;
    FactorSets sets;
    std::int64_t best = INT64_MIN;
};

}  // namespace

TEST_CASE("casts that lose something are refused") {
    CHECK(narrow<std::int32_t>(std::int64_t{INT32_MIN}) == INT32_MIN);
    CHECK_THROWS_AS(narrow<std::int32_t>(std::int64_t{1} << 31), InternalError);
    CHECK_THROWS_AS(narrow<std::int32_t>(std::size_t{0} - 1), InternalError);
    CHECK_THROWS_AS(narrow<std::uint16_t>(-1), InternalError);
    CHECK(truncated<std::int32_t>(2047.9) == 2047);
    CHECK_THROWS_AS(truncated<std::int32_t>(1e17), InternalError);
    CHECK_THROWS_AS(truncated<std::int64_t>(std::nan("")), InternalError);
}

TEST_CASE("multipliers stay on the simplex or are refused") {
    // One row at its corner, the other far below it: however often a step is asked for.
    const std::vector<double> slack{-3.4e10, 3.4e10, 5.0};
    std::vector<std::int32_t> multiplier{kMultiplierUnit, 0, 0};
    for (double step = 1.0 / 512; step <= 1; step *= 1.5) {
        multiplier = step_multipliers(multiplier, slack, step);
        std::int32_t sum = 0;
        for (const std::int32_t k : multiplier) {
            CHECK((0 <= k && k <= kMultiplierUnit));
            sum += k;
        }
        CHECK(sum == kMultiplierUnit);
    }
    CHECK_THROWS_AS(step_multipliers(multiplier, slack, 1e17), InternalError);
    const Setting s(1);
    MemoryBudget budget;
    Messages messages(s.p, *s.sets.full, budget);
    CHECK_THROWS_AS(messages.set_multipliers({INT32_MIN, INT32_MIN}), InternalError);
    CHECK_THROWS_AS(messages.set_multipliers({kMultiplierUnit, kMultiplierUnit}), InternalError);
    CHECK_THROWS_AS(messages.set_multipliers({-1, kMultiplierUnit + 1}), InternalError);
}

TEST_CASE("the step of the multipliers has a limit") {
    // Fault 0: in a corner of the simplex every trial made the step half as long again, for ever.
    for (std::uint64_t seed = 1; seed < 6; ++seed) {
        const Setting s(seed);
        MemoryBudget budget;
        BoundLevel bound_level(s.p, s.goal, s.sets.full, {kMultiplierUnit, 0}, budget);
        bound_level.set_level(s.p, s.goal, -100'000);
        Domains domains(s.p);
        bound_level.messages.reset(domains, false);
        Control control;
        std::vector<Cell> x(s.p.variables(), 0);
        for (int i = 0; i < 400; ++i) {
            Sweep outcome = Sweep::open;
            bound_level.improve_multipliers(x, domains, control, outcome);
            CHECK(bound_level.step <= 1);
        }
        CHECK(bound_level.upper(s.p, s.goal) >= s.best);
    }
}

TEST_CASE("the audit finds a node that must not be pruned") {
    for (std::uint64_t seed = 1; seed < 6; ++seed) {
        const Setting s(seed);
        PruneAudit audit(s.p, s.f, s.clauses, s.goal);
        audit.set_share(1);
        audit.enter(Domains(s.p));
        CHECK_THROWS_AS(audit.prune(Domains(s.p), s.best, nullptr), InternalError);
        audit.enter(Domains(s.p));
        audit.prune(Domains(s.p), s.best + 1, nullptr);
        CHECK(audit.nodes() == 2);
        MemoryBudget budget;
        BoundLevel bound_level(s.p, s.goal, s.sets.full, start_multipliers(s.sets), budget);
        bound_level.set_level(s.p, s.goal, s.best);
        bound_level.messages.reset(Domains(s.p), false);
        CHECK(!refutes(s.p, bound_level.messages, Domains(s.p)));
    }
}

TEST_CASE("the audit agrees with what the search prunes") {
    std::int64_t audited = 0;
    for (std::uint64_t seed = 1; seed < 40; ++seed) {
        for (const Mode mode : {Mode::decide, Mode::slack}) {
            Setting s(seed, mode == Mode::decide ? 40 : 0);
            for (const int threads : {1, 3}) {
                Search search(s.p, mode, seed, -1);
                search.set_threads(threads);
                search.set_audit(1);
                search.run(-1, -1, -1);
                CHECK(search.reason() == Reason::none);
                CHECK((mode == Mode::decide || search.upper() == s.best));
                audited += search.provers().audited();
            }
        }
    }
    CHECK(audited > 50);
}

TEST_CASE("the audit finds nothing better where no row is soft") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        Problem p = sample::problem(seed, 6, -40);
        p.slack_weight = {0, 0};
        for (const Method method : {Method::messages, Method::overlap}) {
            Search search(p, Mode::slack, seed, -1);
            search.set_method(method);
            search.shorten_first_turn(1);
            search.set_audit(1);
            search.run(-1, -1, -1);
            CHECK(search.fault().empty());
            CHECK(search.status() != Status::open);
        }
    }
}

}  // namespace checks_tests
