// Which cut of a box brings it nearest to a decision.
//
// The range of a tree over a box is that of the leaves the box meets. A side of a cut loses the leaves behind the cut;
// if the best one is among them, the range of the tree shrinks, by as much as the next best one is worse. One walk
// down to the best leaf tells this for every split on the way, and running sums over the cuts of a feature add up all
// trees: a side of one cut also decides every split beyond it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "measure/choice_trees.hpp"

namespace treesens {

// A cut of the box: cells up to `cut` of a feature, and those beyond. Without one the feature is -1.
struct ValuedCut {
    std::int32_t feature = -1;
    Cell cut = 0;
};

// A row wants sign * table to be high. The last of all wants choices to be apart, and has no table.
struct Wanted {
    std::int32_t table = -1;
    int sign = 1;
};

// One split of a tree that a box leaves open, or a leaf (without a feature), with the ranges below it.
struct Branch {
    std::int32_t feature = -1;
    Cell cut = 0;
    std::int32_t left = -1;
    std::int32_t right = -1;
};

class CutWorth {
public:
    CutWorth(std::vector<Cell> cells, std::int32_t tables, std::vector<Wanted> wanted);

    // A new box.
    void reset();
    // A new tree. Branches come after both of their sides; all ranges of a leaf are set by whoever adds it.
    void begin_tree() { used_ = 0; }
    std::int32_t add_leaf();
    std::int32_t add_branch(std::int32_t feature, Cell cut, std::int32_t left, std::int32_t right,
                            const std::vector<std::int32_t>& tables);
    Wide& low(std::int32_t branch, std::int32_t table) { return low_[place(branch, table)]; }
    Wide& high(std::int32_t branch, std::int32_t table) { return high_[place(branch, table)]; }
    Wide& apart(std::int32_t branch) { return apart_[branch]; }
    // The tree is complete: what the sides of its cuts lose.
    void end_tree(std::int32_t root, const std::vector<std::int32_t>& tables, bool varied);

    bool none() const { return touched_.empty(); }
    // The best cut, if wanted i lies `excess[i]` above what would exclude the box. `share(f, c)` is how much of the box
    // lies at or below a cut.
    template <typename Share>
    ValuedCut best(const RangeBox& box, const std::vector<double>& excess, const Share& share);

private:
    std::size_t place(std::int32_t branch, std::int32_t table) const {
        return static_cast<std::size_t>(branch) * tables_ + table;
    }
    template <typename Value>
    void walk(std::int32_t root, std::size_t wanted, const Value& value);
    double* losses(std::int32_t feature, Cell cut, int side) {
        return losses_.data() + ((cut_offset_[feature] + cut) * 2 + side) * wanted_.size();
    }

    std::int32_t tables_;
    std::vector<Wanted> wanted_;
    std::vector<std::int64_t> cut_offset_;
    std::vector<double> losses_;         // [cuts][sides][wanted]
    std::vector<std::uint8_t> is_open_;  // [cuts]
    std::vector<std::int32_t> touched_;  // features with an open cut
    std::vector<std::uint8_t> is_touched_;
    std::vector<Branch> branches_;
    std::int32_t used_ = 0;
    std::vector<Wide> low_;
    std::vector<Wide> high_;
    std::vector<Wide> apart_;
    std::vector<double> right_sum_;
    std::vector<double> left_sum_;
};

template <typename Share>
ValuedCut CutWorth::best(const RangeBox& box, const std::vector<double>& excess, const Share& share) {
    const std::size_t count = wanted_.size();
    ValuedCut found;
    double most = -1.0;
    for (const std::int32_t f : touched_) {
        const Cell low = box.low[f];
        const Cell high = box.high[f];
        // The side beyond a cut loses what is below all cuts up to it, the other side what is beyond all later ones.
        left_sum_.assign(count, 0.0);
        right_sum_.assign(count, 0.0);
        for (Cell c = low; c < high; ++c) {
            for (std::size_t i = 0; i < count; ++i) left_sum_[i] += losses(f, c, 0)[i];
        }
        for (Cell c = low; c < high; ++c) {
            double below = 0.0;
            double beyond = 0.0;
            for (std::size_t i = 0; i < count; ++i) {
                right_sum_[i] += losses(f, c, 1)[i];
                below += std::min(1.0, left_sum_[i] / excess[i]);
                beyond += std::min(1.0, right_sum_[i] / excess[i]);
                left_sum_[i] -= losses(f, c, 0)[i];
            }
            if (is_open_[cut_offset_[f] + c] == 0) continue;
            const double part = share(f, c);
            const double worth = part * below + (1.0 - part) * beyond + 1e-6 * std::min(part, 1.0 - part);
            if (worth > most) {
                most = worth;
                found = {f, c};
            }
        }
    }
    return found;
}

}  // namespace treesens
