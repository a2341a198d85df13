// The Python module treesens._engine. Everything that arrives is checked here once; behind it nothing is.
#include <algorithm>
#include <cstdlib>
#include <nanobind/stl/string.h>

#include "bindings/arrays.hpp"
#include "ensemble/cell_trees.hpp"
#include "ensemble/flip_profiles.hpp"
#include "problem/checked.hpp"
#include "problem/schedule.hpp"
#include "problem/score_range.hpp"

namespace nb = nanobind;
using namespace nb::literals;

using treesens::Ints;
using treesens::Matrix;
using treesens::MutableMatrix;
using treesens::MutableVector;
using treesens::require;
using treesens::Vector;

namespace treesens {

CellTrees checked_trees(const Ints& root, const Ints& feature, const Ints& cut, const Ints& left, const Ints& right,
                        const Ints& leaf, const Vector<std::uint8_t>& default_left, const Ints& category_set,
                        const Vector<std::int64_t>& set_offset, const Vector<std::uint8_t>& set_member,
                        const Ints& missing_cell, const Ints& cell_count) {
    const std::int64_t nodes = static_cast<std::int64_t>(feature.size());
    const std::int64_t features = static_cast<std::int64_t>(missing_cell.size());
    const std::int64_t sets = static_cast<std::int64_t>(set_offset.size()) - 1;
    require(cut.size() == feature.size() && left.size() == feature.size() && right.size() == feature.size() &&
                leaf.size() == feature.size() && default_left.size() == feature.size() &&
                category_set.size() == feature.size(),
            "node arrays differ in length");
    require(cell_count.size() == missing_cell.size(), "feature arrays differ in length");
    require(sets >= 0 && set_offset(0) == 0, "set_offset must start with 0");
    for (std::int64_t s = 0; s < sets; ++s) require(set_offset(s) <= set_offset(s + 1), "set_offset must not decrease");
    require(set_offset(sets) == static_cast<std::int64_t>(set_member.size()), "set_offset does not end at set_member");
    for (std::size_t t = 0; t < root.size(); ++t) require(root(t) >= 0 && root(t) < nodes, "a root is out of range");
    for (std::int64_t n = 0; n < nodes; ++n) {
        if (feature(n) < 0) continue;
        require(feature(n) < features, "a feature index is out of range");
        // Children come after their parent, so that no traversal can go round in a circle.
        require(left(n) > n && left(n) < nodes && right(n) > n && right(n) < nodes,
                "children must come after their parent");
        require(category_set(n) < sets, "a category set is out of range");
        if (category_set(n) >= 0) {
            require(set_offset(category_set(n) + 1) - set_offset(category_set(n)) >= cell_count(feature(n)),
                    "a category set is shorter than the cells of its feature");
        }
    }
    CellTrees trees;
    trees.trees = static_cast<std::int64_t>(root.size());
    trees.root = root.data();
    trees.feature = feature.data();
    trees.cut = cut.data();
    trees.left = left.data();
    trees.right = right.data();
    trees.leaf = leaf.data();
    trees.default_left = default_left.data();
    trees.category_set = category_set.data();
    trees.set_offset = set_offset.data();
    trees.set_member = set_member.data();
    trees.missing_cell = missing_cell.data();
    return trees;
}

void check_leaf_values(const CellTrees& trees, const Ints& feature, const Ints& leaf,
                       const Vector<std::int64_t>& leaf_value) {
    for (std::size_t n = 0; n < feature.size(); ++n) {
        if (feature(n) >= 0) continue;
        require(leaf(n) >= 0 && static_cast<std::size_t>(leaf(n)) < leaf_value.size(), "a leaf is out of range");
    }
    require(sum_to_scores(leaf_value.data(), leaf_value.size(), trees.trees), "the leaf values sum to no score");
}

}  // namespace treesens

