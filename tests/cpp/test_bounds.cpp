#include <cmath>
#include <random>
#include <set>

#include "bound/bundles.hpp"
#include "problem/rounding.hpp"
#include "prove/prover.hpp"
#include "prove/work_sharing.hpp"
#include "sample.hpp"
#include "search.hpp"
#include "third_party/doctest.h"

using namespace treesens;

namespace bounds_tests {

namespace {

struct Setting {
    explicit Setting(std::uint64_t seed, std::int64_t bound = 0, std::int64_t together = 0)
        : p(sample::problem(seed, 6, bound)), f(build_forest(p)), goal(p, Mode::decide, p.bound) {
        sets = build_factor_sets(p, f, goal, budget, together);
    }
    MemoryBudget budget;
    Problem p;
    Forest f;
    Goal goal;
    FactorSets sets;
};

// A hard row over a tree of its own, which asks for a shared variable and for the first copy.
void add_hard_row(Problem& p, std::int64_t bound) {
    const std::vector<std::vector<Literal>> boxes = {
        {{0, 0, 1}, {3, 0, 0}}, {{0, 0, 1}, {3, 1, 3}}, {{0, 2, 3}, {3, 0, 2}}, {{0, 2, 3}, {3, 3, 3}}};
    const std::vector<std::int64_t> values = {-900, -300, -500, -100};
    p.group_tree.push_back(p.group_tree.back() + 1);
    for (std::size_t b = 0; b < boxes.size(); ++b) {
        p.literals.insert(p.literals.end(), boxes[b].begin(), boxes[b].end());
        p.box_offset.push_back(static_cast<std::int64_t>(p.literals.size()));
        p.leaf_offset.push_back(static_cast<std::int64_t>(p.box_offset.size()) - 1);
        p.coefficient_row.push_back(2);
        p.coefficient_value.push_back(values[b]);
        p.coefficient_offset.push_back(static_cast<std::int64_t>(p.coefficient_row.size()));
    }
    p.group_offset.push_back(static_cast<std::int64_t>(p.leaf_offset.size()) - 1);
    p.constraints = p.rows = 3;
    p.bound.push_back(bound);
    p.slack_weight.push_back(0);
}

// An objective of unary terms; if it is not apart, the first tree counts in it as well.
void add_objective(Problem& p, bool is_apart, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    p.has_objective = p.has_unary = true;
    p.constraints = 2;
    p.rows = 3;
    p.bound.push_back(0);
    p.slack_weight.push_back(0);
    p.unary.assign(static_cast<std::size_t>(p.rows) * p.cells(), 0);
    for (std::int32_t c = 0; c < p.cells(); ++c) p.unary[2 * p.cells() + c] = -static_cast<std::int64_t>(random() % 50);
    if (is_apart) return;
    // A group of its own beside those of the first tree.
    const std::int32_t tree = p.group_tree[0];
    for (const Cell low : {0, 2}) {
        p.literals.push_back({0, low, low + 1});
        p.box_offset.push_back(static_cast<std::int64_t>(p.literals.size()));
        p.leaf_offset.push_back(static_cast<std::int64_t>(p.box_offset.size()) - 1);
        p.coefficient_row.push_back(2);
        p.coefficient_value.push_back(low);
        p.coefficient_offset.push_back(static_cast<std::int64_t>(p.coefficient_row.size()));
    }
    p.group_tree.push_back(tree);
    p.group_offset.push_back(static_cast<std::int64_t>(p.leaf_offset.size()) - 1);
}

// The bound once more, in integers, from the messages that are read: and their sum over the factors is no less than the
// unary terms.
std::int64_t bound_by_messages(const Problem& p, Messages& m, const Domains& domains) {
    const FactorSet& set = m.set();
    std::vector<double> read(set.segment_start.size(), 0);
    m.read_messages(read);
    std::vector<std::int64_t> handed(p.cells(), 0);
    std::int64_t bound = m.constant();
    for (std::int32_t t = 0; t < set.factors(); ++t) {
        std::int64_t best = INT64_MIN;
        const std::int64_t first = set.entry_offset[t];
        std::vector<std::int64_t> place(set.entry_offset[t + 1] - first, -1);
        for (std::int64_t i = first; i < first + m.alive(t); ++i) place[m.entry(i) - first] = i;
        for (std::int64_t e = first; e < set.entry_offset[t + 1]; ++e) {
            const bool left = place[e - first] >= 0;
            auto value = left ? static_cast<std::int64_t>(m.value(place[e - first])) : 0;
            bool possible = true;
            for (std::int32_t s = set.slot_offset[t]; s < set.slot_offset[t + 1]; ++s) {
                const Literal l = m.range(s, e);
                std::int64_t most = INT64_MIN;
                for (std::int64_t g = set.slot_segment[s]; g < set.slot_segment[s + 1]; ++g) {
                    const bool meets = set.segment_start[g] <= l.high && set.segment_end[g] >= l.low;
                    if (!meets || !domains.any(l.variable, set.segment_start[g], set.segment_end[g])) continue;
                    most = std::max(most, static_cast<std::int64_t>(read[g]));
                }
                possible = possible && most > INT64_MIN;
                if (possible) value += most;
            }
            CHECK((left || !possible));
            if (possible) best = std::max(best, value);
        }
        bound += best;
    }
    for (std::int32_t s = 0; s < set.slots(); ++s) {
        for (std::int64_t g = set.slot_segment[s]; g < set.slot_segment[s + 1]; ++g) {
            for (Cell k = set.segment_start[g]; k <= set.segment_end[g]; ++k) {
                handed[p.cell_offset[set.slot_variable[s]] + k] += static_cast<std::int64_t>(read[g]);
            }
        }
    }
    for (std::int32_t v = 0; v < p.variables(); ++v) {
        for (Cell k = 0; k < p.size[v]; ++k) {
            const std::int32_t c = p.cell_offset[v] + k;
            const bool used = set.use_offset[v] < set.use_offset[v + 1];
            if (used && domains.has(v, k)) CHECK(handed[c] >= static_cast<std::int64_t>(m.unary(c)));
        }
    }
    return bound;
}

// The best of the combined rows over the domains, by brute force.
std::int64_t best_combined(const Setting& s, const FactorSet& set, const Domains& domains) {
    std::int64_t best = INT64_MIN;
    std::vector<std::int64_t> slack(2);
    sample::for_all(s.p, [&](const std::vector<Cell>& x) {
        for (std::int32_t v = 0; v < s.p.variables(); ++v) {
            if (!domains.has(v, x[v])) return;
        }
        evaluate(s.p, s.f, s.goal.bound, x.data(), slack.data());
        best = std::max(best, kMultiplierUnit / 2 * to_grid(slack[0] + slack[1], set.shift[0]));
    });
    return best;
}

}  // namespace

TEST_CASE("hard rows over other trees stand beside the sum of rows that cancel, and lower its bound") {
    int lower = 0;
    for (std::uint64_t seed = 1; seed < 24; ++seed) {
        MemoryBudget budget;
        Problem p = sample::problem(seed % 12, 6, 0);
        add_hard_row(p, seed < 12 ? -350 : -550);
        validate(p);
        const Forest f = build_forest(p);
        const Goal goal(p, Mode::slack, p.bound);
        const FactorSets sets = build_factor_sets(p, f, goal, budget);
        REQUIRE(sets.collapsed->rows.size() == 2);
        CHECK(sets.collapsed->rows[1] == RowSum{2});
        BoundLevel level(p, goal, sets.collapsed, collapsed_multiplier(sets), budget);
        level.messages.keep_cells();
        Domains domains(p);
        level.messages.reset(domains, false);
        Control control;
        control.start(-1, -1);
        for (int i = 0; i < 6; ++i) level.messages.sweep(i % 2 == 0, domains, control);
        const std::int64_t without = level.upper(p, goal);
        std::vector<Cell> x(p.variables(), 0);
        std::int64_t best = INT64_MIN;
        std::vector<std::int64_t> slack(3);
        sample::for_all(p, [&](const std::vector<Cell>& y) {
            evaluate(p, f, goal.bound, y.data(), slack.data());
            if (slack[2] >= 0) best = std::max(best, std::min(slack[0], slack[1]));
        });
        const Optimised of{p, goal};
        for (int i = 0; i < 30; ++i) {
            level.messages.decode(x);
            Sweep outcome = Sweep::open;
            level.improve_multipliers(x, domains, control, outcome, &of);
            CHECK(level.upper(p, goal) >= best);
        }
        CHECK(level.upper(p, goal) <= without);
        lower += level.upper(p, goal) < without;
    }
    CHECK(lower > 8);
}

TEST_CASE("an objective over other terms has a grid of its own, and its bound holds after every step") {
    int lower = 0;
    for (std::uint64_t seed = 1; seed < 24; ++seed) {
        MemoryBudget budget;
        Problem p = sample::problem(seed, 6, -20);
        const bool is_apart = seed % 4 != 0;
        add_objective(p, is_apart, seed);
        validate(p);
        const Forest f = build_forest(p);
        const Goal goal(p, Mode::objective, p.bound);
        const FactorSets sets = build_factor_sets(p, f, goal, budget, seed % 3 == 0 ? 60 : 0);
        CHECK(sets.objective_is_apart == is_apart);
        // Its values are some thousandths of those of the scores.
        const std::int64_t magnitude = p.magnitude(2) + 1;
        CHECK((row_shifts(p, goal, is_apart)[2] == shift_for(magnitude)) == is_apart);
        std::int64_t best = INT64_MIN;
        std::vector<std::int64_t> slack(3);
        sample::for_all(p, [&](const std::vector<Cell>& y) {
            evaluate(p, f, goal.bound, y.data(), slack.data());
            if (std::min(slack[0], slack[1]) >= 0) best = std::max(best, slack[2]);
        });
        BoundLevel level(p, goal, sets.full, start_multipliers(sets), budget);
        level.messages.keep_cells();
        Domains domains(p);
        level.messages.reset(domains, false);
        Control control;
        control.start(-1, -1);
        for (int i = 0; i < 6; ++i) level.messages.sweep(i % 2 == 0, domains, control);
        const std::int64_t without = level.upper(p, goal);
        CHECK(without >= best);
        std::vector<Cell> x(p.variables(), 0);
        const Optimised of{p, goal, 1 + static_cast<std::int64_t>(seed % 3)};
        for (int i = 0; i < 30; ++i) {
            level.messages.decode(x);
            Sweep outcome = Sweep::open;
            level.improve_multipliers(x, domains, control, outcome, &of);
            CHECK(level.upper(p, goal) >= best);
        }
        lower += level.upper(p, goal) < without;
    }
    CHECK(lower > 8);
}

TEST_CASE("a join counts the entries that it would make") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const Problem p = sample::problem(seed, 4);
        const Forest f = build_forest(p);
        const std::vector<RowSum> rows = {{0, 1}};
        for (const bool collapse : {false, true}) {
            Join counts(p, f, rows, collapse);
            Join join(p, f, rows, collapse);
            for (const auto& [tree, groups] : groups_by_tree(p)) {
                static_cast<void>(tree);
                REQUIRE(join.run(groups, INT64_MAX));
                const auto entries = static_cast<std::int64_t>(join.entries.size());
                CHECK(counts.count(groups, 100'000) == entries);
                CHECK(counts.count(groups, entries - 1) == entries);
                // What is written afterwards has its boxes again.
                REQUIRE(counts.run(groups, INT64_MAX));
                CHECK(counts.literals.size() == join.literals.size());
            }
        }
    }
}

TEST_CASE("entries hold the sums of their trees") {
    for (std::uint64_t seed = 1; seed < 16; ++seed) {
        const Setting s(seed % 5, 0, std::int64_t{20} * (seed / 5));
        CHECK((s.sets.collapsed != nullptr));
        if (seed < 5) CHECK(s.sets.collapsed->entries() <= s.sets.full->entries());
        for (const FactorSet* set : {s.sets.full.get(), s.sets.collapsed.get()}) {
            MemoryBudget budget;
            Messages m(s.p, *set, budget);
            m.set_multipliers(std::vector<std::int32_t>(set->rows.size(), kMultiplierUnit / 2));
            m.reset(Domains(s.p), false);
            sample::for_all(s.p, [&](const std::vector<Cell>& x) {
                std::vector<std::int64_t> slack(2);
                evaluate(s.p, s.f, s.goal.bound, x.data(), slack.data());
                for (std::size_t r = 0; r < set->rows.size(); ++r) {
                    std::int64_t sum = set->constant[r];
                    for (std::int32_t t = 0; t < set->factors(); ++t) {
                        sum += static_cast<std::int64_t>(set->value[r][m.entry(m.place_at(t, x))]);
                    }
                    std::int64_t expected = 0;
                    for (std::int32_t row : set->rows[r]) expected += slack[row];
                    // Small integers move to the grid without rounding.
                    CHECK(sum == to_grid(expected, set->shift[r]));
                }
            });
        }
    }
}

TEST_CASE("leaves of copies that a clause of two literals refutes are no entry, and all others are one") {
    std::mt19937_64 random(11);
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        Problem p = sample::problem(seed, 3);
        for (int c = 0; c < 12; ++c) {
            // Rays up and down, and now and then a literal that is neither.
            const std::int32_t one = static_cast<std::int32_t>(random() % 5);
            const std::int32_t other = (one + 1 + static_cast<std::int32_t>(random() % 4)) % 5;
            for (const std::int32_t v : {one, other}) {
                const Cell cell = static_cast<Cell>(random() % p.size[v]);
                const Cell last = p.size[v] - 1;
                const std::uint64_t kind = random() % 5;
                p.clause_literals.push_back(kind == 0   ? Literal{v, cell, cell}
                                            : kind <= 2 ? Literal{v, cell, last}
                                                        : Literal{v, 0, cell});
            }
            p.clause_offset.push_back(static_cast<std::int64_t>(p.clause_literals.size()));
        }
        const Forest f = build_forest(p);
        const std::vector<RowSum> rows = {{0, 1}};
        const auto holds = [&p](const std::vector<Cell>& x, std::int64_t c) {
            const Literal* l = p.clause_literals.data() + p.clause_offset[c];
            return std::any_of(l, l + 2,
                               [&](const Literal& k) { return k.low <= x[k.variable] && x[k.variable] <= k.high; });
        };
        for (const auto& [tree, groups] : groups_by_tree(p)) {
            static_cast<void>(tree);
            Join join(p, f, rows, false);
            REQUIRE(join.run(groups, INT64_MAX));
            const auto inside = [&join](const Join::Entry& e, const std::vector<Cell>& x) {
                return std::all_of(
                    join.literals.begin() + e.first_literal, join.literals.begin() + e.last_literal,
                    [&x](const Literal& l) { return l.low <= x[l.variable] && x[l.variable] <= l.high; });
            };
            // What no clause refutes by itself is in one entry; a box that a clause refutes as a whole is none.
            std::vector<std::set<std::int64_t>> refuted(join.entries.size());
            for (std::size_t e = 0; e < join.entries.size(); ++e) {
                for (std::int64_t c = 0; c < p.clauses(); ++c) refuted[e].insert(c);
            }
            sample::for_all(p, [&](const std::vector<Cell>& x) {
                std::int64_t entries = 0;
                for (std::size_t e = 0; e < join.entries.size(); ++e) {
                    if (!inside(join.entries[e], x)) continue;
                    ++entries;
                    for (std::int64_t c = 0; c < p.clauses(); ++c) {
                        if (holds(x, c)) refuted[e].erase(c);
                    }
                }
                bool solution = true;
                for (std::int64_t c = 0; c < p.clauses(); ++c) solution = solution && holds(x, c);
                CHECK(entries <= 1);
                if (solution) CHECK(entries == 1);
            });
            const bool all =
                std::all_of(refuted.begin(), refuted.end(), [](const auto& clauses) { return !clauses.empty(); });
            for (const auto& clauses : refuted) CHECK((all || clauses.empty()));
        }
    }
}

