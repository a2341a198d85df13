#include "bindings/trees.hpp"

#include <algorithm>
#include <nanobind/stl/optional.h>
#include <optional>
#include <utility>

#include "ensemble/flip_profiles.hpp"
#include "problem/checked.hpp"
#include "problem/score_range.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace treesens {

CheckedTrees::CheckedTrees(Ints root, Ints feature, Ints cut, Ints left, Ints right, Ints leaf,
                           Vector<std::uint8_t> default_left, Ints category_set, Vector<std::int64_t> set_offset,
                           Vector<std::uint8_t> set_member, Ints missing_cell, Ints cell_count)
    : root_(std::move(root)),
      feature_(std::move(feature)),
      cut_(std::move(cut)),
      left_(std::move(left)),
      right_(std::move(right)),
      leaf_(std::move(leaf)),
      default_left_(std::move(default_left)),
      category_set_(std::move(category_set)),
      set_offset_(std::move(set_offset)),
      set_member_(std::move(set_member)),
      missing_cell_(std::move(missing_cell)),
      cell_count_(std::move(cell_count)) {
    check();
    for (std::int64_t n = 0; n < nodes(); ++n) {
        if (feature_(n) < 0) leaves_ = std::max(leaves_, std::int64_t{leaf_(n)} + 1);
    }
    view_ = {static_cast<std::int64_t>(root_.size()),
             root_.data(),
             feature_.data(),
             cut_.data(),
             left_.data(),
             right_.data(),
             leaf_.data(),
             default_left_.data(),
             category_set_.data(),
             set_offset_.data(),
             set_member_.data(),
             missing_cell_.data()};
}

void CheckedTrees::check() const {
    const std::int64_t sets = static_cast<std::int64_t>(set_offset_.size()) - 1;
    require(cut_.size() == feature_.size() && left_.size() == feature_.size() && right_.size() == feature_.size() &&
                leaf_.size() == feature_.size() && default_left_.size() == feature_.size() &&
                category_set_.size() == feature_.size(),
            "node arrays differ in length");
    require(cell_count_.size() == missing_cell_.size(), "feature arrays differ in length");
    for (std::int64_t f = 0; f < features(); ++f) {
        require(cell_count_(f) > 0, "a feature has no cells");
        require(missing_cell_(f) < 0 || missing_cell_(f) == cell_count_(f) - 1, "the missing cell is not the last one");
    }
    require(sets >= 0 && set_offset_(0) == 0, "set_offset must start with 0");
    for (std::int64_t s = 0; s < sets; ++s)
        require(set_offset_(s) <= set_offset_(s + 1), "set_offset must not decrease");
    require(set_offset_(sets) == static_cast<std::int64_t>(set_member_.size()),
            "set_offset does not end at set_member");
    for (std::size_t t = 0; t < root_.size(); ++t)
        require(root_(t) >= 0 && root_(t) < nodes(), "a root is out of range");
    for (std::int64_t n = 0; n < nodes(); ++n) {
        if (feature_(n) < 0) {
            require(leaf_(n) >= 0, "a leaf is out of range");
            continue;
        }
        require(feature_(n) < features(), "a feature index is out of range");
        // Children come after their parent, so that every traversal ends.
        require(left_(n) > n && left_(n) < nodes() && right_(n) > n && right_(n) < nodes(),
                "children must come after their parent");
        require(category_set_(n) < sets, "a category set is out of range");
        if (category_set_(n) >= 0) {
            require(set_offset_(category_set_(n) + 1) - set_offset_(category_set_(n)) >= cell_count_(feature_(n)),
                    "a category set is shorter than the cells of its feature");
        }
    }
}

void CheckedTrees::check_leaf_values(const Vector<std::int64_t>& leaf_value) const {
    require(leaves_ <= static_cast<std::int64_t>(leaf_value.size()), "a leaf is out of range");
    require(sum_to_scores(leaf_value.data(), leaf_value.size(), view_.trees), "the leaf values sum to no score");
}

