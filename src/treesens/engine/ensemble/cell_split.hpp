// The sides of a split: for one point, a range of cells, the runs of a range.
//
// All traversals of trees over cells use this. A tree may store its nodes in any format; it converts a node to a
// CellSplit.
#pragma once

#include <algorithm>
#include <cstdint>

namespace treesens {

using Cell = std::int32_t;

// Sides of a split, to be combined.
using Sides = std::uint8_t;
constexpr Sides kLeft = 1;
constexpr Sides kRight = 2;
constexpr Sides kBoth = kLeft | kRight;

struct CellSplit {
    Cell cut;                    // cells up to it go left
    Cell missing;                // the missing cell of the feature, its last cell; -1 without one
    bool missing_left;           // the side of the missing cell
    const std::uint8_t* member;  // [cells] of a split by categories, 1: goes left; nullptr: the split has an order

    bool goes_left(Cell cell) const {
        if (member != nullptr) return member[cell] != 0;
        if (cell == missing) return missing_left;
        return cell <= cut;
    }
    Sides side(Cell cell) const { return goes_left(cell) ? kLeft : kRight; }
    // The sides that some cell of low..high takes.
    Sides sides(Cell low, Cell high) const {
        if (member != nullptr) return run_end(low, high) < high ? kBoth : side(low);
        if (high != missing) return sides_of_order(low, high);
        const Sides absent = missing_left ? kLeft : kRight;
        return low == high ? absent : static_cast<Sides>(absent | sides_of_order(low, high - 1));
    }
    // The last cell of low..high up to which all cells go to the same side as `low`.
    Cell run_end(Cell low, Cell high) const {
        if (member != nullptr) {
            while (low < high && (member[low + 1] != 0) == (member[low] != 0)) ++low;
            return low;
        }
        if (low == missing) return low;
        const Cell last = high == missing ? high - 1 : high;
        const bool left = low <= cut;
        if (left && cut < last) return cut;
        return last < high && missing_left == left ? high : last;
    }
    // Removes from low..high the cells that do not go to a side. The result may be larger: with categories nothing is
    // removed, and a missing cell that stays on the left keeps the cells between.
    void narrow(Sides to, Cell& low, Cell& high) const {
        if (member != nullptr) return;
        const bool absent = high == missing;
        if (absent && missing_left == (to == kLeft)) {
            if (to == kRight) low = std::max(low, cut + 1);
            return;
        }
        if (absent) --high;
        if (to == kLeft)
            high = std::min(high, cut);
        else
            low = std::max(low, cut + 1);
    }

private:
    Sides sides_of_order(Cell low, Cell high) const {
        return static_cast<Sides>((low <= cut ? kLeft : 0) | (high > cut ? kRight : 0));
    }
};

}  // namespace treesens
