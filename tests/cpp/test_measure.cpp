#include <algorithm>
#include <random>

#include "measure/box_ranges.hpp"
#include "measure/point_scores.hpp"
#include "third_party/doctest.h"

using namespace treesens;

namespace measure_tests {

namespace {

constexpr std::int32_t kFeatures = 4;
constexpr Cell kCells = 5;

// Random trees over features of five cells, of which the last one is missing.
struct Sample {
    std::vector<std::int32_t> root, feature, cut, left, right, leaf, missing;
    std::vector<std::uint8_t> default_left;
    std::vector<std::int32_t> category_set;
    std::vector<std::int64_t> set_offset{0};
    std::vector<std::uint8_t> set_member;
    std::vector<Wide> values;
    std::mt19937_64 random;
    bool sets;

    explicit Sample(std::uint64_t seed, int depth = 3, bool with_sets = false)
        : missing(kFeatures, kCells - 1), random(seed), sets(with_sets) {
        for (int t = 0; t < 6; ++t) {
            root.push_back(static_cast<std::int32_t>(feature.size()));
            grow(depth);
        }
    }
    std::int32_t below(std::int32_t n) { return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n)); }
    std::int32_t grow(int depth) {
        const std::int32_t n = static_cast<std::int32_t>(feature.size());
        const bool inner = depth > 0 && below(5) > 0;
        feature.push_back(inner ? below(kFeatures) : -1);
        cut.push_back(below(kCells - 1));
        left.push_back(0);
        right.push_back(0);
        leaf.push_back(inner ? -1 : static_cast<std::int32_t>(values.size() / 2));
        default_left.push_back(below(2) == 0 ? 1 : 0);
        const bool by_set = inner && sets && below(2) == 0;
        category_set.push_back(by_set ? static_cast<std::int32_t>(set_offset.size()) - 1 : -1);
        if (by_set) {
            for (Cell c = 0; c < kCells; ++c) set_member.push_back(static_cast<std::uint8_t>(below(2)));
            set_offset.push_back(static_cast<std::int64_t>(set_member.size()));
        }
        if (inner) {
            const std::int32_t l = grow(depth - 1);
            const std::int32_t r = grow(depth - 1);
            left[n] = l;
            right[n] = r;
        } else {
            for (int i = 0; i < 2; ++i) values.push_back(below(200) - 100);
        }
        return n;
    }
    std::int64_t nodes() const { return static_cast<std::int64_t>(feature.size()); }
    CellTrees trees() const {
        CellTrees t;
        t.trees = static_cast<std::int64_t>(root.size());
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
    Choices choices() const {
        Choices c;
        c.features = {0, 2};
        for (Cell a = 0; a < kCells; ++a) {
            for (Cell b = 0; b < kCells; ++b) c.cells.insert(c.cells.end(), {a, b});
        }
        c.count = kCells * kCells;
        return c;
    }
    Wide score(std::vector<Cell> row, Cell a, Cell b, std::int32_t table) const {
        row[0] = a;
        row[2] = b;
        Wide total = 0;
        const CellTrees t = trees();
        for (std::int64_t i = 0; i < t.trees; ++i) total += values[reach_leaf(t, i, row.data()) * 2 + table];
        return total;
    }
};

}  // namespace

