// The pair nearest to a row beside all pairs, in exact sums: with leaves that are whole, and with leaves that are
// rounded.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "nearest/pair_search.hpp"
#include "third_party/doctest.h"

using namespace treesens;

namespace nearest_tests {

namespace {

constexpr std::int32_t kFeatures = 4;
constexpr std::int32_t kCells = 4;
constexpr std::int32_t kVaried = 3;
constexpr std::int32_t kTrees = 5;
// Leaves are known in so many parts of a unit.
constexpr std::int32_t kParts = 4;
constexpr double kEverywhere = std::numeric_limits<double>::infinity();

using Cells = std::vector<std::int32_t>;

// The whole units in some parts.
std::int64_t floor_units(std::int64_t parts) {
    return parts >= 0 ? parts / kParts : -((-parts + kParts - 1) / kParts);
}

// Random trees over features of four cells, of which the last one of the first feature is missing.
struct Sample {
    std::vector<std::int32_t> root, feature, cut, left, right, leaf, category_set;
    std::vector<std::int32_t> missing{kCells - 1, -1, -1, -1};
    std::vector<std::uint8_t> default_left, set_member;
    std::vector<std::int64_t> set_offset{0};
    std::vector<std::int64_t> exact;    // [leaves], in parts of a unit
    std::vector<std::int64_t> rounded;  // [leaves], in units, down
    std::mt19937_64 random;
    std::int32_t step;

    // Leaves are multiples of `parts` parts.
    Sample(std::uint64_t seed, std::int32_t parts) : random(seed), step(parts) {
        for (int t = 0; t < kTrees; ++t) {
            root.push_back(static_cast<std::int32_t>(feature.size()));
            grow(3);
        }
        for (const std::int64_t value : exact) rounded.push_back(floor_units(value));
    }
    std::int32_t below(std::int32_t n) { return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n)); }
    std::int32_t grow(int depth) {
        const auto n = static_cast<std::int32_t>(feature.size());
        const bool inner = depth > 0 && below(6) > 0;
        feature.push_back(inner ? below(kFeatures) : -1);
        cut.push_back(below(kCells - 1));
        left.push_back(0);
        right.push_back(0);
        leaf.push_back(inner ? -1 : static_cast<std::int32_t>(exact.size()));
        default_left.push_back(below(2) == 0 ? 1 : 0);
        category_set.push_back(-1);
        if (!inner) {
            exact.push_back(step * (below(80 / step + 1) - 40 / step));
            return n;
        }
        const std::int32_t l = grow(depth - 1);
        const std::int32_t r = grow(depth - 1);
        left[static_cast<std::size_t>(n)] = l;
        right[static_cast<std::size_t>(n)] = r;
        return n;
    }
    CellTrees trees() const {
        CellTrees t;
        t.trees = kTrees;
        t.root = root.data();
        t.feature = feature.data();
        t.cut = cut.data();
        t.left = left.data();
        t.right = right.data();
        t.leaf = leaf.data();
        t.default_left = default_left.data();
        t.category_set = category_set.data();
        t.set_offset = set_offset.data();
        t.set_member = set_member.data();
        t.missing_cell = missing.data();
        return t;
    }
    std::int64_t score(const Cells& row) const {
        const CellTrees t = trees();
        std::int64_t total = 0;
        for (std::int64_t i = 0; i < t.trees; ++i)
            total += exact[static_cast<std::size_t>(reach_leaf(t, i, row.data()))];
        return total;
    }
    Cells drawn() {
        Cells row;
        for (int f = 0; f < kFeatures; ++f) row.push_back(below(kCells));
        return row;
    }
};

// A pair of points that differ in the last feature alone.
struct Pair {
    Cells upper;
    Cells lower;
};

template <typename Visit>
void for_all_pairs(Visit visit) {
    Pair pair{Cells(kFeatures), Cells(kFeatures)};
    for (std::int32_t n = 0; n < kCells * kCells * kCells * kCells * kCells; ++n) {
        std::int32_t rest = n;
        for (int f = 0; f < kFeatures; ++f, rest /= kCells) pair.upper[f] = pair.lower[f] = rest % kCells;
        pair.lower[kVaried] = rest;
        visit(pair);
    }
}

