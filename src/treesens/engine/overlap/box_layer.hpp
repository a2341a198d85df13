// The boxes of one sum of rows: of every tree only those worth more than the omitted ones.
//
// In a deep forest every tree has a good box somewhere. The bound depends on how many of them overlap: a search that
// keeps, per tree, the boxes that the node still meets, gets its bound from the best of them (active_boxes.hpp). For
// the difference of two points, whose rows cancel on most leaves, a box is a pair of leaves with a positive difference.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "bound/join.hpp"
#include "problem/box_trees.hpp"
#include "problem/growing.hpp"
#include "problem/problem.hpp"

namespace treesens {

struct CellRange {
    std::uint16_t low;
    std::uint16_t high;  // inclusive
};

// The position of a variable's range in the bytes of an entry. Two bytes are enough for most variables; more than 256
// cells need four.
struct RangePlace {
    std::int32_t offset;
    bool wide;

    CellRange read(const std::uint8_t* entry) const {
        const std::uint8_t* at = entry + offset;
        if (!wide) return {at[0], at[1]};
        CellRange range;
        std::memcpy(&range, at, sizeof(range));
        return range;
    }
    void write(std::uint8_t* entry, CellRange range) const {
        std::uint8_t* at = entry + offset;
        if (wide) {
            std::memcpy(at, &range, sizeof(range));
        } else {
            at[0] = static_cast<std::uint8_t>(range.low);
            at[1] = static_cast<std::uint8_t>(range.high);
        }
    }
    static constexpr std::int32_t bytes(std::int32_t cells) { return cells <= kNarrowCells ? 2 : 4; }
    static constexpr std::int32_t kNarrowCells = 256;
};

// The ranges of one entry.
struct EntryRanges {
    const std::uint8_t* entry;
    const RangePlace* place;  // [scope of the factor]

    CellRange operator[](std::int32_t slot) const { return place[slot].read(entry); }
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
    std::vector<RangePlace> place;              // as `scope`
    std::vector<std::int32_t> stride;           // [factors]: bytes of the ranges of an entry
    std::vector<std::int64_t> range_offset;     // [factors]
    Growing<std::uint8_t> range;                // [entries][stride of the factor]
    std::vector<std::vector<Use>> uses;         // [variables]
    std::int64_t constant = 0;

    std::int32_t factors() const { return static_cast<std::int32_t>(floor.size()); }
    std::int64_t entries() const { return first.back(); }
    std::int32_t scope_size(std::int32_t factor) const { return scope_offset[factor + 1] - scope_offset[factor]; }
    std::int64_t bytes() const { return static_cast<std::int64_t>(range.size() + value.size() * sizeof(std::int64_t)); }
};

inline constexpr std::int64_t kNoFloor = -(std::int64_t{1} << 62);

// True if the cells of every variable fit a CellRange.
bool fits_overlap(const Problem& problem);
// A sum of rows that cancel: joint boxes of the copies of every tree, those above zero.
BoxLayer build_difference_layer(const Problem& problem, const Forest& forest, const RowSum& rows, MemoryBudget& budget,
                                Control* control = nullptr);
// One row, exactly: where no variable of the problem has more than one cell left, the bound is the value.
BoxLayer build_row_layer(const Problem& problem, const Forest& forest, std::int32_t row, MemoryBudget& budget);

}  // namespace treesens