TEST_CASE("boxes of a bundle are the combinations of leaves that some point reaches") {
    for (std::uint64_t seed = 1; seed < 12; ++seed) {
        const Setting s(seed);
        const std::vector<std::int32_t>& size = s.p.size;
        BundleBoxes boxes(s.p, s.f);
        for (const std::int32_t from : {0, 3}) {
            boxes.clear();
            std::vector<std::int32_t> groups;
            for (std::int32_t g = from; g < std::min(from + 4, s.p.groups()); ++g) {
                groups.push_back(g);
                std::set<std::vector<std::int32_t>> reached;
                std::vector<Cell> x(size.size(), 0);
                for (bool more = true; more;) {
                    std::vector<std::int32_t> leaves;
                    for (const std::int32_t one : groups) leaves.push_back(s.f.leaf_of(one, x.data()));
                    reached.insert(leaves);
                    std::size_t v = 0;
                    while (v < x.size() && ++x[v] == size[v]) x[v++] = 0;
                    more = v < x.size();
                }
                const auto count = static_cast<std::int64_t>(reached.size());
                CHECK(boxes.size_with(g, 1'000'000) == count);
                CHECK(boxes.size_with(g, count) == count);
                if (count > boxes.size()) CHECK(boxes.size_with(g, count - 1) > count - 1);
                boxes.add(g);
                CHECK(boxes.size() == count);
            }
        }
    }
}