TEST_CASE("ranges hold every score of every input of a box, and meet where the box is one input") {
    for (std::uint64_t seed = 1; seed < 60; ++seed) {
        Sample s(seed);
        const ChoiceTrees trees(s.trees(), s.nodes(), std::vector<Cell>(kFeatures, kCells), s.values, 2, s.choices());
        BoxRanges ranges(trees, {3, -4}, {0, 1}, {{0, 1}, {1, -1}, {}});
        for (int trial = 0; trial < 10; ++trial) {
            RangeBox box;
            for (int f = 0; f < kFeatures; ++f) {
                const Cell a = s.below(kCells);
                const Cell b = trial == 0 ? a : s.below(kCells);
                box.low.push_back(std::min(a, b));
                box.high.push_back(std::max(a, b));
            }
            ranges.bound_apart(box);
            const Ranges& found = ranges.bound_all(box);
            for (Cell x = box.low[1]; x <= box.high[1]; ++x) {
                for (Cell y = box.low[3]; y <= box.high[3]; ++y) {
                    const std::vector<Cell> row{0, x, 0, y};
                    std::vector<Wide> high;
                    std::vector<Wide> low;
                    for (std::int32_t k = 0; k < kCells * kCells; ++k) {
                        high.push_back(3 + s.score(row, k / kCells, k % kCells, 0));
                        low.push_back(-4 + s.score(row, k / kCells, k % kCells, 1));
                        REQUIRE(found.lower[k] <= high.back());
                        REQUIRE(found.upper[k] >= high.back());
                        REQUIRE(found.lower[kCells * kCells + k] <= low.back());
                        REQUIRE(found.upper[kCells * kCells + k] >= low.back());
                        if (trial == 0) REQUIRE(found.lower[k] == found.upper[k]);
                    }
                    for (std::int32_t k = 0; k < kCells * kCells; ++k) {
                        for (std::int32_t j = 0; j < kCells * kCells; ++j) {
                            const std::int32_t place = trees.block_of(k) * trees.blocks() + trees.block_of(j);
                            REQUIRE(found.apart_lower[place] <= high[k] - low[j]);
                            REQUIRE(found.apart_upper[place] >= high[k] - low[j]);
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("the answer of an input does not depend on what is left out early") {
    int concerned = 0;
    for (std::uint64_t seed = 100; seed < 160; ++seed) {
        Sample s(seed);
        const ChoiceTrees trees(s.trees(), s.nodes(), std::vector<Cell>(kFeatures, kCells), s.values, 2, s.choices());
        ShareQuestion question;
        question.first = {{0, 1, 90, 90}};
        question.second = {{0, -1, 60, 60}};
        question.apart_possible = 150;
        PointScores point(trees, {0, 0}, question);
        std::vector<Cell> rows;
        std::vector<ShareAnswer> expected;
        for (Cell x = 0; x < kCells; ++x) {
            for (Cell y = 0; y < kCells; ++y) {
                const std::vector<Cell> row{0, x, 0, y};
                Wide most = -100000;
                Wide least = 100000;
                for (Cell a = 0; a < kCells; ++a) {
                    for (Cell b = 0; b < kCells; ++b) {
                        most = std::max(most, s.score(row, a, b, 0));
                        least = std::min(least, s.score(row, a, b, 0));
                    }
                }
                rows.insert(rows.end(), row.begin(), row.end());
                expected.push_back(most >= 90 && least <= -60 ? ShareAnswer::kAll : ShareAnswer::kNone);
                concerned += expected.back() == ShareAnswer::kAll ? 1 : 0;
            }
        }
        // Blocks that end in the middle of rows that go down together, and one input alone.
        for (const std::size_t count : {expected.size(), expected.size() - 3, std::size_t{1}}) {
            std::vector<ShareAnswer> found(count);
            point.answer(rows.data(), count, found.data());
            REQUIRE(std::equal(found.begin(), found.end(), expected.begin()));
        }
    }
    CHECK(concerned > 20);
}

TEST_CASE("packed trees lead where the trees lead, at once and in two parts") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        Sample s(300 + seed, seed % 2 == 0 ? 3 : 12, seed % 4 > 1);
        const CellTrees trees = s.trees();
        const ChoiceTrees choice_trees(trees, s.nodes(), std::vector<Cell>(kFeatures, kCells), s.values, 2,
                                       s.choices());
        PackedTrees packed(choice_trees);
        std::vector<Cell> cells;
        std::vector<std::int32_t> rows;
        for (std::int32_t i = 0; i < 75; ++i) {
            for (std::int32_t f = 0; f < kFeatures; ++f) cells.push_back(s.below(kCells));
            if (s.below(4) > 0) rows.push_back(i);
        }
        std::vector<Arrival> leaves;
        std::vector<Arrival> stops;
        std::vector<Arrival> rest;
        for (std::int64_t t = 0; t < trees.trees; ++t) {
            const PackedWay way = packed.pack(trees.root[t]);
            const Parted parted = packed.part(way);
            packed.descend(way, cells.data(), kFeatures, rows, leaves);
            packed.descend(parted.until, cells.data(), kFeatures, rows, stops);
            for (std::size_t i = 0; i < rows.size(); ++i) {
                const std::int32_t expected = reach_leaf(trees, t, cells.data() + rows[i] * kFeatures);
                REQUIRE(leaves[i] == expected);
                if (stops[i] < 0) {
                    packed.go_on(parted.rest, cells.data(), kFeatures, {rows[i]}, {stops[i]}, rest);
                    stops[i] = rest[0];
                }
                REQUIRE(stops[i] == expected);
            }
        }
    }
}

}  // namespace measure_tests
