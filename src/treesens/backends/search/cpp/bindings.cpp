// The Python module treesens._engine. Everything that arrives is checked here once; behind it nothing is.
#include "bindings.hpp"
#include "evaluate.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using treesens::Matrix;
using treesens::MutableMatrix;
using treesens::Vector;
using treesens::require;

void reach_leaves(Vector<std::int32_t> root, Vector<std::int32_t> feature, Vector<std::int32_t> cut,
                  Vector<std::int32_t> left, Vector<std::int32_t> right, Vector<std::int32_t> leaf,
                  Vector<std::uint8_t> default_left, Vector<std::int32_t> category_set, Vector<std::int64_t> set_offset,
                  Vector<std::uint8_t> set_member, Vector<std::int32_t> missing_cell, Vector<std::int32_t> cell_count,
                  Matrix<std::int32_t> cells, MutableMatrix<std::int32_t> out) {
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
    require(static_cast<std::int64_t>(cells.shape(1)) == features, "cells must have one column per feature");
    require(out.shape(0) == cells.shape(0) && out.shape(1) == root.size(), "out must be rows x trees");
    for (std::size_t t = 0; t < root.size(); ++t) require(root(t) >= 0 && root(t) < nodes, "a root is out of range");
    for (std::int64_t n = 0; n < nodes; ++n) {
        if (feature(n) < 0) continue;
        require(feature(n) < features, "a feature index is out of range");
        // Children come after their parent, so that no traversal can go round in a circle.
        require(left(n) > n && left(n) < nodes && right(n) > n && right(n) < nodes, "children must come after their parent");
        require(category_set(n) < sets, "a category set is out of range");
        if (category_set(n) >= 0) {
            require(set_offset(category_set(n) + 1) - set_offset(category_set(n)) >= cell_count(feature(n)),
                    "a category set is shorter than the cells of its feature");
        }
    }
    const std::int64_t rows = static_cast<std::int64_t>(cells.shape(0));
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t f = 0; f < features; ++f) {
            require(cells(r, f) >= 0 && cells(r, f) < cell_count(f), "a cell is out of range");
        }
    }
    treesens::CellTrees trees;
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
    nb::gil_scoped_release release;
    treesens::reach_leaves(trees, cells.data(), rows, features, out.data());
}

}  // namespace

NB_MODULE(_engine, m) {
    m.doc() = "Native kernels of treesens: exact evaluation of ensembles over cells, and the search for witnesses and proofs.";
    m.def("reach_leaves", &reach_leaves, "root"_a, "feature"_a, "cut"_a, "left"_a, "right"_a, "leaf"_a, "default_left"_a,
          "category_set"_a, "set_offset"_a, "set_member"_a, "missing_cell"_a, "cell_count"_a, "cells"_a, "out"_a);
    treesens::bind_search(m);
}
