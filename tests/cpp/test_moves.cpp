// Block moves against trying every combination of the block and the private variables.
#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "local/block_moves.hpp"
#include "local/local_search.hpp"
#include "problem/schedule.hpp"
#include "sample.hpp"
#include "third_party/doctest.h"

using namespace treesens;

namespace moves_tests {

namespace {

constexpr std::int32_t kFirstCopy = 3;  // of the sensitive feature of a sample, and after it the other one
constexpr Cell kTimes = 120;            // so many cells that all moves stand on places

// Every cell becomes many that nothing tells apart, of which one at least is allowed.
Problem stretched(Problem p, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (Literal& l : p.literals) l.low *= kTimes, l.high = l.high * kTimes + kTimes - 1;
    p.cell_offset.assign(1, 0);
    for (std::int32_t& n : p.size) {
        n *= kTimes;
        p.cell_offset.push_back(p.cell_offset.back() + n);
    }
    p.allowed.assign(p.cells(), 1);
    for (std::int32_t k = 0; k < p.cells(); ++k) p.allowed[k] = random() % 2 == 0 || k % kTimes == 7;
    validate(p);
    return p;
}

Score score_at(const Problem& p, const Forest& f, const Goal& goal, const std::vector<Cell>& x) {
    std::vector<std::int64_t> slack(p.rows);
    evaluate(p, f, goal.bound, x.data(), slack.data());
    return goal.score(p, slack.data());
}

// What moves raise if a decision counts what its rows miss, from the slacks alone.
Score missed_at(const Problem& p, const Forest& f, const Goal& goal, const std::vector<Cell>& x) {
    std::vector<std::int64_t> slack(p.rows);
    evaluate(p, f, goal.bound, x.data(), slack.data());
    Score s{0, 0};
    for (std::int32_t r = 0; r < p.rows; ++r) {
        const std::int64_t missed = std::min<std::int64_t>(slack[r], 0);
        if (goal.soft[r])
            s.soft += missed;
        else
            s.hard = std::min(s.hard, missed);
    }
    return s;
}

// From so many rows on moves raise a sum.
class SumsFrom {
public:
    explicit SumsFrom(std::int64_t rows) { schedule.sum_rows = rows; }
    ~SumsFrom() { schedule = before; }
    const Schedule before = schedule;
};

// The best score with all variables held but these, one cell of each that nothing tells apart.
template <class Measure>
Score best_over(const Problem& p, const Forest& f, const Goal& goal, std::vector<Cell> x,
                const std::vector<std::int32_t>& open, Measure measure, Cell times = kTimes, std::size_t next = 0) {
    if (next == open.size()) return measure(p, f, goal, x);
    Score best;
    for (Cell k = 0; k < p.size[open[next]]; k += times) {
        x[open[next]] = k;
        const Score s = best_over(p, f, goal, x, open, measure, times, next + 1);
        if (best < s) best = s;
    }
    return best;
}

}  // namespace

TEST_CASE("a move over many cells is the best of all combinations, and the score is that of its point") {
    std::int64_t moved = 0;
    for (std::uint64_t seed = 1; seed < 12; ++seed) {
        const Problem p = stretched(sample::problem(seed, 8), seed);
        const Forest f = build_forest(p);
        const Clauses clauses(p);
        const Goal goal(p, Mode::decide, p.bound);
        Moves moves(p, f, clauses);
        moves.set_goal(goal);
        std::mt19937_64 random(seed);
        for (int start = 0; start < 6; ++start) {
            std::vector<Cell> x;
            for (std::int32_t v = 0; v < p.variables(); ++v) {
                x.push_back(static_cast<Cell>(random() % p.size[v] / kTimes) * kTimes + 7);
            }
            moves.place(x, random());
            REQUIRE(moves.score() == score_at(p, f, goal, x));
            for (int step = 0; step < 8; ++step) {
                std::vector<std::int32_t> block = {moves.movable()[random() % moves.movable().size()]};
                if (step % 2 == 1) block.push_back(moves.movable()[random() % moves.movable().size()]);
                if (block.size() == 2 && block[0] == block[1]) block.pop_back();
                REQUIRE(moves.grid(block[0], block.size() == 2 ? block[1] : -1) > kMostDense);
                std::vector<std::int32_t> open = block;
                for (std::int32_t v = kFirstCopy; v < p.variables(); ++v) {
                    if (std::find(open.begin(), open.end(), v) == open.end()) open.push_back(v);
                }
                const Score before = moves.score();
                const Score best = best_over(p, f, goal, moves.x(), open, score_at);
                const bool better = moves.improve(block[0], block.size() == 2 ? block[1] : -1);
                REQUIRE(better == (before < best));
                REQUIRE(moves.score() == (better ? best : before));
                REQUIRE(moves.score() == score_at(p, f, goal, moves.x()));
                for (std::int32_t v = 0; v < p.variables(); ++v) {
                    REQUIRE(p.allowed[p.cell_offset[v] + moves.x()[v]] != 0);
                }
                moved += better;
            }
        }
    }
    CHECK(moved > 50);
}

TEST_CASE("a move of a decision about many rows leaves the least that they miss together") {
    std::int64_t moved = 0;
    std::int64_t traded = 0;  // moves for which the worst row had to give way
    for (const std::int64_t rows : {1, 2}) {
        const SumsFrom sums(rows);
        for (std::uint64_t seed = 1; seed < 40; ++seed) {
            const std::int64_t bound = 150 + static_cast<std::int64_t>(seed % 5) * 100;
            Problem p =
                seed % 2 == 0 ? stretched(sample::problem(seed, 8, bound), seed) : sample::problem(seed, 8, bound);
            if (rows == 1) p.slack_weight[0] = 0;  // a row that has to hold as it is comes first
            const Cell times = seed % 2 == 0 ? kTimes : 1;
            const Forest f = build_forest(p);
            const Clauses clauses(p);
            const Goal goal(p, Mode::decide, p.bound);
            Moves moves(p, f, clauses);
            moves.set_goal(goal);
            REQUIRE(moves.sums());
            std::mt19937_64 random(seed);
            for (int start = 0; start < 6; ++start) {
                std::vector<Cell> x;
                for (std::int32_t v = 0; v < p.variables(); ++v) {
                    x.push_back(static_cast<Cell>(random() % p.size[v] / times) * times + (times > 1 ? 7 : 0));
                }
                moves.place(x, random());
                for (int step = 0; step < 6; ++step) {
                    const std::int32_t first = moves.movable()[random() % moves.movable().size()];
                    std::vector<std::int32_t> open = {first};
                    for (std::int32_t v = kFirstCopy; v < p.variables(); ++v) {
                        if (v != first) open.push_back(v);
                    }
                    REQUIRE(moves.worth() == missed_at(p, f, goal, moves.x()));
                    const Score before = moves.worth();
                    const Score least = moves.score();
                    const Score best = best_over(p, f, goal, moves.x(), open, missed_at, times);
                    const bool better = moves.improve(first, -1);
                    REQUIRE(better == (before < best));
                    REQUIRE(moves.worth() == (better ? best : before));
                    REQUIRE(moves.worth() == missed_at(p, f, goal, moves.x()));
                    REQUIRE(moves.score() == score_at(p, f, goal, moves.x()));
                    moved += better;
                    traded += moves.score() < least;
                }
            }
        }
    }
    CHECK(moved > 50);
    CHECK(traded > 5);
}

TEST_CASE("a search that raises a sum finds a point if and only if there is one") {
    const SumsFrom sums(2);
    std::int64_t found = 0;
    std::int64_t none = 0;
    for (std::uint64_t seed = 1; seed < 60; ++seed) {
        const Problem p = sample::problem(seed, 8, static_cast<std::int64_t>(seed % 6) * 80);
        const Forest f = build_forest(p);
        const Clauses clauses(p);
        const Goal goal(p, Mode::decide, p.bound);
        bool exists = false;
        sample::for_all(
            p, [&](const std::vector<Cell>& x) { exists = exists || goal.is_witness(score_at(p, f, goal, x)); });
        LocalSearch local(p, f, clauses, seed);
        local.set_goal(goal);
        Control control;
        control.start(-1, -1);
        Incumbent met;
        local.run(2'000'000, goal, met, control);
        REQUIRE(met.score == score_at(p, f, goal, met.x));
        CHECK(goal.is_witness(met.score) == exists);
        (exists ? found : none) += 1;
    }
    CHECK(found > 10);
    CHECK(none > 10);
}

TEST_CASE("a search within a region meets the best of its points and none outside of it") {
    std::int64_t narrower = 0;
    for (std::uint64_t seed = 1; seed < 24; ++seed) {
        const Problem p = sample::problem(seed, 8, 100'000);  // out of reach, so that it goes on
        const Forest f = build_forest(p);
        const Clauses clauses(p);
        const Goal goal(p, Mode::decide, p.bound);
        std::mt19937_64 random(seed);
        Domains region(p);
        for (std::int32_t v = 0; v < p.variables(); ++v) {
            const Cell low = static_cast<Cell>(random() % p.size[v]);
            region.keep(v, low, low + static_cast<Cell>(random() % (p.size[v] - low)));
        }
        Score best;
        Score inside;
        sample::for_all(p, [&](const std::vector<Cell>& x) {
            const Score s = score_at(p, f, goal, x);
            best = std::max(best, s);
            bool within = true;
            for (std::int32_t v = 0; v < p.variables(); ++v) within = within && region.has(v, x[v]);
            if (within) inside = std::max(inside, s);
        });
        LocalSearch local(p, f, clauses, seed);
        local.set_goal(goal);
        Control control;
        control.start(-1, -1);
        local.stay_within(region);
        Incumbent met;
        local.run(200'000, goal, met, control);
        CHECK(met.score == inside);
        for (std::int32_t v = 0; v < p.variables(); ++v) CHECK(region.has(v, met.x[v]));
        local.stay_within(std::nullopt);
        local.run(200'000, goal, met, control);
        CHECK(met.score == best);
        narrower += inside < best;
    }
    CHECK(narrower > 10);
}

}  // namespace moves_tests