TEST_CASE("trees that share a factor are all there, once, and within their budget") {
    int fewer = 0;
    for (std::uint64_t seed = 1; seed < 12; ++seed) {
        const Setting apart(seed);
        const Setting s(seed, 0, 60);
        fewer += s.sets.full->factors() < apart.sets.full->factors();
        std::vector<std::int32_t> seen;
        for (std::int32_t t = 0; t < s.sets.full->factors(); ++t) {
            const std::vector<std::int32_t>& groups = s.sets.full->factor_groups[t];
            seen.insert(seen.end(), groups.begin(), groups.end());
            CHECK(s.sets.full->entry_offset[t + 1] - s.sets.full->entry_offset[t] <= 60);
        }
        std::sort(seen.begin(), seen.end());
        CHECK((std::adjacent_find(seen.begin(), seen.end()) == seen.end()));
        std::size_t all = 0;
        for (const auto& groups : apart.sets.full->factor_groups) all += groups.size();
        CHECK(seen.size() == all);
        // Zero messages: the sum of the best of every factor, which several trees do not reach together.
        MemoryBudget budget;
        Messages one(s.p, *apart.sets.full, budget);
        Messages together(s.p, *s.sets.full, budget);
        for (Messages* m : {&one, &together}) {
            m->set_multipliers({kMultiplierUnit / 2, kMultiplierUnit / 2});
            m->reset(Domains(s.p), false);
        }
        CHECK(together.bound() <= one.bound());
    }
    CHECK(fewer > 5);
}

