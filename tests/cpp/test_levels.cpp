#include <algorithm>
#include <random>

#include "levels/cost_search.hpp"
#include "levels/level_search.hpp"
#include "problem/restricted.hpp"
#include "sample.hpp"
#include "search.hpp"
#include "third_party/doctest.h"

using namespace treesens;

namespace levels_tests {

namespace {

constexpr double kSlice = 1e-4;

// With a clause, and with cells that are forbidden.
Problem sample_problem(std::uint64_t seed, int trees = 5) {
    Problem p = sample::problem(seed, trees);
    std::mt19937_64 random(seed);
    if (seed % 2 == 0) {
        p.clause_literals.push_back({0, 1, 2});
        p.clause_literals.push_back({2, 0, 1});
        p.clause_offset.push_back(2);
    }
    if (seed % 3 == 0) p.allowed[p.cell_offset[2] + 1] = 0;
    validate(p);
    return p;
}

bool solves(const Problem& p, const Forest& f, const std::vector<std::int64_t>& bound, const std::vector<Cell>& x) {
    for (std::int32_t v = 0; v < p.variables(); ++v) {
        if (!p.allowed[p.cell_offset[v] + x[v]]) return false;
    }
    for (std::int64_t c = 0; c < p.clauses(); ++c) {
        bool some = false;
        for (std::int64_t i = p.clause_offset[c]; i < p.clause_offset[c + 1]; ++i) {
            const Literal& l = p.clause_literals[i];
            some = some || (l.low <= x[l.variable] && x[l.variable] <= l.high);
        }
        if (!some) return false;
    }
    std::vector<std::int64_t> slack(p.rows);
    evaluate(p, f, bound, x.data(), slack.data());
    return std::all_of(slack.begin(), slack.end(), [](std::int64_t s) { return s >= 0; });
}

bool inside(const Problem& p, const std::vector<std::uint8_t>& allowed, const std::vector<Cell>& x) {
    for (std::int32_t v = 0; v < p.variables(); ++v) {
        if (!allowed[p.cell_offset[v] + x[v]]) return false;
    }
    return true;
}

// The least of a value over the solutions, or -1; `value` is negative for points that do not count.
template <typename Value>
std::int64_t least(const Problem& p, const Forest& f, const std::vector<std::int64_t>& bound, Value value) {
    std::int64_t best = -1;
    sample::for_all(p, [&](const std::vector<Cell>& x) {
        const std::int64_t here = value(x);
        if (here >= 0 && (best < 0 || here < best) && solves(p, f, bound, x)) best = here;
    });
    return best;
}

template <typename Search>
Status finish(Search& search) {
    for (int i = 0; i < 100'000; ++i) {
        if (search.run(kSlice, 60) != Status::open) return search.status();
        REQUIRE(search.fault().empty());
    }
    return Status::open;
}

}  // namespace

TEST_CASE("a box has the solutions of the whole that lie in it") {
    int seen[3] = {0, 0, 0};
    for (std::uint64_t seed = 1; seed < 40; ++seed) {
        const Problem p = sample_problem(seed);
        const Forest f = build_forest(p);
        std::mt19937_64 random(seed);
        Restrictor restrictor(p, f);
        for (int trial = 0; trial < 20; ++trial) {
            std::vector<std::uint8_t> allowed(p.cells());
            for (std::uint8_t& a : allowed) a = random() % 4 != 0;
            const std::vector<std::int64_t> bound(p.rows, static_cast<std::int64_t>(random() % 200) - 150);
            const Restricted part = restrictor.restrict(allowed.data(), nullptr, bound, {});
            ++seen[static_cast<int>(part.left)];
            std::int64_t solutions = 0;
            std::int64_t points = 0;
            sample::for_all(p, [&](const std::vector<Cell>& x) {
                if (!inside(p, allowed, x)) return;
                ++points;
                solutions += solves(p, f, bound, x);
            });
            if (part.left == Left::nothing) CHECK(solutions == 0);
            if (part.left == Left::point) CHECK(solves(p, f, bound, part.rest));
            if (part.left != Left::problem) continue;
            std::int64_t left = 0;
            sample::for_all(part.problem, [&](const std::vector<Cell>& x) {
                const std::vector<Cell> whole = widened(part, x);
                REQUIRE(inside(p, allowed, whole));
                const bool here = solves(part.problem, part.forest, part.problem.bound, x);
                CHECK(here == solves(p, f, bound, whole));
                left += here;
            });
            // Cells that nothing tells apart are one: fewer points, none of them lost.
            CHECK((left == 0) == (solutions == 0));
            CHECK(left <= points);
        }
    }
    CHECK(seen[0] > 0);
    CHECK(seen[1] > 0);
    CHECK(seen[2] > 0);
}

TEST_CASE("the least level is that of trying every point") {
    int found = 0;
    for (std::uint64_t seed = 1; seed < 60; ++seed) {
        const Problem p = sample_problem(seed);
        const Forest f = build_forest(p);
        const SharedProblem whole(p, f);
        std::mt19937_64 random(seed);
        std::vector<std::int32_t> level(p.cells());
        for (std::int32_t& l : level) l = static_cast<std::int32_t>(random() % 12) - 1;
        const std::vector<std::int64_t> bound(p.rows, static_cast<std::int64_t>(random() % 160) - 40);
        LevelSearch search(whole, level, bound, {std::vector<Cell>(p.variables(), 0)}, seed, -1);
        const std::int64_t expected = least(p, f, bound, [&](const std::vector<Cell>& x) {
            std::int64_t most = 0;
            for (std::int32_t v = 0; v < p.variables(); ++v) {
                const std::int32_t here = level[p.cell_offset[v] + x[v]];
                if (here < 0) return std::int64_t{-1};
                most = std::max<std::int64_t>(most, here);
            }
            return most;
        });
        const Status status = finish(search);
        CHECK(status == (expected < 0 ? Status::infeasible : Status::optimal));
        if (expected < 0) continue;
        ++found;
        CHECK(search.low() == expected);
        CHECK(search.high() == expected);
        CHECK(solves(p, f, bound, search.best()));
    }
    CHECK(found > 5);
}

TEST_CASE("the least cost is that of trying every point") {
    int found = 0;
    int none = 0;
    for (std::uint64_t seed = 1; seed < 120; ++seed) {
        const Problem p = sample_problem(seed);
        const Forest f = build_forest(p);
        const SharedProblem whole(p, f);
        std::mt19937_64 random(seed);
        const std::int64_t largest = seed % 3 == 0 ? 3 : seed % 3 == 1 ? 1000 : std::int64_t{1} << 55;
        std::vector<std::int64_t> cost(p.cells());
        for (std::int64_t& c : cost) {
            c = random() % 10 == 0 ? -1 : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(largest));
        }
        const std::vector<std::int64_t> bound(p.rows, static_cast<std::int64_t>(random() % 160) - 40);
        const auto value = [&](const std::vector<Cell>& x) {
            std::int64_t sum = 0;
            for (std::int32_t v = 0; v < p.variables(); ++v) {
                const std::int64_t here = cost[p.cell_offset[v] + x[v]];
                if (here < 0) return std::int64_t{-1};
                sum += here;
            }
            return sum;
        };
        const std::int64_t expected = least(p, f, bound, value);
        for (const std::int64_t most : {std::int64_t{-1}, expected, expected + 1}) {
            if (most < 0 && most != -1) continue;
            CostSearch search(whole, cost, bound, {std::vector<Cell>(p.variables(), 0)}, most, seed, -1);
            const Status status = finish(search);
            const bool some = expected >= 0 && (most < 0 || expected < most);
            CHECK(status == (some ? Status::optimal : Status::infeasible));
            (some ? found : none) += 1;
            if (!some) continue;
            CHECK(solves(p, f, bound, search.best()));
            CHECK(value(search.best()) == search.high());
            CHECK(search.low() <= expected);
            CHECK(search.high() >= expected);
            CHECK(search.high() - search.low() <= largest >> 28);
        }
    }
    CHECK(found > 20);
    CHECK(none > 20);
}

