#include <algorithm>
#include <random>

#include "regions/region_grower.hpp"
#include "third_party/doctest.h"

using namespace treesens;

namespace regions_tests {

namespace {

using Random = std::mt19937_64;

std::int32_t below(Random& random, std::int64_t n) {
    return static_cast<std::int32_t>(random() % n);
}

// Random trees over a few features: the first has no order, the second may be missing. Cuts may lie beside all cells.
struct Sample {
    std::vector<std::int32_t> cells = {4, 5, 3, 2};
    std::vector<std::int32_t> missing_cell = {-1, 4, -1, -1};
    std::vector<std::int32_t> root, feature, cut, left, right, leaf, category_set;
    std::vector<std::uint8_t> default_left, set_member;
    std::vector<std::int64_t> set_offset = {0}, value;

    Sample(Random& random, int trees, int depth) {
        for (int t = 0; t < trees; ++t) {
            root.push_back(static_cast<std::int32_t>(feature.size()));
            grow(random, depth);
        }
    }

    std::int32_t grow(Random& random, int depth) {
        const std::size_t node = feature.size();
        for (auto* column : {&feature, &cut, &left, &right, &leaf, &category_set}) column->push_back(-1);
        default_left.push_back(random() % 2);
        if (depth == 0 || random() % 5 == 0) {
            leaf[node] = static_cast<std::int32_t>(value.size());
            value.push_back(below(random, 81) - 40);
            return static_cast<std::int32_t>(node);
        }
        const std::int32_t f = below(random, 4);
        feature[node] = f;
        cut[node] = below(random, cells[f] + 4) - 2;
        if (f == 0) {
            category_set[node] = static_cast<std::int32_t>(set_offset.size()) - 1;
            for (int k = 0; k < cells[0]; ++k) set_member.push_back(random() % 2);
            set_offset.push_back(static_cast<std::int64_t>(set_member.size()));
        }
        const std::int32_t first = grow(random, depth - 1);
        left[node] = first;
        const std::int32_t second = grow(random, depth - 1);
        right[node] = second;
        return static_cast<std::int32_t>(node);
    }

    CellTrees trees() const {
        CellTrees made;
        made.trees = static_cast<std::int64_t>(root.size());
        made.root = root.data();
        made.feature = feature.data();
        made.cut = cut.data();
        made.left = left.data();
        made.right = right.data();
        made.leaf = leaf.data();
        made.default_left = default_left.data();
        made.category_set = category_set.data();
        made.set_offset = set_offset.data();
        made.set_member = set_member.data();
        made.missing_cell = missing_cell.data();
        return made;
    }

    std::vector<std::int32_t> leaves(const std::vector<std::int32_t>& x) const {
        std::vector<std::int32_t> out(root.size());
        reach_leaves(trees(), x.data(), 1, static_cast<std::int64_t>(x.size()), out.data());
        return out;
    }

    std::int64_t score(const std::vector<std::int32_t>& x) const {
        std::int64_t sum = 0;
        for (const std::int32_t l : leaves(x)) sum += value[l];
        return sum;
    }

    template <typename Visit>
    void for_all(Visit visit) const {
        std::vector<std::int32_t> x(cells.size(), 0);
        for (x[0] = 0; x[0] < cells[0]; ++x[0])
            for (x[1] = 0; x[1] < cells[1]; ++x[1])
                for (x[2] = 0; x[2] < cells[2]; ++x[2])
                    for (x[3] = 0; x[3] < cells[3]; ++x[3]) visit(x);
    }

    std::size_t place(std::size_t point, std::size_t f, std::int32_t cell) const {
        std::size_t before = 0;
        for (std::size_t g = 0; g < f; ++g) before += cells[g];
        return point * 14 + before + cell;
    }

