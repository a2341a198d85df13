// treesens._engine.CheckedTrees: an ensemble's trees from Python, checked once for all users.
#pragma once

#include "bindings/arrays.hpp"

namespace treesens {

// Keeps the arrays alive without a copy: Python has made them read-only (compiler/model/cell_trees.py). They are
// checked, so that traversals stay within the arrays and end. Owners of the view keep this object alive.
class CheckedTrees {
public:
    CheckedTrees(Ints root, Ints feature, Ints cut, Ints left, Ints right, Ints leaf, Vector<std::uint8_t> default_left,
                 Ints category_set, Vector<std::int64_t> set_offset, Vector<std::uint8_t> set_member, Ints missing_cell,
                 Ints cell_count);

    const CellTrees& view() const { return view_; }
    std::int64_t nodes() const { return static_cast<std::int64_t>(feature_.size()); }
    std::int64_t features() const { return static_cast<std::int64_t>(cell_count_.size()); }
    // One more than the greatest number of a leaf.
    std::int64_t leaves() const { return leaves_; }
    const Ints& cell_count() const { return cell_count_; }
    // Checks that every leaf has a value, and that the sum over all trees fits int64 several times over.
    void check_leaf_values(const Vector<std::int64_t>& leaf_value) const;

private:
    void check() const;

    Ints root_, feature_, cut_, left_, right_, leaf_;
    Vector<std::uint8_t> default_left_;
    Ints category_set_;
    Vector<std::int64_t> set_offset_;
    Vector<std::uint8_t> set_member_;
    Ints missing_cell_, cell_count_;
    std::int64_t leaves_ = 0;
    CellTrees view_;
};

// Rows of cells [rows][features] are within the cells of the features.
void check_cells(const Matrix<std::int32_t>& cells, const Ints& cell_count);

}  // namespace treesens