void check_cells(const Matrix<std::int32_t>& cells, const Ints& cell_count) {
    require(cells.shape(1) == cell_count.size(), "cells must have one column per feature");
    for (std::size_t r = 0; r < cells.shape(0); ++r) {
        for (std::size_t f = 0; f < cells.shape(1); ++f) {
            require(cells(r, f) >= 0 && cells(r, f) < cell_count(f), "a cell is out of range");
        }
    }
}

namespace {

void write_leaves(const CheckedTrees& self, const Matrix<std::int32_t>& cells, const MutableMatrix<std::int32_t>& out,
                  const std::optional<Ints>& numbers) {
    check_cells(cells, self.cell_count());
    CellTrees trees = self.view();
    std::vector<std::int32_t> roots;
    if (numbers) {
        for (std::size_t i = 0; i < numbers->size(); ++i) {
            require((*numbers)(i) >= 0 && (*numbers)(i) < trees.trees, "a tree is out of range");
            roots.push_back(trees.root[(*numbers)(i)]);
        }
        trees.trees = static_cast<std::int64_t>(roots.size());
        trees.root = roots.data();
    }
    require(out.shape(0) == cells.shape(0) && static_cast<std::int64_t>(out.shape(1)) == trees.trees,
            "out must be rows x trees");
    nb::gil_scoped_release release;
    reach_leaves(trees, cells.data(), static_cast<std::int64_t>(cells.shape(0)), self.features(), out.data());
}

void write_profiles(const CheckedTrees& self, const Matrix<std::int32_t>& cells, const Vector<std::int64_t>& leaf_value,
                    std::int32_t flipped, const Vector<std::uint8_t>& allowed,
                    const MutableVector<std::int64_t>& highest, const MutableVector<std::int64_t>& lowest,
                    const MutableVector<std::int32_t>& highest_cell, const MutableVector<std::int32_t>& lowest_cell) {
    check_cells(cells, self.cell_count());
    const std::int64_t rows = static_cast<std::int64_t>(cells.shape(0));
    require(flipped >= 0 && flipped < self.features(), "the flipped feature is out of range");
    require(static_cast<std::int64_t>(allowed.size()) == self.cell_count()(flipped),
            "allowed must have one entry per cell");
    bool any = false;
    for (std::size_t k = 0; k < allowed.size(); ++k) any = any || allowed(k) != 0;
    require(any, "no cell of the flipped feature is allowed");
    self.check_leaf_values(leaf_value);
    require(static_cast<std::int64_t>(highest.size()) == rows && highest.size() == lowest.size() &&
                highest.size() == highest_cell.size() && highest.size() == lowest_cell.size(),
            "outputs must have one entry per row");
    const FlipProfiles out{highest.data(), lowest.data(), highest_cell.data(), lowest_cell.data()};
    nb::gil_scoped_release release;
    flip_profiles(self.view(), leaf_value.data(), flipped, narrow<std::int32_t>(allowed.size()), allowed.data(),
                  cells.data(), rows, self.features(), out);
}

}  // namespace

void bind_trees(nb::module_& m) {
    nb::class_<CheckedTrees>(m, "CheckedTrees")
        .def(nb::init<Ints, Ints, Ints, Ints, Ints, Ints, Vector<std::uint8_t>, Ints, Vector<std::int64_t>,
                      Vector<std::uint8_t>, Ints, Ints>(),
             nb::kw_only(), "root"_a, "feature"_a, "cut"_a, "left"_a, "right"_a, "leaf"_a, "default_left"_a,
             "category_set"_a, "set_offset"_a, "set_member"_a, "missing_cell"_a, "cell_count"_a)
        .def("reach_leaves", &write_leaves, "cells"_a, "out"_a, "numbers"_a = nb::none())
        .def("flip_profiles", &write_profiles, "cells"_a, "leaf_value"_a, "flipped"_a, "allowed"_a, "highest"_a,
             "lowest"_a, "highest_cell"_a, "lowest_cell"_a);
}

}  // namespace treesens