TEST_CASE("what is proved of the least cost is true after every step") {
    int rises = 0;
    for (std::uint64_t seed = 1; seed < 400; ++seed) {
        const Problem p = sample_problem(seed, 3);
        const Forest f = build_forest(p);
        const SharedProblem whole(p, f);
        std::mt19937_64 random(seed);
        // A common unit above 1: a bound between two multiples is rounded up to the next one, and no further. With few
        // different costs the least of them is often that next multiple, and the dearer solution that the moves have
        // found, which would hide a bound that is too high, is far above it.
        const std::int64_t unit = std::vector<std::int64_t>{1, 3, 4, 10, 64}[seed % 5];
        const std::uint64_t kinds = seed % 3 == 0 ? 40 : 3;
        std::vector<std::int64_t> cost(p.cells());
        for (std::int64_t& c : cost) c = random() % 10 == 0 ? -1 : unit * static_cast<std::int64_t>(random() % kinds);
        // Every row needs as much as one point has: few solutions, and most of them cost something.
        std::vector<std::int64_t> bound(p.rows, 0);
        sample::for_all(p, [&](const std::vector<Cell>& x) {
            if (random() % 64 != 0) return;
            std::vector<std::int64_t> reached(p.rows);
            evaluate(p, f, std::vector<std::int64_t>(p.rows, 0), x.data(), reached.data());
            if (reached[0] > bound[0]) bound = reached;
        });
        const auto value = [&](const std::vector<Cell>& x) {
            std::int64_t sum = 0;
            for (std::int32_t v = 0; v < p.variables(); ++v) {
                const std::int64_t here = cost[p.cell_offset[v] + x[v]];
                if (here < 0) return std::int64_t{-1};
                sum += here;
            }
            return sum;
        };
        const std::int64_t expected = least(p, f, bound, value);
        if (expected < 0) continue;
        // With `most` just above the optimum, only the proof keeps the bound away from the true value.
        for (const std::int64_t most : {std::int64_t{-1}, expected + 1, expected + unit}) {
            CostSearch search(whole, cost, bound, {}, most, seed, -1);
            std::int64_t before = 0;
            for (int step = 0; search.status() == Status::open; ++step) {
                search.run(step < 100 ? 1e-6 : kSlice, 60);
                REQUIRE(search.fault() == "");
                REQUIRE(search.low() <= expected);
                REQUIRE(search.low() >= before);
                REQUIRE((search.high() == -1 || search.high() >= expected));
                rises += search.low() > before && search.low() < expected;
                before = search.low();
            }
            CHECK(search.status() == Status::optimal);
            CHECK(search.high() == expected);
        }
    }
    CHECK(rises > 10);
}

