// Boxes of deep trees: bounds and losses against brute force over the points of random nodes.
#include <algorithm>
#include <numeric>

#include "certify/certifier.hpp"
#include "overlap/cut_losses.hpp"
#include "prove/overlap_prover.hpp"
#include "sample.hpp"
#include "search.hpp"
#include "third_party/doctest.h"

using namespace treesens;

namespace overlap_tests {

namespace {

struct Hull {
    std::vector<Cell> low;
    std::vector<Cell> high;
    bool holds(const std::vector<Cell>& x) const {
        for (std::size_t v = 0; v < x.size(); ++v) {
            if (x[v] < low[v] || x[v] > high[v]) return false;
        }
        return true;
    }
};

struct Setting {
    explicit Setting(std::uint64_t seed)
        : p(sample::problem(seed, 6)), f(build_forest(p)), goal(p, Mode::decide, p.bound), random(seed) {
        layers = build_box_layers(p, f, goal, budget);
    }
    Hull whole() const {
        Hull hull{std::vector<Cell>(p.size.size(), 0), p.size};
        for (Cell& high : hull.high) --high;
        return hull;
    }
    Hull part(Hull hull) {
        for (std::size_t v = 0; v < hull.low.size(); ++v) {
            if (random() % 2 == 0) continue;
            hull.low[v] += static_cast<Cell>(random() % static_cast<std::uint64_t>(hull.high[v] - hull.low[v] + 1));
            hull.high[v] -= static_cast<Cell>(random() % static_cast<std::uint64_t>(hull.high[v] - hull.low[v] + 1));
        }
        return hull;
    }
    std::int64_t best(const RowSum& rows, const Hull& hull) const {
        std::int64_t most = INT64_MIN;
        std::vector<std::int64_t> slack(2);
        sample::for_all(p, [&](const std::vector<Cell>& x) {
            if (!hull.holds(x)) return;
            evaluate(p, f, goal.bound, x.data(), slack.data());
            std::int64_t sum = 0;
            for (const std::int32_t r : rows) sum += slack[r] + goal.bound[r];
            most = std::max(most, sum);
        });
        return most;
    }
    MemoryBudget budget;
    Problem p;
    Forest f;
    Goal goal;
    BoxLayers layers;
    std::mt19937_64 random;
};

void enter(ActiveBoxes& boxes, const Hull& hull) {
    std::vector<std::int32_t> all(hull.low.size());
    std::iota(all.begin(), all.end(), 0);
    boxes.restrict_to(all, hull.low, hull.high);
}

}  // namespace

TEST_CASE("boxes bound every node, and a row of a single point exactly") {
    for (std::uint64_t seed = 1; seed < 8; ++seed) {
        Setting s(seed);
        CHECK(s.layers.layers.size() == 3);
        for (const BoxLayer& layer : s.layers.layers) {
            ActiveBoxes boxes(layer, s.budget);
            const std::int64_t root = boxes.bound();
            for (int i = 0; i < 20; ++i) {
                const ActiveBoxes::Mark mark = boxes.mark();
                Hull hull = s.part(s.whole());
                if (i % 4 == 0) hull.high = hull.low;
                enter(boxes, hull);
                const std::int64_t best = s.best(layer.rows, hull);
                CHECK((boxes.possible() && boxes.bound() >= best));
                if (layer.rows.size() == 1 && hull.low == hull.high) CHECK(boxes.bound() == best);
                boxes.undo(mark);
                CHECK(boxes.bound() == root);
            }
        }
    }
}

// Every cell of the variables becomes that many.
static Problem stretched(Problem p, const std::vector<std::int32_t>& times) {
    for (Literal& l : p.literals) {
        l.low *= times[l.variable];
        l.high = (l.high + 1) * times[l.variable] - 1;
    }
    p.cell_offset.assign(1, 0);
    for (std::size_t v = 0; v < times.size(); ++v) {
        p.size[v] *= times[v];
        p.cell_offset.push_back(p.cell_offset.back() + p.size[v]);
    }
    p.allowed.assign(p.cells(), 1);
    validate(p);
    return p;
}

TEST_CASE("boxes over hundreds of cells are those over a few, stretched") {
    const std::vector<std::int32_t> times{64, 86, 10'000, 64, 65};  // 256 cells, 258, 50,000, 256, 260
    for (std::uint64_t seed = 1; seed < 8; ++seed) {
        Setting s(seed);
        const Problem wide = stretched(s.p, times);
        const Forest f = build_forest(wide);
        const BoxLayers layers = build_box_layers(wide, f, Goal(wide, Mode::decide, wide.bound), s.budget);
        REQUIRE(layers.layers.size() == s.layers.layers.size());
        for (std::size_t i = 0; i < layers.layers.size(); ++i) {
            ActiveBoxes boxes(layers.layers[i], s.budget);
            ActiveBoxes few(s.layers.layers[i], s.budget);
            for (int n = 0; n < 50; ++n) {
                const ActiveBoxes::Mark mark = boxes.mark();
                const ActiveBoxes::Mark mark_few = few.mark();
                Hull hull{std::vector<Cell>(times.size(), 0), wide.size};
                for (Cell& high : hull.high) --high;
                hull = s.part(hull);
                Hull hull_few = hull;
                for (std::size_t v = 0; v < times.size(); ++v)
                    hull_few.low[v] /= times[v], hull_few.high[v] /= times[v];
                enter(boxes, hull);
                enter(few, hull_few);
                CHECK(boxes.bound() == few.bound());
                CHECK(boxes.possible() == few.possible());
                boxes.undo(mark);
                few.undo(mark_few);
            }
        }
    }
}

TEST_CASE("lists that are narrowed step by step, with marks and without, are those of the last node") {
    for (std::uint64_t seed = 1; seed < 8; ++seed) {
        Setting s(seed);
        for (const BoxLayer& layer : s.layers.layers) {
            ActiveBoxes steps(layer, s.budget);
            const ActiveBoxes::Mark root = steps.mark();
            for (int i = 0; i < 20; ++i) {
                std::vector<std::pair<ActiveBoxes::Mark, Hull>> way{{root, s.whole()}};
                Hull hull = s.whole();
                for (int depth = 0; depth < 4; ++depth) {
                    hull = s.part(hull);
                    enter(steps, hull);
                    if (s.random() % 2 == 0) way.emplace_back(steps.mark(), hull);
                }
                while (!way.empty()) {
                    steps.undo(way.back().first);
                    ActiveBoxes once(layer, s.budget);
                    enter(once, way.back().second);
                    CHECK(steps.bound() == once.bound());
                    CHECK(steps.possible() == once.possible());
                    for (std::int32_t t = 0; t < layer.factors(); ++t) {
                        REQUIRE(steps.active(t) == once.active(t));
                        CHECK(std::equal(steps.begin(t), steps.begin(t) + steps.active(t), once.begin(t)));
                    }
                    way.pop_back();
                }
            }
        }
    }
}

TEST_CASE("losses of cuts are those of the children, and refuted ends hold nothing") {
    for (std::uint64_t seed = 1; seed < 8; ++seed) {
        Setting s(seed);
        for (const BoxLayer& layer : s.layers.layers) {
            for (int i = 0; i < 10; ++i) {
                ActiveBoxes boxes(layer, s.budget);
                const Hull hull = s.part(s.whole());
                enter(boxes, hull);
                const std::int64_t needed = boxes.bound() - static_cast<std::int64_t>(s.random() % 100);
                CutLosses losses(s.p);
                losses.start(hull.low, hull.high);
                losses.look(boxes, boxes.bound() - needed, 0);
                const OverlapCut cut = losses.best();
                double most = 0;
                for (std::int32_t v = 0; v < s.p.variables(); ++v) {
                    for (Cell at = hull.low[v]; at < hull.high[v]; ++at) {
                        Hull low = hull;
                        Hull high = hull;
                        low.high[v] = at;
                        high.low[v] = at + 1;
                        std::int64_t lesser = INT64_MAX;
                        for (const Hull* child : {&low, &high}) {
                            const ActiveBoxes::Mark mark = boxes.mark();
                            const std::int64_t before = boxes.bound();
                            enter(boxes, *child);
                            lesser = std::min(lesser, before - boxes.bound());
                            const bool refuted = boxes.bound() < needed;
                            // An end is cut off if, and only if, its bound does not suffice.
                            if (child == &low) CHECK((refuted == (losses.low()[v] > at)));
                            if (child == &high) CHECK((refuted == (losses.high()[v] <= at)));
                            boxes.undo(mark);
                        }
                        most = std::max(most, static_cast<double>(lesser));
                    }
                }
                if (most > 0) CHECK(cut.variable >= 0);
                if (cut.variable >= 0) CHECK((hull.low[cut.variable] <= cut.cut && cut.cut < hull.high[cut.variable]));
            }
        }
    }
}

TEST_CASE("the overlap prover alone decides and maximises, and every pruned node is looked at again") {
    for (std::uint64_t seed = 1; seed < 10; ++seed) {
        Setting s(seed);
        std::int64_t best = INT64_MIN;
        sample::for_all(s.p, [&](const std::vector<Cell>& x) {
            std::vector<std::int64_t> slack(2);
            evaluate(s.p, s.f, s.goal.bound, x.data(), slack.data());
            best = std::max(best, std::min(slack[0], slack[1]));
        });
        Search search(sample::problem(seed, 6, best + 1), Mode::decide, 1, -1);
        search.set_method(Method::overlap);
        search.set_audit(1);
        for (int i = 0; i < 1000 && search.status() == Status::open; ++i) search.run(-1, -1, 1);
        CHECK((search.status() == Status::infeasible && search.upper() == -1 && search.fault().empty()));
        CHECK((search.provers().audited() > 0 && search.provers().messages() == nullptr));
        Search maximise(sample::problem(seed), Mode::slack, 1, -1);
        maximise.set_method(Method::overlap);
        maximise.run(-1, -1, -1);
        CHECK((maximise.status() == Status::optimal && maximise.incumbent().score.soft == best &&
               maximise.upper() == best));
    }
}

// Two or three variables each, so that some points satisfy all of them and others none.
static Problem with_clauses(Problem p, std::mt19937_64& random) {
    for (int c = 0; c < 2; ++c) {
        for (int i = 0; i < 2 + c; ++i) {
            const std::int32_t v = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(p.variables()));
            const Cell cut = static_cast<Cell>(random() % static_cast<std::uint64_t>(p.size[v] - 1));
            p.clause_literals.push_back(random() % 2 == 0 ? Literal{v, 0, cut} : Literal{v, cut + 1, p.size[v] - 1});
        }
        p.clause_offset.push_back(static_cast<std::int64_t>(p.clause_literals.size()));
    }
    validate(p);
    return p;
}

// What refutes every leaf of a proof, by the boxes of its rows and by the clauses alone.
static void check_leaves(const Problem& p, const Goal& goal, const BoxLayers& layers, const Proof& proof,
                         std::int64_t level) {
    MemoryBudget budget;
    Clauses clauses(p);
    std::vector<Domains> waiting{Domains(p)};
    std::int64_t leaf = 0;
    for (std::size_t i = 0; i < proof.variable.size(); ++i) {
        REQUIRE(!waiting.empty());
        Domains node = waiting.back();
        waiting.pop_back();
        const std::int32_t v = proof.variable[i];
        if (v >= 0) {
            waiting.push_back(node);
            waiting.back().keep(v, proof.cut[i] + 1, p.size[v] - 1);
            waiting.push_back(node);
            waiting.back().keep(v, 0, proof.cut[i]);
            continue;
        }
        const std::int32_t* counts = proof.multiplier.data() + 2 * leaf;
        leaf += v == Proof::kByMessages ? 1 : 0;
        std::vector<std::int32_t> changed;
        bool possible = true;
        for (std::int32_t u = 0; u < p.variables(); ++u) possible = possible && !node.empty(u);
        if (!possible || !clauses.propagate(node, changed)) continue;
        REQUIRE(v == Proof::kByMessages);
        const RowSum rows = counts[0] == 0 ? RowSum{1} : counts[1] == 0 ? RowSum{0} : RowSum{0, 1};
        const auto layer = std::find_if(layers.layers.begin(), layers.layers.end(),
                                        [&](const BoxLayer& one) { return one.rows == rows; });
        REQUIRE(layer != layers.layers.end());
        Hull hull;
        for (std::int32_t u = 0; u < p.variables(); ++u) {
            hull.low.push_back(node.first(u));
            hull.high.push_back(node.last(u));
        }
        ActiveBoxes boxes(*layer, budget);
        enter(boxes, hull);
        std::int64_t needed = 0;
        for (const std::int32_t r : rows) needed += goal.bound[r] + level;
        CHECK((!boxes.possible() || boxes.bound() < needed));
    }
    CHECK(waiting.empty());
    CHECK(2 * leaf == static_cast<std::int64_t>(proof.multiplier.size()));
}

TEST_CASE(
    "a level that no point reaches has a proof, whose leaves say what refutes them; one that is reached has none") {
    std::int64_t nodes = 0;
    for (std::uint64_t seed = 1; seed < 40; ++seed) {
        std::mt19937_64 random(seed);
        const Problem p = seed % 3 == 0 ? sample::problem(seed) : with_clauses(sample::problem(seed), random);
        const Forest f = build_forest(p);
        const Goal goal(p, Mode::slack, p.bound);
        MemoryBudget budget;
        Clauses clauses(p);
        const BoxLayers layers = build_box_layers(p, f, goal, budget);
        std::int64_t best = INT64_MIN;
        sample::for_all(p, [&](const std::vector<Cell>& x) {
            std::vector<std::int64_t> slack(2);
            evaluate(p, f, goal.bound, x.data(), slack.data());
            if (clauses.satisfied(x.data())) best = std::max(best, std::min(slack[0], slack[1]));
        });
        REQUIRE(best > INT64_MIN);
        for (const std::int64_t level : {best + 1, best + 20}) {
            Control control;
            const Proof proof = certify_by_overlap(p, f, clauses, goal, layers, level, 10'000, budget, control);
            REQUIRE((proof.complete && proof.reason.empty()));
            check_leaves(p, goal, layers, proof, level);
            nodes += static_cast<std::int64_t>(proof.variable.size());
        }
        for (const std::int64_t level : {best, best - 20}) {
            Control control;
            const Proof proof = certify_by_overlap(p, f, clauses, goal, layers, level, 10'000, budget, control);
            CHECK(!proof.complete);
            CHECK(proof.reason == "a point was met that cannot be refuted");
        }
    }
    CHECK(nodes > 500);
}

TEST_CASE("rows that cancel are about two points, and not the ends of a range for one") {
    std::int64_t chosen = 0;
    for (std::uint64_t seed = 1; seed < 12; ++seed) {
        Problem p = sample::problem(seed);
        // Row 1 becomes row 2, and row 1 is the other end of row 0.
        Problem ranged = p;
        ranged.rows = ranged.constraints = 3;
        ranged.bound = {p.bound[0], -1'000'000, p.bound[1]};
        ranged.slack_weight = {1, 1, 1};
        ranged.coefficient_offset.assign(1, 0);
        ranged.coefficient_row.clear();
        ranged.coefficient_value.clear();
        for (std::int64_t l = 0; l < p.leaves(); ++l) {
            for (std::int64_t i = p.coefficient_offset[l]; i < p.coefficient_offset[l + 1]; ++i) {
                const auto add = [&](std::int32_t row, std::int64_t value) {
                    ranged.coefficient_row.push_back(row);
                    ranged.coefficient_value.push_back(value);
                };
                add(p.coefficient_row[i] == 0 ? 0 : 2, p.coefficient_value[i]);
                if (p.coefficient_row[i] == 0) add(1, -p.coefficient_value[i]);
            }
            ranged.coefficient_offset.push_back(static_cast<std::int64_t>(ranged.coefficient_value.size()));
        }
        validate(ranged);
        const std::vector<RowSum> plain = cancelling_rows(p, build_forest(p), Goal(p, Mode::decide, p.bound));
        const std::vector<RowSum> sums =
            cancelling_rows(ranged, build_forest(ranged), Goal(ranged, Mode::decide, ranged.bound));
        CHECK(sums.size() == plain.size());
        if (sums.empty()) continue;
        CHECK(plain[0] == RowSum{0, 1});
        CHECK(sums[0] == RowSum{0, 2});
        ++chosen;
    }
    CHECK(chosen > 5);
}

TEST_CASE("rows that were rounded cancel but for their slop") {
    Setting s(3);
    Problem p = sample::problem(3);
    for (std::int64_t& c : p.coefficient_value) c *= std::int64_t{1} << 45;
    for (std::int64_t l = 0; l < p.leaves(); ++l) {
        // Shared leaves: one unit of the second row is rounded outward.
        if (p.coefficient_offset[l + 1] - p.coefficient_offset[l] == 2)
            p.coefficient_value[p.coefficient_offset[l] + 1] += l % 2;
    }
    validate(p);
    const Goal goal(p, Mode::decide, p.bound);
    const Forest f = build_forest(p);
    CHECK(rounding_slop(p, f, {0, 1}) == 1);
    CHECK(cancelling_rows(p, f, goal).size() == 1);
    MemoryBudget budget;
    const BoxLayers layers = build_box_layers(p, f, goal, budget);
    const FactorSets sets = build_factor_sets(p, f, goal, budget);
    CHECK(sets.collapsed->factors() == layers.layers[0].factors());
    ActiveBoxes boxes(layers.layers[0], budget);
    std::vector<std::int64_t> slack(2);
    sample::for_all(p, [&](const std::vector<Cell>& x) {
        evaluate(p, f, goal.bound, x.data(), slack.data());
        CHECK(boxes.bound() >= slack[0] + slack[1]);
    });
}

TEST_CASE("the second look finds a sum that its trees do not confirm") {
    Setting s(5);
    const RowSum rows{0};
    const std::int64_t best = s.best(rows, s.whole());
    CHECK(!stays_below(s.p, s.f, Domains(s.p), rows, best));
    std::int64_t apart = 0;
    for (std::int32_t g = 0; g < s.p.groups(); ++g) {
        std::int64_t most = INT64_MIN;
        for (std::int64_t l = s.p.group_offset[g]; l < s.p.group_offset[g + 1]; ++l) {
            std::int64_t sum = 0;
            for (std::int64_t i = s.p.coefficient_offset[l]; i < s.p.coefficient_offset[l + 1]; ++i) {
                if (s.p.coefficient_row[i] == 0) sum += s.p.coefficient_value[i];
            }
            most = std::max(most, sum);
        }
        apart += most;
    }
    CHECK(stays_below(s.p, s.f, Domains(s.p), rows, apart + 1));
}

}  // namespace overlap_tests