TEST_CASE("bound and removed cells are valid after every sweep") {
    for (std::uint64_t seed = 1; seed < 24; ++seed) {
        const Setting s(seed % 12, 60, seed < 12 ? 0 : 60);
        for (const auto& set : {s.sets.full, s.sets.collapsed}) {
            const std::int32_t half = (1 << kMultiplierBits) / 2;
            MemoryBudget budget;
            BoundLevel bound_level(s.p, s.goal, set, std::vector<std::int32_t>(set->rows.size(), half), budget);
            Domains domains(s.p);
            bound_level.messages.reset(domains, false);
            Control control;
            control.start(-1, -1);
            std::int64_t best = INT64_MIN;
            std::vector<std::int64_t> slack(2);
            sample::for_all(s.p, [&](const std::vector<Cell>& x) {
                evaluate(s.p, s.f, s.goal.bound, x.data(), slack.data());
                best = std::max(best, half * to_grid(slack[0] + slack[1], set->shift[0]));
            });
            CHECK(bound_level.messages.bound() >= best);
            std::int64_t last = bound_level.messages.bound();
            for (int i = 0; i < 8; ++i) {
                const Sweep outcome = bound_level.messages.sweep(i % 2 == 0, domains, control);
                if (outcome == Sweep::pruned) {
                    CHECK(best < 0);
                    break;
                }
                if (best >= 0) CHECK(bound_level.messages.bound() >= best);
                CHECK(bound_level.messages.bound() <= last + 100);
                last = bound_level.messages.bound();
                sample::for_all(s.p, [&](const std::vector<Cell>& x) {
                    evaluate(s.p, s.f, s.goal.bound, x.data(), slack.data());
                    if (slack[0] + slack[1] < 0) return;
                    for (std::int32_t v = 0; v < s.p.variables(); ++v) CHECK(domains.has(v, x[v]));
                });
            }
        }
    }
}