TEST_CASE("a search that is asked again answers bounds of any order") {
    int seen[2] = {0, 0};
    for (std::uint64_t seed = 1; seed < 40; ++seed) {
        const Problem p = sample_problem(seed);
        const Forest f = build_forest(p);
        std::mt19937_64 random(seed);
        Search search(p, Mode::decide, seed, -1);
        for (int turn = 0; turn < 12; ++turn) {
            std::vector<std::int64_t> bound(p.rows);
            for (std::int64_t& b : bound) b = static_cast<std::int64_t>(random() % 200) - 60;
            search.reset(bound, Mode::decide);
            search.run(60, 60, -1);
            const bool some = least(p, f, bound, [](const std::vector<Cell>&) { return std::int64_t{0}; }) == 0;
            REQUIRE(search.fault() == "");
            REQUIRE(search.is_witness() == some);
            REQUIRE((search.status() == Status::infeasible) == !some);
            ++seen[some];
        }
    }
    CHECK(seen[0] > 50);
    CHECK(seen[1] > 50);
}

TEST_CASE("moves of a leaf keep a solution, and make it no dearer") {
    int cheaper = 0;
    for (std::uint64_t seed = 1; seed < 40; ++seed) {
        const Problem p = sample_problem(seed);
        const Forest f = build_forest(p);
        std::mt19937_64 random(seed);
        std::vector<std::int64_t> cost(p.cells());
        for (std::int64_t& c : cost) c = static_cast<std::int64_t>(random() % 50);
        const Costs costs(p, cost);
        const std::vector<std::int64_t> bound(p.rows, -60);
        LeafMoves moves(p, f, costs, bound);
        sample::for_all(p, [&](const std::vector<Cell>& start) {
            if (random() % 50 != 0 || !solves(p, f, bound, start)) return;
            std::vector<Cell> x = start;
            if (random() % 2 == 0)
                moves.descend(x);
            else
                moves.return_home(x, random);
            CHECK(solves(p, f, bound, x));
            CHECK(costs.sum(x) <= costs.sum(start));
            cheaper += costs.sum(x) < costs.sum(start);
        });
    }
    CHECK(cheaper > 20);
}

TEST_CASE("a search that is told to stop says so, and goes on afterwards") {
    const Problem p = sample_problem(7);
    const Forest f = build_forest(p);
    const SharedProblem whole(p, f);
    CostSearch search(whole, std::vector<std::int64_t>(p.cells(), 1), std::vector<std::int64_t>(p.rows, -100), {}, -1,
                      1, -1);
    search.stop();
    CHECK(search.run(1, 1) == Status::open);
    CHECK(search.reason() == Reason::stopped);
    search.clear_stop();
    CHECK(finish(search) == Status::optimal);
    CHECK(search.high() == p.variables());
    CHECK_THROWS_AS(CostSearch(whole, std::vector<std::int64_t>(p.cells(), std::int64_t{1} << 61),
                               std::vector<std::int64_t>(p.rows, 0), {}, -1, 1, -1),
                    std::invalid_argument);
}

}  // namespace levels_tests
