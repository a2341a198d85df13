#include "problem/box_trees.hpp"
#include "problem/clauses.hpp"
#include "problem/domains.hpp"
#include "problem/rounding.hpp"
#include "sample.hpp"
#include "third_party/doctest.h"

using namespace treesens;

namespace problem_tests {

TEST_CASE("rebuilt trees reach the leaf whose box holds the point") {
    const Problem p = sample::problem(1);
    const Forest f = build_forest(p);
    sample::for_all(p, [&](const std::vector<Cell>& x) {
        for (std::int32_t g = 0; g < p.groups(); ++g) {
            const std::int32_t leaf = f.leaf_of(g, x.data());
            CHECK((leaf >= p.group_offset[g] && leaf < p.group_offset[g + 1]));
            for (std::int64_t i = p.box_offset[p.leaf_offset[leaf]]; i < p.box_offset[p.leaf_offset[leaf + 1]]; ++i) {
                const Literal& l = p.literals[i];
                CHECK((l.low <= x[l.variable] && x[l.variable] <= l.high));
            }
        }
    });
}

TEST_CASE("boxes that leave a gap or overlap are refused") {
    Problem gap = sample::problem(1);
    for (Literal& l : gap.literals) {
        if (l.low > 0) {
            ++l.low;
            l.high = std::max(l.high, l.low);
            break;
        }
    }
    if (gap.literals.back().high < gap.size[gap.literals.back().variable])
        CHECK_THROWS_AS(build_forest(gap), std::invalid_argument);
    Problem overlap = sample::problem(1);
    overlap.box_offset[1] = 0;  // the first box becomes the whole space
    CHECK_THROWS_AS(build_forest(overlap), std::invalid_argument);
}

TEST_CASE("sums beyond the range are refused") {
    Problem p = sample::problem(2);
    p.coefficient_value[0] = (std::int64_t{1} << 62) - 1;
    CHECK_THROWS_AS(validate(p), std::invalid_argument);
    p = sample::problem(2);
    CHECK_THROWS_AS(validate_bounds(p, {(std::int64_t{1} << 62) - 1, 0}), std::invalid_argument);
    CHECK_THROWS_AS(validate_bounds(p, {0}), std::invalid_argument);
}

TEST_CASE("domains across words") {
    Problem p = sample::problem(3);
    p.size[0] = 200;
    p.cell_offset.assign(1, 0);
    for (std::int32_t n : p.size) p.cell_offset.push_back(p.cell_offset.back() + n);
    p.allowed.assign(p.cells(), 1);
    p.allowed[70] = 0;
    Domains d(p);
    CHECK((d.count(0) == 199 && !d.has(0, 70) && d.has(0, 199)));
    CHECK((!d.any(0, 70, 70) && d.any(0, 60, 130)));
    CHECK((d.keep(0, 63, 130) && !d.keep(0, 63, 130)));
    CHECK((d.first(0) == 63 && d.last(0) == 130 && d.nearest(0, 0) == 63 && d.nearest(0, 190) == 130));
    CHECK((d.keep(0, 0, 62) && d.empty(0) && d.first(0) == -1 && d.last(0) == -1));
}

TEST_CASE("grid rounds up") {
    CHECK(to_grid(5, 2) == 20);
    CHECK((to_grid(5, -1) == 3 && to_grid(-5, -1) == -2 && to_grid(4, -1) == 2 && to_grid(-4, -1) == -2));
    CHECK((to_grid(1, -70) == 1 && to_grid(-1, -70) == 0));
    for (std::int64_t magnitude :
         {std::int64_t{1}, std::int64_t{1000}, std::int64_t{1} << 40, (std::int64_t{1} << 62) - 1}) {
        const std::int64_t scaled = to_grid(magnitude, shift_for(magnitude));
        CHECK((scaled <= std::int64_t{1} << kRowBits && scaled > (std::int64_t{1} << (kRowBits - 1)) - 1));
    }
}

TEST_CASE("quotients are integers from above") {
    for (int n = 1; n < 400; n += 7) {
        for (double a : {0.0, 1.0, -1.0, 12345678901.0, -98765432109.0, 1e15, -1e15}) {
            const double q = round_up_quotient(a, 1.0 / n);
            CHECK((q == std::floor(q) && q * n >= a && q * n <= a + 2.0 * n));
        }
    }
}

TEST_CASE("clauses propagate and mask") {
    Problem p = sample::problem(4);
    p.clause_offset = {0, 2, 4};
    p.clause_literals = {{0, 0, 1}, {1, 2, 2}, {1, 0, 1}, {2, 4, 4}};  // x0 <= 1 or x1 = 2; x1 <= 1 or x2 = 4
    Clauses clauses(p);
    Domains d(p);
    d.keep(0, 2, 3);
    std::vector<std::int32_t> changed = {0};
    CHECK(clauses.propagate(d, changed));
    CHECK((d.count(1) == 1 && d.has(1, 2) && d.count(2) == 1 && d.has(2, 4)));
    d.keep(2, 0, 3);
    changed = {2};
    CHECK(!clauses.propagate(d, changed));
    const std::vector<Cell> x = {3, 2, 0, 0, 0};
    CHECK(clauses.violated(x.data()) == 1);
    std::vector<std::uint8_t> mask(5, 1);
    const std::vector<std::uint8_t> open(5, 0);
    clauses.restrict_cells(x.data(), 2, open.data(), mask.data());
    CHECK((!mask[0] && mask[4]));
    std::vector<Cell> y = x;
    std::mt19937_64 random(1);
    CHECK((clauses.repair(y, random) && clauses.satisfied(y.data())));
}

}  // namespace problem_tests