TEST_CASE("passes over the factors lower bounds at which sweeps stand still, and never below the best") {
    int lower = 0;
    for (std::uint64_t seed = 1; seed < 36; ++seed) {
        const Setting s(seed % 12, 0, seed < 12 ? 0 : 60);
        for (const auto& set : {s.sets.full, s.sets.collapsed}) {
            MemoryBudget budget;
            const std::vector<std::int32_t> half(set->rows.size(), kMultiplierUnit / 2);
            BoundLevel level(s.p, s.goal, set, half, budget);
            level.messages.keep_cells();
            Domains domains(s.p);
            if (seed >= 24) {
                domains.remove(0, 1);
                domains.keep(2, 1, 3);
                domains.keep(3, 0, 2);
            }
            level.messages.reset(domains, false);
            const std::int64_t best = best_combined(s, *set, domains);
            Control control;
            control.start(-1, -1);
            for (int i = 0; i < 60; ++i) level.messages.sweep(i % 2 == 0, domains, control);
            std::int64_t least = level.messages.bound();
            const std::int64_t still = least;
            for (int i = 0; i < 12; ++i) {
                level.messages.pass(control);
                CHECK(level.messages.bound() >= best);
                CHECK(level.messages.bound() == bound_by_messages(s.p, level.messages, domains));
                least = std::min(least, level.messages.bound());
                // The state is one that sweeps and nodes below go on from.
                const SavedMessages saved = level.messages.saved_messages();
                level.messages.go_to(domains, saved);
                level.messages.sweep(i % 2 == 0, domains, control);
                CHECK(level.messages.bound() >= best);
                CHECK(level.messages.bound() == bound_by_messages(s.p, level.messages, domains));
                least = std::min(least, level.messages.bound());
            }
            lower += least < still - (still - best) / 100;
        }
    }
    CHECK(lower > 8);
}

