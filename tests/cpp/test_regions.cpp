#include <algorithm>
#include <random>

#include "problem/box_trees.hpp"
#include "regions/region_grower.hpp"
#include "sample.hpp"
#include "third_party/doctest.h"

using namespace treesens;
using search::Cell;
using search::Forest;
using search::Problem;

namespace {

// The leaves of all groups with their values in row 0.
LeafRanges leaves_of(const Problem& p, const Forest& f) {
    LeafRanges leaves;
    leaves.first_leaf = p.group_offset;
    leaves.literals.boxes = p.leaves();
    leaves.literals.cells = p.size;
    leaves.literals.missing_cell.assign(p.variables(), -1);
    leaves.literals.mask_offset = {0};
    leaves.literals.feature_offset = {0};
    for (std::int32_t v = 0; v < p.variables(); ++v) {
        for (std::int64_t b = 0; b < p.leaves(); ++b) {
            for (std::int64_t i = p.box_offset[b]; i < p.box_offset[b + 1]; ++i) {
                if (p.literals[i].variable != v) continue;
                leaves.literals.box.push_back(static_cast<std::int32_t>(b));
                leaves.literals.low.push_back(p.literals[i].low);
                leaves.literals.high.push_back(p.literals[i].high);
                leaves.literals.mask.push_back(-1);
                leaves.literals.missing.push_back(0);
            }
        }
        leaves.literals.feature_offset.push_back(static_cast<std::int64_t>(leaves.literals.box.size()));
    }
    for (std::int32_t g = 0; g < p.groups(); ++g) {
        const bool first = f.rows_of(g) > 0 && f.group_rows[f.row_offset[g]] == 0;
        for (std::int64_t l = p.group_offset[g]; l < p.group_offset[g + 1]; ++l) {
            leaves.tree.push_back(g);
            leaves.value.push_back(first ? f.values(p, g, static_cast<std::int32_t>(l))[0] : 0);
        }
    }
    return leaves;
}

std::int64_t score(const Problem& p, const Forest& f, const std::vector<Cell>& x) {
    std::vector<std::int64_t> slack(p.rows);
    search::evaluate(p, f, std::vector<std::int64_t>(p.rows, 0), x.data(), slack.data());
    return slack[0];
}

}  // namespace

TEST_CASE("every point of a region keeps what its witness satisfies") {
    int wide = 0;
    for (std::uint64_t seed = 1; seed < 30; ++seed) {
        const Problem p = sample::problem(seed, 5);
        const Forest f = search::build_forest(p);
        const LeafRanges leaves = leaves_of(p, f);
        std::mt19937_64 random(seed);
        const std::int64_t bound = static_cast<std::int64_t>(random() % 200) - 150;
        RegionTerms terms;
        terms.rows.push_back({{{0, 1}}, {}, bound});
        std::vector<std::uint8_t> legal(p.cells(), 1);
        legal[0] = seed % 2;
        RegionGrower grower({&leaves}, {0}, 1, std::vector<std::uint8_t>(p.variables(), 0),
                            std::vector<std::uint8_t>(p.variables(), 1), legal, terms);
        for (int trial = 0; trial < 20; ++trial) {
            std::vector<Cell> x(p.variables());
            for (std::int32_t v = 0; v < p.variables(); ++v) x[v] = static_cast<Cell>(random() % p.size[v]);
            if (!legal[x[0]]) continue;
            REQUIRE(grower.fits(x, 1));
            const std::vector<std::uint8_t> narrow = grower.leaf_region(x);
            const std::vector<std::uint8_t> found = grower.region(x);
            CHECK(found.empty() == (score(p, f, x) < bound));
            if (found.empty()) continue;
            REQUIRE(found.size() == static_cast<std::size_t>(p.cells()));
            std::int64_t points = 0;
            sample::for_all(p, [&](const std::vector<Cell>& y) {
                bool in = true;
                bool kept = true;
                for (std::int32_t v = 0; v < p.variables(); ++v) {
                    in = in && found[p.cell_offset[v] + y[v]];
                    kept = kept && narrow[p.cell_offset[v] + y[v]];
                }
                if (y == x) CHECK(in);
                // A region is no smaller than the box in which no tree changes its leaf.
                if (kept) CHECK(in);
                if (!in) return;
                ++points;
                CHECK(legal[y[0]] == 1);
                CHECK(score(p, f, y) >= bound);
            });
            wide += points > 1;
        }
    }
    CHECK(wide > 20);
}
