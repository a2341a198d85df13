// The boxes of a layer that a node still meets, with a way back: narrowing leaves a trail, and undo() follows it.
#pragma once

#include <cstdint>
#include <vector>

#include "overlap/box_layer.hpp"

namespace treesens {

class ActiveBoxes {
public:
    struct Mark {
        std::size_t trail;
        std::size_t arena;
        std::int64_t total;
        std::int64_t active;
    };

    ActiveBoxes(const BoxLayer& layer, MemoryBudget& budget);

    const BoxLayer& layer() const { return layer_; }
    // From now on the cells of the `changed` variables lie in the hull.
    void restrict_to(const std::vector<std::int32_t>& changed, const std::vector<Cell>& low,
                     const std::vector<Cell>& high);
    // Keeps only solutions with a bound at most `spare` below this one: boxes worth less than the best of their tree by
    // more than that are dropped, and with them everything outside all boxes.
    void leave_out_beyond(std::int64_t spare);
    // True if no solution lies outside the remaining boxes of a factor.
    bool closed(std::int32_t factor) const { return list_[factor].closed; }
    // No point of the node has more in the sum of the rows (without their bounds).
    std::int64_t bound() const { return total_; }
    // False where no box is left and nothing was left out: the node holds no point.
    bool possible() const { return impossible_ == 0; }
    std::int32_t active(std::int32_t factor) const { return list_[factor].count; }
    // The entries of a factor that are left, the most valuable first; numbers within the factor.
    const std::int32_t* begin(std::int32_t factor) const { return arena_.data() + list_[factor].begin; }
    EntryRanges ranges(std::int32_t factor, std::int32_t entry) const {
        return {layer_.range.data() + layer_.range_offset[factor] +
                    static_cast<std::int64_t>(entry) * layer_.stride[factor],
                layer_.place.data() + layer_.scope_offset[factor]};
    }
    std::int64_t value(std::int32_t factor, std::int32_t entry) const {
        return layer_.value[layer_.first[factor] + entry];
    }
    std::int64_t best(std::int32_t factor) const {
        if (list_[factor].count > 0) return value(factor, *begin(factor));
        return layer_.floor[factor] == kNoFloor ? 0 : layer_.floor[factor];  // see possible()
    }

    // A mark to return to. Changes since the last one need no memory of their own.
    Mark mark();
    // True if enough was removed since the last mark to store the lists. If that is by a fixed share of them, the lists
    // of a path are together no more than a multiple of those of the root.
    bool worth_a_mark() const { return 4 * active_ < 3 * active_at_mark_; }
    void undo(const Mark& mark);
    std::int64_t work() const { return work_; }

private:
    struct List {
        std::size_t begin;
        std::int32_t count;
        bool closed;
    };
    struct Check {
        RangePlace place;
        Cell low;
        Cell high;
    };
    struct Change {
        std::int32_t factor;
        List before;
    };
    void replace(std::int32_t factor, List list);
    void filter(std::int32_t factor);
    bool holds_nothing(const List& list) const { return list.count == 0 && list.closed; }

    const BoxLayer& layer_;
    std::vector<std::int32_t> arena_;
    std::vector<List> list_;  // [factors]
    std::vector<Change> trail_;
    std::int64_t total_ = 0;
    std::int64_t active_ = 0;  // boxes of all lists
    std::int64_t active_at_mark_ = 0;
    std::size_t arena_at_mark_ = 0;  // data from here on is useless to a mark
    std::int64_t work_ = 0;
    std::int32_t impossible_ = 0;  // closed factors without a box
    std::vector<Check> checks_;    // of narrow ranges
    std::vector<Check> wide_checks_;
    std::vector<std::uint8_t> is_changed_;  // [variables]
};

}  // namespace treesens