    bool in(const std::vector<std::uint8_t>& box, std::size_t point, const std::vector<std::int32_t>& x) const {
        for (std::size_t f = 0; f < x.size(); ++f) {
            if (!box[place(point, f, x[f])]) return false;
        }
        return true;
    }
};

std::vector<std::int32_t> drawn(Random& random, const Sample& s) {
    std::vector<std::int32_t> x;
    for (const std::int32_t n : s.cells) x.push_back(below(random, n));
    return x;
}

}  // namespace

TEST_CASE("values that trees reach in a box are those of its points") {
    for (std::uint64_t seed = 1; seed < 40; ++seed) {
        Random random(seed);
        const Sample s(random, 3, 5);
        const ValueTrees trees(s.trees(), static_cast<std::int64_t>(s.feature.size()), s.value.data(), s.cells, 0, 0);
        ValueTrees::Walk walk(s.cells);
        for (int trial = 0; trial < 10; ++trial) {
            std::vector<std::uint8_t> mask(14);
            CellBox box(s.cells, s.missing_cell);
            for (std::size_t f = 0; f < s.cells.size(); ++f) {
                const std::size_t first = s.place(0, f, 0);
                for (std::int32_t k = 0; k < s.cells[f]; ++k) mask[first + k] = random() % 3 != 0;
                mask[first + below(random, s.cells[f])] = 1;
                box.set(static_cast<std::int32_t>(f), mask.data() + first);
            }
            for (std::int32_t t = 0; t < trees.trees(); ++t) {
                std::int64_t least = INT64_MAX;
                std::int64_t most = INT64_MIN;
                s.for_all([&](const std::vector<std::int32_t>& x) {
                    if (!s.in(mask, 0, x)) return;
                    const std::int64_t here = s.value[s.leaves(x)[t]];
                    least = std::min(least, here);
                    most = std::max(most, here);
                });
                const ValueTrees::Range reached = trees.reach(t, box, {INT64_MAX, INT64_MIN}, walk);
                CHECK(reached.least == least);
                CHECK(reached.most == most);
            }
        }
    }
}

TEST_CASE("every point of a region keeps what its witness satisfies, and all that keep their leaves are in it") {
    int wide = 0;
    int proved = 0;
    for (std::uint64_t seed = 1; seed < 60; ++seed) {
        Random random(seed);
        const Sample s(random, 4, 4);
        const ValueTrees trees(s.trees(), static_cast<std::int64_t>(s.feature.size()), s.value.data(), s.cells, 0, 0);
        const std::int64_t bound = below(random, 60) - 30;
        RegionTerms terms;
        terms.rows.push_back({{{0, 1}}, {}, bound});
        std::vector<std::uint8_t> legal(14, 1);
        legal[0] = seed % 2;
        RegionGrower grower({&trees}, {0}, 1, std::vector<std::uint8_t>(4, 0), {0, 1, 1, 1}, legal, terms);
        for (int trial = 0; trial < 20; ++trial) {
            const std::vector<std::int32_t> x = drawn(random, s);
            if (!legal[x[0]]) continue;
            REQUIRE(grower.fits(x, 1));
            const std::vector<std::uint8_t> narrow = grower.leaf_region(x);
            const std::vector<std::uint8_t> found = grower.region(x);
            CHECK(found.empty() == (s.score(x) < bound));
            if (found.empty()) continue;
            ++proved;
            int points = 0;
            s.for_all([&](const std::vector<std::int32_t>& y) {
                if (s.in(narrow, 0, y)) {
                    CHECK(s.leaves(y) == s.leaves(x));
                    CHECK(s.in(found, 0, y));
                }
                if (y == x) CHECK(s.in(found, 0, y));
                if (!s.in(found, 0, y)) return;
                ++points;
                CHECK(legal[y[0]] == 1);
                CHECK(s.score(y) >= bound);
            });
            wide += points > 1;
        }
    }
    CHECK(proved > 100);
    CHECK(wide > 100);
}

TEST_CASE("a region of pairs keeps both rows, and what is shared is equal") {
    int wide = 0;
    for (std::uint64_t seed = 1; seed < 60; ++seed) {
        Random random(seed);
        const Sample s(random, 4, 4);
        const ValueTrees trees(s.trees(), static_cast<std::int64_t>(s.feature.size()), s.value.data(), s.cells, 0, 0);
        RegionTerms terms;
        terms.rows.push_back({{{0, 1}}, {}, 5});    // the score of a is at least 5
        terms.rows.push_back({{{1, -1}}, {}, -4});  // that of b at most 4
        RegionGrower grower({&trees, &trees}, {0, 1}, 2, {1, 1, 0, 1}, {0, 1, 1, 1}, std::vector<std::uint8_t>(14, 1),
                            terms);
        for (int trial = 0; trial < 20; ++trial) {
            std::vector<std::int32_t> a = drawn(random, s);
            std::vector<std::int32_t> b = a;
            b[2] = below(random, s.cells[2]);
            std::vector<std::int32_t> both = a;
            both.insert(both.end(), b.begin(), b.end());
            const std::vector<std::uint8_t> found = grower.region(both);
            CHECK(found.empty() == (s.score(a) < 5 || s.score(b) > 4));
            if (found.empty()) continue;
            for (const std::size_t f : {0, 1, 3}) {
                for (std::int32_t k = 0; k < s.cells[f]; ++k) CHECK(found[s.place(0, f, k)] == found[s.place(1, f, k)]);
            }
            int points = 0;
            s.for_all([&](const std::vector<std::int32_t>& y) {
                if (s.in(found, 0, y)) CHECK(s.score(y) >= 5);
                if (s.in(found, 1, y)) CHECK(s.score(y) <= 4);
                points += s.in(found, 0, y);
            });
            wide += points > 1;
        }
    }
    CHECK(wide > 20);
}

}  // namespace regions_tests