namespace {

using treesens::checked_trees;

void check_cells(const Matrix<std::int32_t>& cells, const Ints& cell_count) {
    require(cells.shape(1) == cell_count.size(), "cells must have one column per feature");
    for (std::size_t r = 0; r < cells.shape(0); ++r) {
        for (std::size_t f = 0; f < cells.shape(1); ++f) {
            require(cells(r, f) >= 0 && cells(r, f) < cell_count(f), "a cell is out of range");
        }
    }
}

void reach_leaves(Ints root, Ints feature, Ints cut, Ints left, Ints right, Ints leaf,
                  Vector<std::uint8_t> default_left, Ints category_set, Vector<std::int64_t> set_offset,
                  Vector<std::uint8_t> set_member, Ints missing_cell, Ints cell_count, Matrix<std::int32_t> cells,
                  MutableMatrix<std::int32_t> out) {
    const treesens::CellTrees trees = checked_trees(root, feature, cut, left, right, leaf, default_left, category_set,
                                                    set_offset, set_member, missing_cell, cell_count);
    check_cells(cells, cell_count);
    require(out.shape(0) == cells.shape(0) && out.shape(1) == root.size(), "out must be rows x trees");
    const std::int64_t rows = static_cast<std::int64_t>(cells.shape(0));
    const std::int64_t features = static_cast<std::int64_t>(cells.shape(1));
    nb::gil_scoped_release release;
    treesens::reach_leaves(trees, cells.data(), rows, features, out.data());
}

void flip_profiles(Ints root, Ints feature, Ints cut, Ints left, Ints right, Ints leaf,
                   Vector<std::uint8_t> default_left, Ints category_set, Vector<std::int64_t> set_offset,
                   Vector<std::uint8_t> set_member, Ints missing_cell, Ints cell_count, Matrix<std::int32_t> cells,
                   Vector<std::int64_t> leaf_value, std::int32_t flipped, Vector<std::uint8_t> allowed,
                   MutableVector<std::int64_t> highest, MutableVector<std::int64_t> lowest,
                   MutableVector<std::int32_t> highest_cell, MutableVector<std::int32_t> lowest_cell) {
    const treesens::CellTrees trees = checked_trees(root, feature, cut, left, right, leaf, default_left, category_set,
                                                    set_offset, set_member, missing_cell, cell_count);
    check_cells(cells, cell_count);
    const std::int64_t rows = static_cast<std::int64_t>(cells.shape(0));
    const std::int64_t features = static_cast<std::int64_t>(cells.shape(1));
    require(flipped >= 0 && flipped < features, "the flipped feature is out of range");
    require(static_cast<std::int64_t>(allowed.size()) == cell_count(flipped), "allowed must have one entry per cell");
    bool any = false;
    for (std::size_t k = 0; k < allowed.size(); ++k) any = any || allowed(k) != 0;
    require(any, "no cell of the flipped feature is allowed");
    treesens::check_leaf_values(trees, feature, leaf, leaf_value);
    require(static_cast<std::int64_t>(highest.size()) == rows && highest.size() == lowest.size() &&
                highest.size() == highest_cell.size() && highest.size() == lowest_cell.size(),
            "outputs must have one entry per row");
    const treesens::FlipProfiles out{highest.data(), lowest.data(), highest_cell.data(), lowest_cell.data()};
    nb::gil_scoped_release release;
    treesens::flip_profiles(trees, leaf_value.data(), flipped, treesens::narrow<std::int32_t>(allowed.size()),
                            allowed.data(), cells.data(), rows, features, out);
}

// By name: (value, default, least value, sentence).
nb::dict schedule_shown() {
    nb::dict out;
    for (const treesens::ScheduleEntry& e : treesens::schedule_entries()) {
        out[e.name] = nb::make_tuple(treesens::schedule.*(e.member), e.standard, e.least, e.sentence);
    }
    return out;
}

}  // namespace

NB_MODULE(_engine, m) {
    m.doc() =
        "Native kernels of treesens: exact evaluation of ensembles over cells, and the search for witnesses and "
        "proofs.";
    m.attr("SCORE_BITS") = treesens::kScoreBits;
    m.def("reach_leaves", &reach_leaves, "root"_a, "feature"_a, "cut"_a, "left"_a, "right"_a, "leaf"_a,
          "default_left"_a, "category_set"_a, "set_offset"_a, "set_member"_a, "missing_cell"_a, "cell_count"_a,
          "cells"_a, "out"_a);
    m.def("flip_profiles", &flip_profiles, "root"_a, "feature"_a, "cut"_a, "left"_a, "right"_a, "leaf"_a,
          "default_left"_a, "category_set"_a, "set_offset"_a, "set_member"_a, "missing_cell"_a, "cell_count"_a,
          "cells"_a, "leaf_value"_a, "flipped"_a, "allowed"_a, "highest"_a, "lowest"_a, "highest_cell"_a,
          "lowest_cell"_a);
    if (const char* changed = std::getenv("TREESENS_SCHEDULE")) treesens::set_schedule(changed);
    m.def("schedule", &schedule_shown);
    m.def("set_schedule", &treesens::set_schedule, "text"_a);
    treesens::bind_search(m);
    treesens::bind_levels(m);
    treesens::bind_regions(m);
    treesens::bind_nearest(m);
    treesens::bind_measure(m);
}