// The search with what it points to.
struct Setting {
    Setting(Sample& s, Norm norm, const PairGoal& goal) : sample(s), trees(s.trees()), goal(goal) {
        for (std::int32_t f = 0; f < kFeatures; ++f) {
            offset.push_back(offset.back() + kCells);
            varied.push_back(f == kVaried ? 1 : 0);
            unit.push_back(f == kVaried ? 0.0 : 1.0 + f);
            for (std::int32_t k = 0; k < kCells; ++k) {
                low.push_back(k);
                high.push_back(k + 0.5);
            }
        }
        costs.features = kFeatures;
        costs.cell_offset = offset.data();
        costs.legal = legal.data();
        costs.value_low = low.data();
        costs.value_high = high.data();
        costs.unit = unit.data();
        costs.same_or_not = same_or_not.data();
        costs.missing_cell = s.missing.data();
        costs.norm = norm;
        specialiser = std::make_unique<TreeSpecialiser>(trees, static_cast<std::int64_t>(s.feature.size()),
                                                        s.rounded.data(), varied.data());
        search = std::make_unique<PairSearch>(*specialiser, trees, costs, goal, varied.data());
    }
    bool holds(const Pair& pair) const {
        const std::int64_t upper = sample.score(pair.upper);
        const std::int64_t lower = sample.score(pair.lower);
        if (goal.has_sides && (upper < kParts * goal.top || lower > kParts * goal.bottom)) return false;
        return !goal.has_swing || upper - lower >= kParts * goal.swing;
    }
    // What a point costs for a row of values, straight from the definition.
    double cost(const Cells& point, const std::vector<double>& row) const {
        double total = 0.0;
        for (std::size_t f = 0; f < kFeatures; ++f) {
            if (f == kVaried) continue;
            double one = 1.0;
            if (point[f] != sample.missing[f]) {
                const double gap = std::max({0.0, point[f] - row[f], row[f] - (point[f] + 0.5)});
                one = costs.norm == Norm::kL0 ? (gap > 0.0 ? 1.0 : 0.0) : gap / unit[f];
            }
            if (costs.norm == Norm::kL2) one *= one;
            total = costs.norm == Norm::kLinf ? std::max(total, one) : total + one;
        }
        return total;
    }
    RowOutcome around(const std::vector<double>& row, double cutoff) {
        std::vector<ValueRange> ranges;
        for (const double value : row) {
            const auto cell = static_cast<std::int32_t>(std::clamp(std::floor(value), 0.0, kCells - 1.0));
            const bool inside = value >= cell && value <= cell + 0.5;
            ranges.push_back({value, value, inside ? cell : 0, inside ? cell : -1, true, false});
        }
        return search->search(search->everything(), ranges, cutoff, 1 << 20, [] { return false; });
    }

    Sample& sample;
    const CellTrees trees;
    const PairGoal goal;
    std::vector<std::int64_t> offset{0};
    std::vector<std::uint8_t> varied, legal = std::vector<std::uint8_t>(kFeatures * kCells, 1);
    std::vector<std::uint8_t> same_or_not = std::vector<std::uint8_t>(kFeatures, 0);
    std::vector<double> unit, low, high;
    CellCosts costs;
    std::unique_ptr<TreeSpecialiser> specialiser;
    std::unique_ptr<PairSearch> search;
};

// Searches around random rows; `settles`: every search has to come to an end.
void check_all(std::int32_t parts, std::int64_t slack, bool settles) {
    int found = 0;
    int none = 0;
    int open = 0;
    for (std::uint64_t seed = 1; seed < 120; ++seed) {
        Sample s(seed, parts);
        // Goals that some pair reaches exactly, or nearly so: what is asked is whole.
        const Cells one = s.drawn();
        Cells other = one;
        other[kVaried] = s.below(kCells);
        const std::int64_t high = std::max(s.score(one), s.score(other));
        const std::int64_t low = std::min(s.score(one), s.score(other));
        PairGoal goal;
        goal.slack = slack;
        goal.has_swing = seed % 3 == 0;
        goal.has_sides = !goal.has_swing;
        goal.top = floor_units(high);
        goal.bottom = -floor_units(-low);
        goal.swing = std::max<std::int64_t>(1, floor_units(high - low));
        if (seed % 4 == 0) ++goal.top;
        Setting setting(s, static_cast<Norm>(seed % 4), goal);
        for (int trial = 0; trial < 6; ++trial) {
            std::vector<double> row;
            for (int f = 0; f < kFeatures; ++f) row.push_back(s.below(60) / 10.0 - 1.0);
            const double cutoff = trial % 2 == 0 ? kEverywhere : s.below(30) / 10.0;
            double best = kEverywhere;
            for_all_pairs([&](const Pair& pair) {
                if (setting.holds(pair)) best = std::min(best, setting.cost(pair.upper, row));
            });
            const RowOutcome outcome = setting.around(row, cutoff);
            if (outcome.found) {
                const Pair pair{setting.search->upper(), setting.search->lower()};
                CHECK(setting.holds(pair));
                CHECK(setting.cost(pair.upper, row) == doctest::Approx(outcome.cost));
                CHECK(outcome.cost < cutoff);
            }
            if (outcome.closed && outcome.found) CHECK(outcome.cost == doctest::Approx(best));
            if (outcome.closed && !outcome.found) CHECK(best >= cutoff * (1 - 1e-12));
            if (settles) CHECK(outcome.closed);
            found += outcome.found;
            none += outcome.closed && !outcome.found;
            open += !outcome.closed;
        }
    }
    CHECK(found > 50);
    CHECK(none > 50);
    CHECK((open > 5) == !settles);
}

}  // namespace

TEST_CASE("around a row the nearest of all pairs is found, those that just reach what is asked included") {
    check_all(kParts, 0, true);
}

TEST_CASE("leaves that are rounded down leave a pair open, and hide none") {
    check_all(1, kTrees, false);
}

}  // namespace nearest_tests
