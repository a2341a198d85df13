// The widest box of cells around a witness in which bounds prove every point (pair) to be a witness.
//
// The score of a model over a box is between the sums of the least and of the greatest leaf that each tree can reach
// there. Both are stored per tree: a moved side affects only the trees that split on its feature.
#pragma once

#include <cstdint>
#include <vector>

#include "regions/value_trees.hpp"

namespace treesens {

// Boxes as literals, at most one per box and feature: the cells low..high of a feature. Literals stand by feature.
struct BoxLiterals {
    std::int64_t boxes = 0;
    std::vector<std::int64_t> feature_offset;  // [features + 1]
    std::vector<std::int32_t> box;             // [literals]
    std::vector<std::int32_t> low;
    std::vector<std::int32_t> high;
    std::vector<std::int32_t> cells;  // [features]
};

// Which of many boxes some point of a box of cells reaches, kept up to date while the box changes in one feature.
class Reached {
public:
    // At first every box is reached.
    explicit Reached(const BoxLiterals& literals)
        : literals_(literals), failed_(literals.boxes, 0), missed_(literals.box.size(), 0) {}

    bool operator()(std::int64_t box) const { return failed_[box] == 0; }
    // The cells of a feature are now those of `chosen` [cells]; boxes that are reached now, or no longer, are told to
    // `changed(box)`.
    template <typename Changed>
    void set(std::int32_t feature, const std::uint8_t* chosen, Changed changed) {
        const std::int64_t begin = literals_.feature_offset[feature];
        const std::int64_t end = literals_.feature_offset[feature + 1];
        if (begin == end) return;
        count(feature, chosen);
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int32_t low = literals_.low[i];
            const std::int32_t high = literals_.high[i];
            const std::uint8_t misses = high < low || below_[high + 1] == below_[low];
            if (misses == missed_[i]) continue;
            missed_[i] = misses;
            std::int32_t& failed = failed_[literals_.box[i]];
            const bool before = failed == 0;
            failed += misses ? 1 : -1;
            if (before != (failed == 0)) changed(literals_.box[i]);
        }
    }

private:
    void count(std::int32_t feature, const std::uint8_t* chosen) {
        below_.assign(literals_.cells[feature] + 1, 0);
        for (std::int32_t k = 0; k < literals_.cells[feature]; ++k) below_[k + 1] = below_[k] + (chosen[k] != 0);
    }
    const BoxLiterals& literals_;
    std::vector<std::int32_t> failed_;  // [boxes]: literals that no chosen cell meets
    std::vector<std::uint8_t> missed_;  // [literals]
    std::vector<std::int32_t> below_;
};

// What boxes have to keep. Places are point * features + feature; masks are [cells] of the feature, one after the other
// in `member` from their `start`.
struct RegionTerms {
    struct Score {
        std::int32_t score;
        std::int64_t weight;
    };
    struct Cost {
        std::int32_t place;
        std::int64_t weight;
        std::vector<std::int64_t> of_cell;
    };
    // sum of weight * (least score, or greatest where the weight is negative) + sum of weight * least cost >= bound
    struct Row {
        std::vector<Score> scores;
        std::vector<Cost> costs;
        __int128 bound = 0;

        // Whether no sum of the terms, whatever is reached, goes beyond 2^124.
        bool fits() const;
    };
    struct Set {
        std::int32_t place;
        std::vector<std::uint8_t> member;
    };
    struct Avoided {
        std::int32_t point;
        BoxLiterals boxes;
    };
    std::vector<Row> rows;
    std::vector<std::vector<Set>> sets;  // of each list one has to hold
    std::vector<Avoided> avoided;
};

class RegionGrower {
public:
    // `scores` outlive it; score i is that of the point score_point[i]. `shared` [features]: equal at all points;
    // `ordered` [features]: cells but the missing one have an order. `legal` [cells], the features one after the other.
    RegionGrower(std::vector<const ValueTrees*> scores, std::vector<std::int32_t> score_point, std::int32_t points,
                 std::vector<std::uint8_t> shared, std::vector<std::uint8_t> ordered, std::vector<std::uint8_t> legal,
                 RegionTerms terms);

    // Whether these are cells [points][features] of the question.
    bool fits(const std::vector<std::int32_t>& cells, std::int64_t points) const;
    // The cells on which every tree keeps its leaf, [points][cells]; empty if bounds do not even prove the point.
    std::vector<std::uint8_t> leaf_region(const std::vector<std::int32_t>& cells);
    // The same with every side moved outwards as far as the bounds allow, cheap features first.
    std::vector<std::uint8_t> region(const std::vector<std::int32_t>& cells);

private:
    // The reached values of a score's trees, and their sums.
    struct State {
        std::vector<ValueTrees::Range> reached;  // [trees]
        std::int64_t low = 0;
        std::int64_t high = 0;
    };
    // The reached values of a tree before a side was moved.
    struct Undo {
        std::size_t score;
        std::int32_t tree;
        ValueTrees::Range reached;
    };
    using Mask = std::vector<std::uint8_t>;

    std::int32_t features() const { return static_cast<std::int32_t>(shared_.size()); }
    std::uint8_t* mask(std::int32_t point, std::int32_t f) { return box_.data() + point * cells_ + offset_[f]; }
    const std::uint8_t* legal(std::int32_t f) const { return legal_.data() + offset_[f]; }
    std::int32_t width(std::int32_t f) const { return offset_[f + 1] - offset_[f]; }
    void load();
    void replace(std::size_t score, std::int32_t tree, ValueTrees::Range reached);
    void set_mask(std::int32_t point, std::int32_t f, const std::uint8_t* chosen);
    bool widen_trees(std::int32_t point, std::int32_t f);
    bool sets_hold() const;
    bool rows_hold() const;
    bool holds() const { return sets_hold() && rows_hold(); }
    bool try_mask(std::int32_t point, std::int32_t f, const Mask& chosen);
    void widen(std::int32_t point, std::int32_t f, std::int32_t cell);
    std::int32_t furthest(std::int32_t point, std::int32_t f, std::int32_t fixed, const std::vector<std::int32_t>& ends,
                          bool upwards);
    Mask run(std::int32_t f, std::int32_t low, std::int32_t high, const std::uint8_t* before) const;

    std::vector<const ValueTrees*> scores_;
    std::vector<std::int32_t> score_point_;
    std::int32_t points_;
    std::vector<std::uint8_t> shared_;
    std::vector<std::uint8_t> ordered_;
    std::vector<std::uint8_t> legal_;
    RegionTerms terms_;
    std::vector<std::int32_t> offset_;        // [features + 1]
    std::vector<std::int32_t> missing_cell_;  // [features]
    std::int32_t cells_ = 0;
    std::vector<std::uint8_t> box_;  // [points][cells]
    std::vector<CellBox> met_;       // [points]: the same
    std::vector<State> states_;      // [scores]
    std::vector<Undo> undo_;
    ValueTrees::Walk walk_;
    std::vector<Reached> entered_;  // [avoided]
    std::vector<std::int64_t> entered_count_;
};

}  // namespace treesens
