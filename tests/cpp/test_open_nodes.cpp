// Which of the open nodes comes next, and that none is lost.
#include <algorithm>
#include <random>
#include <vector>

#include "prove/open_nodes.hpp"
#include "third_party/doctest.h"

using namespace treesens;

namespace open_nodes_tests {

namespace {

OpenNode node(std::int64_t upper, std::size_t depth = 1) {
    OpenNode made;
    made.upper = upper;
    made.path.resize(depth);
    return made;
}

}  // namespace

TEST_CASE("depth-first takes what was put off last and gives what was put off first") {
    MemoryBudget budget;
    OpenNodes open({}, budget);
    for (const std::int64_t upper : {5, 9, 7}) open.put_off(node(upper));
    CHECK(open.upper() == 9);
    CHECK(open.goes_on(0, 0));
    OpenNode given;
    REQUIRE(open.give(given));
    CHECK(given.upper == 5);
    CHECK(open.take().upper == 7);
    CHECK(open.take().upper == 9);
    CHECK(open.empty());
    CHECK_FALSE(open.give(given));
}

TEST_CASE("best-first takes the greatest bound, and the deeper of equal ones") {
    std::mt19937_64 random(3);
    MemoryBudget budget;
    OpenNodes open({0.1, 1}, budget);
    std::vector<std::int64_t> left;
    for (int step = 0; step < 4000; ++step) {
        if (left.empty() || random() % 5 < 3) {
            left.push_back(static_cast<std::int64_t>(random() % 50));
            open.put_off(node(left.back()));
            continue;
        }
        const auto most = std::max_element(left.begin(), left.end());
        CHECK(open.upper() == *most);
        OpenNode taken;
        if (random() % 4 == 0)
            REQUIRE(open.give(taken));
        else
            taken = open.take();
        CHECK(taken.upper == *most);
        left.erase(most);
    }
    while (!open.empty()) open.take();
    CHECK(open.upper() == INT64_MIN);
    CHECK(budget.room() == INT64_MAX);
    open.put_off(node(3, 1));
    open.put_off(node(3, 4));
    open.put_off(node(3, 2));
    CHECK(open.take().path.size() == 4);
}

TEST_CASE("without room the search goes on depth-first") {
    MemoryBudget budget(1 << 20);
    OpenNodes open({0.1, 1}, budget);
    for (const std::int64_t upper : {5, 9, 7}) open.put_off(node(upper));
    CHECK(open.goes_on(0, 0));
    CHECK(open.take().upper == 7);
    CHECK(open.upper() == 9);
}

TEST_CASE("a dive goes on near the greatest bound only") {
    MemoryBudget budget;
    OpenNodes open({0.1, 1}, budget);
    open.put_off(node(1000));
    CHECK(open.goes_on(950, 0));
    CHECK_FALSE(open.goes_on(800, 0));
    CHECK(open.goes_on(1200, 0));
    CHECK(open.goes_on(INT64_MAX, INT64_MIN));
}

TEST_CASE("a dive of several ends stays where it is until they are met") {
    MemoryBudget budget;
    OpenNodes open({1, 3}, budget);
    for (const std::int64_t upper : {9, 5, 7, 6}) open.put_off(node(upper));
    CHECK(open.goes_on(1, 0));
    CHECK(open.take().upper == 6);
    CHECK(open.take().upper == 7);
    CHECK(open.take().upper == 9);
    CHECK(open.take().upper == 5);
}

}  // namespace open_nodes_tests
