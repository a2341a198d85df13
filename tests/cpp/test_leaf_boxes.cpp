// Boxes of leaves: those of the problem and those of the trees alone cover the same points, each point once.
#include <vector>

#include "overlap/box_layer.hpp"
#include "problem/leaf_boxes.hpp"
#include "sample.hpp"
#include "third_party/doctest.h"

using namespace treesens;

namespace leaf_boxes_tests {

namespace {

// How many boxes of a leaf hold a point.
int holding(const LeafBoxes& boxes, std::int64_t leaf, const std::vector<Cell>& x) {
    int count = 0;
    boxes.of(leaf, [&](const Literal* l, const Literal* end) {
        bool inside = true;
        for (; l != end; ++l) inside = inside && l->low <= x[l->variable] && x[l->variable] <= l->high;
        count += inside;
    });
    return count;
}

Problem without_boxes(Problem p) {
    p.leaf_offset.clear();
    p.box_offset.clear();
    p.literals.clear();
    return p;
}

}  // namespace

TEST_CASE("a point lies in one box of its leaf and in none of the others, whether boxes are given or read from trees") {
    for (std::uint64_t seed = 1; seed < 8; ++seed) {
        const Problem given = sample::problem(seed, 6);
        const Forest f = build_forest(given);
        const Problem bare = without_boxes(given);
        CHECK_THROWS_AS(build_forest(bare), std::invalid_argument);
        LeafBoxes named(given, f);
        LeafBoxes read(bare, f);
        for (std::int32_t g = 0; g < given.groups(); ++g) {
            named.load(g);
            read.load(g);
            sample::for_all(given, [&](const std::vector<Cell>& x) {
                const std::int32_t home = f.leaf_of(g, x.data());
                for (std::int64_t l = given.group_offset[g]; l < given.group_offset[g + 1]; ++l) {
                    REQUIRE(holding(named, l, x) == (l == home));
                    REQUIRE(holding(read, l, x) == (l == home));
                }
            });
        }
    }
}

TEST_CASE("a layer of a row has the value of every point, whether boxes are given or read from trees") {
    for (std::uint64_t seed = 1; seed < 8; ++seed) {
        const Problem given = sample::problem(seed, 6);
        const Forest f = build_forest(given);
        MemoryBudget budget;
        const BoxLayer one = build_row_layer(given, f, 0, budget);
        const BoxLayer other = build_row_layer(without_boxes(given), f, 0, budget);
        CHECK(one.constant == other.constant);
        CHECK(one.floor == other.floor);
        CHECK(one.factors() == other.factors());
    }
}

}  // namespace leaf_boxes_tests
