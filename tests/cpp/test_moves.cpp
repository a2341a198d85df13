// Block moves against trying every combination of the block and the private variables.
#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "local/block_moves.hpp"
#include "local/local_search.hpp"
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

// The best score with all variables held but these, one cell of each that nothing tells apart.
Score best_over(const Problem& p, const Forest& f, const Goal& goal, std::vector<Cell> x,
                const std::vector<std::int32_t>& open, std::size_t next = 0) {
    if (next == open.size()) return score_at(p, f, goal, x);
    Score best;
    for (Cell k = 0; k < p.size[open[next]]; k += kTimes) {
        x[open[next]] = k;
        const Score s = best_over(p, f, goal, x, open, next + 1);
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
                const Score best = best_over(p, f, goal, moves.x(), open);
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