TEST_CASE("passes stay in range, whatever they begin with") {
    for (std::uint64_t seed = 1; seed < 12; ++seed) {
        const Setting s(seed, 0, seed % 2 == 0 ? 60 : 0);
        const FactorSet& set = *s.sets.full;
        const Domains domains(s.p);
        const std::int64_t best = best_combined(s, set, domains);
        // From sizes of ordinary messages to far more than doubles hold exactly.
        for (int bits = 44; bits < 58; ++bits) {
            MemoryBudget budget;
            BoundLevel level(s.p, s.goal, s.sets.full, {kMultiplierUnit / 2, kMultiplierUnit / 2}, budget);
            level.messages.reset(domains, false);
            std::vector<double> r(level.messages.reduced().size());
            std::mt19937_64 random(seed);
            for (double& one : r) one = std::ldexp(static_cast<double>(random() % 2001) - 1000, bits - 10);
            level.messages.set_reduced(r);
            Control control;
            control.start(-1, -1);
            for (int i = 0; i < 3; ++i) {
                level.messages.pass(control);
                CHECK(level.messages.bound() >= best);
                CHECK(level.messages.bound() == bound_by_messages(s.p, level.messages, domains));
            }
        }
    }
}

TEST_CASE("a pass that is stopped leaves a bound") {
    const Setting s(4);
    MemoryBudget budget;
    BoundLevel level(s.p, s.goal, s.sets.full, {kMultiplierUnit / 2, kMultiplierUnit / 2}, budget);
    Domains domains(s.p);
    level.messages.reset(domains, false);
    Control control;
    control.start(-1, -1);
    control.request_stop();
    CHECK(level.messages.pass(control) == Sweep::stopped);
    CHECK(level.messages.bound() >= best_combined(s, *s.sets.full, domains));
    CHECK(level.messages.bound() == bound_by_messages(s.p, level.messages, domains));
}

