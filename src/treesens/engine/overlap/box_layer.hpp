// The boxes of one sum of rows: of every tree only those that are worth more than what is left out.
//
// In a deep forest every tree has a good box somewhere. What counts is how many of them overlap in one place: a search
// that keeps, per tree, the boxes that the node still meets, gets its bound from the best of them (active_boxes.hpp).
// For the difference of two points, whose rows cancel on most leaves, a box is a pair of leaves with a positive
// difference.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "bound/join.hpp"
#include "problem/box_trees.hpp"
#include "problem/growing.hpp"
#include "problem/problem.hpp"

namespace treesens::search {

struct CellRange {
    std::uint16_t low;
    std::uint16_t high;  // inclusive
};

struct BoxLayer {
    struct Use {
        std::int32_t factor;
        std::int32_t slot;  // place of the variable in the scope of the factor
    };

    RowSum rows;
    std::vector<std::int64_t> first{0};  // [factors + 1]: entries, the most valuable first
    Growing<std::int64_t> value;         // [entries]
    std::vector<std::int64_t> floor;     // [factors]: no point outside all entries has more; kNoFloor: there is none
    std::vector<std::int32_t> scope_offset{0};  // [factors + 1]
    std::vector<std::int32_t> scope;            // variables
    std::vector<std::int64_t> range_offset;     // [factors]
    Growing<CellRange> range;                   // [entries][scope of the factor]
    std::vector<std::vector<Use>> uses;         // [variables]
    std::int64_t constant = 0;

    std::int32_t factors() const { return static_cast<std::int32_t>(floor.size()); }
    std::int64_t entries() const { return first.back(); }
    std::int32_t scope_size(std::int32_t factor) const { return scope_offset[factor + 1] - scope_offset[factor]; }
    std::int64_t bytes() const {
        return static_cast<std::int64_t>(range.size() * sizeof(CellRange) + value.size() * sizeof(std::int64_t));
    }
};

inline constexpr std::int64_t kNoFloor = -(std::int64_t{1} << 62);

// Whether the cells of every variable fit a CellRange.
bool fits_boxes(const Problem& problem);
// A sum of rows that cancel: joint boxes of the copies of every tree, those above zero.
BoxLayer build_difference_layer(const Problem& problem, const Forest& forest, const RowSum& rows, MemoryBudget& budget);
// One row, exactly: where no variable of the problem has more than one cell left, the bound is the value.
BoxLayer build_row_layer(const Problem& problem, const Forest& forest, std::int32_t row, MemoryBudget& budget);

}  // namespace treesens::search
