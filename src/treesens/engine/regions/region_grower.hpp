// The widest box of cells around a witness in which bounds prove every point (pair) to be a witness.
//
// The score of a model over a box is between the sums of the least and of the greatest leaf that each tree can reach
// there. Both are stored per tree: a moved side affects only the trees that split on its feature.
#pragma once

#include <cstdint>
#include <vector>

#include "regions/reached.hpp"
#include "regions/value_trees.hpp"

namespace treesens {

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