TEST_CASE("saved messages come back") {
    const Setting s(3);
    MemoryBudget budget;
    BoundLevel bound_level(s.p, s.goal, s.sets.full, {1024, 1024}, budget);
    Domains all(s.p);
    bound_level.messages.reset(all, false);
    Control control;
    control.start(-1, -1);
    Domains domains = all;
    bound_level.messages.sweep(true, domains, control);
    Saved saved;
    bound_level.messages.save(saved);
    const std::int64_t bound = bound_level.messages.bound();
    Domains child = domains;
    child.keep(0, 0, 0);
    child.keep(2, 1, 2);
    bound_level.messages.sync(child);
    bound_level.messages.sweep(false, child, control);
    bound_level.messages.restore(saved);
    CHECK(bound_level.messages.bound() == bound);
}

TEST_CASE("multipliers stay on the simplex") {
    std::vector<std::int32_t> m = {1 << (kMultiplierBits - 1), 1 << (kMultiplierBits - 1), 0};
    m = step_multipliers(m, {5.0, -3.0, 1000.0}, 0.25);
    CHECK(m[0] + m[1] + m[2] == 1 << kMultiplierBits);
    CHECK((m[0] < m[1] && m[2] == 0));
    CHECK(step_multipliers(m, {1, 1, 1}, 0.5) == m);
}

TEST_CASE("block moves are exact") {
    for (std::uint64_t seed = 1; seed < 8; ++seed) {
        const Setting s(seed);
        const Clauses clauses(s.p);
        Moves moves(s.p, s.f, clauses);
        moves.set_goal(s.goal);
        for (std::int32_t first = 0; first < s.p.variables(); ++first) {
            for (std::int32_t second = -1; second < s.p.variables(); ++second) {
                if (second == first) continue;
                std::vector<Cell> x = {1, 1, 1, 1, 1};
                moves.place(x, 0);
                std::vector<std::int64_t> slack(2);
                evaluate(s.p, s.f, s.goal.bound, x.data(), slack.data());
                CHECK(moves.score() == s.goal.score(s.p, slack.data()));
                moves.improve(first, second);
                evaluate(s.p, s.f, s.goal.bound, moves.x().data(), slack.data());
                CHECK(moves.score() == s.goal.score(s.p, slack.data()));
                // Nothing in the block, together with the private variables 3 and 4, is better.
                Score best;
                sample::for_all(s.p, [&](const std::vector<Cell>& y) {
                    for (std::int32_t v = 0; v < 3; ++v) {
                        if (v != first && v != second && y[v] != x[v]) return;
                    }
                    std::vector<std::int64_t> other(2);
                    evaluate(s.p, s.f, s.goal.bound, y.data(), other.data());
                    best = std::max(best, s.goal.score(s.p, other.data()));
                });
                CHECK(!(best < moves.score()));
                CHECK(moves.score() == best);
            }
        }
    }
}

TEST_CASE("the prover alone closes and resumes") {
    for (std::uint64_t seed = 1; seed < 10; ++seed) {
        std::int64_t best = INT64_MIN;
        const Setting s(seed);
        sample::for_all(s.p, [&](const std::vector<Cell>& x) {
            std::vector<std::int64_t> slack(2);
            evaluate(s.p, s.f, s.goal.bound, x.data(), slack.data());
            best = std::max(best, std::min(slack[0], slack[1]));
        });
        Search search(sample::problem(seed, 6, best + 1), Mode::decide, 1, -1);
        for (int i = 0; i < 1000 && search.status() == Status::open; ++i) search.run(-1, -1, 1);
        CHECK((search.status() == Status::infeasible && search.upper() == -1));
        Search maximise(sample::problem(seed), Mode::slack, 1, -1);
        maximise.run(-1, -1, -1);
        CHECK((maximise.status() == Status::optimal && maximise.incumbent().score.soft == best &&
               maximise.upper() == best));
    }
}

TEST_CASE("several provers prove what one proves") {
    for (std::uint64_t seed = 1; seed < 12; ++seed) {
        Setting s(seed);
        s.goal = Goal(s.p, Mode::slack, s.p.bound);
        std::int64_t best = INT64_MIN;
        sample::for_all(s.p, [&](const std::vector<Cell>& x) {
            std::vector<std::int64_t> slack(2);
            evaluate(s.p, s.f, s.goal.bound, x.data(), slack.data());
            best = std::max(best, std::min(slack[0], slack[1]));
        });
        Clauses clauses(s.p);
        LocalSearch local(s.p, s.f, clauses, seed);
        local.set_goal(s.goal);
        Prover first(s.p, s.f, clauses, s.goal, s.sets, Gap(), s.budget);
        // A look at the others after every step, and pauses on the way.
        WorkSharing sharing(s.p, s.f, s.goal, s.sets, Gap(), s.budget, first, 4, seed, 1);
        CHECK(sharing.helpers().size() == 3);
        Incumbent incumbent;
        Control control;
        for (int i = 0; i < 10'000 && !sharing.finished(); ++i) {
            control.start(i % 3 == 0 ? 0.0005 : -1, -1);
            sharing.run(i % 2 == 0 ? 2'000 : 100'000, incumbent, local, control);
            CHECK(sample::upper(sharing, incumbent) >= best);
        }
        CHECK((sharing.finished() && incumbent.score.soft == best && sample::upper(sharing, incumbent) == best));
    }
}

TEST_CASE("several provers prove in parts what one proves") {
    for (std::uint64_t seed = 1; seed < 24; ++seed) {
        Problem p = sample::problem(seed, 8, seed % 3 == 0 ? -200 : -40);
        p.constraints = 1;
        p.has_objective = true;
        p.bound = {p.bound[0], 0};
        validate(p);
        const Forest f = build_forest(p);
        const Goal goal(p, Mode::objective, p.bound);
        Score best;
        sample::for_all(p, [&](const std::vector<Cell>& x) {
            std::vector<std::int64_t> slack(2);
            evaluate(p, f, goal.bound, x.data(), slack.data());
            best = std::max(best, goal.score(p, slack.data()));
        });
        const bool possible = best.hard >= 0;
        MemoryBudget budget(std::int64_t{1} << 30);
        const FactorSets sets = build_factor_sets(p, f, goal, budget, 8);
        Clauses clauses(p);
        LocalSearch local(p, f, clauses, seed);
        local.set_goal(goal);
        const std::int64_t before = budget.room();
        Prover first(p, f, clauses, goal, sets, Gap(), budget);
        const std::int64_t room = budget.room();
        CHECK(room < before);
        first.set_parts({8, seed % 2 == 0 ? 1 : 2, true});
        first.set_audit(1);
        WorkSharing sharing(p, f, goal, sets, Gap(), budget, first, 3, seed, 1);
        sharing.set_audit(1);
        const std::int64_t shared_room = budget.room();
        Incumbent incumbent;
        Control control;
        for (int i = 0; i < 10'000 && !sharing.finished(); ++i) {
            control.start(i % 3 == 0 ? 0.0005 : -1, -1);
            sharing.run(i % 2 == 0 ? 2'000 : 100'000, incumbent, local, control);
            if (possible) CHECK(sample::upper(sharing, incumbent) >= best.soft);
        }
        REQUIRE(sharing.finished());
        CHECK((incumbent.present() && incumbent.score.hard >= 0) == possible);
        if (possible) CHECK((incumbent.score.soft == best.soft && sample::upper(sharing, incumbent) == best.soft));
        // Whatever parts and open nodes took has been given back, but for messages that a level of a bound may hold.
        CHECK(budget.room() >= shared_room - 4096);
    }
}

TEST_CASE("a share of a budget gives back what it has counted") {
    MemoryBudget whole(1000);
    {
        MemoryBudget share(whole, MemoryBudget::Share{});
        share.charge(300);
        CHECK((whole.room() == 700 && share.room() == 700));
        CHECK_THROWS_AS(share.charge(800), MemoryLimit);
        CHECK(whole.room() == 700);
        CHECK_FALSE(share.try_charge(701));
        share.charge_anyway(100);
        share.release(250);
        CHECK(whole.room() == 850);
    }
    CHECK(whole.room() == 1000);
}

TEST_CASE("the memory limit is an answer") {
    const std::int64_t arrays = Search(sample::problem(1), Mode::decide, 1, -1).memory().peak();
    Search search(sample::problem(1, 6, 300), Mode::decide, 1, arrays + 100);
    search.run(-1, -1, -1);
    CHECK((search.status() == Status::open && search.reason() == Reason::memory));
    CHECK_THROWS_AS(Search(sample::problem(1), Mode::decide, 1, 100), MemoryLimit);
}

}  // namespace bounds_tests
