// What is left of an ensemble inside a box of cells: the tests that the box does not decide, with bounds on pairs of
// points.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ensemble/cell_trees.hpp"

namespace treesens {

// Bounds are on high * score(upper) - low * score(lower) of a pair of points in the box. The points share all features
// but the varied ones, so that with equal weights all trees without a varied feature cancel.
struct Weight {
    std::int64_t high;
    std::int64_t low;
};
constexpr int kWeights = 7;
constexpr std::array<Weight, kWeights> kWeight{{{1, 0}, {0, 1}, {1, 1}, {2, 1}, {1, 2}, {3, 2}, {2, 3}}};
using PairBounds = std::array<std::int64_t, kWeights>;

// Closed ranges of cells. Features that the question does not vary have one range, of the upper point; varied ones have
// a second range for the lower point.
struct PairBox {
    std::vector<std::int32_t> low;         // [features]
    std::vector<std::int32_t> high;        // [features]
    std::vector<std::int32_t> lower_low;   // [features], of varied features only
    std::vector<std::int32_t> lower_high;  // [features]
};

// The trees with every test that the box decides taken out. Trees that are decided as a whole are summed up.
struct Residual {
    struct Node {
        std::int32_t source;  // node of the ensemble
        std::int32_t left;    // node of the residual, -1 for leaves
        std::int32_t right;
        std::int32_t feature;  // of the test, -1 for leaves
        std::int32_t cut;      // cells up to it go left, where the test is `plain`: no set, and no missing cell
        bool plain;
    };
    std::vector<Node> nodes;
    std::vector<PairBounds> bounds;   // [nodes]
    std::vector<std::int32_t> roots;  // trees that are not decided
    std::int64_t upper = 0;           // sum of the decided trees at the upper point
    std::int64_t lower = 0;
    PairBounds total{};  // no pair in the box has more; decided trees included

    void clear();
};

class TreeSpecialiser {
public:
    // `varied` [features] flags the features in which the points may differ. All arrays must outlive the object; the
    // sum of the sizes of the largest leaves must be below 2^59.
    TreeSpecialiser(const CellTrees& trees, std::int64_t nodes, const std::int64_t* leaf_value,
                    const std::uint8_t* varied);

    // The whole ensemble, without bounds.
    const Residual& whole() const { return whole_; }
    // What is left of `from` inside a box that lies within the box of `from`.
    void shrink(const Residual& from, const PairBox& box, Residual& to) const;

private:
    std::int32_t copy(const Residual& from, std::int32_t node, const PairBox& box, std::uint8_t points,
                      Residual& to) const;
    Sides sides_of(const Residual::Node& node, Cell low, Cell high) const {
        // A plain test has all that it needs in the node, which is at hand.
        return (node.plain ? CellSplit{node.cut, -1, false, nullptr} : trees_.split(node.source)).sides(low, high);
    }
    std::int32_t leaf(std::int32_t source, Residual& to) const;

    const CellTrees trees_;
    const std::int64_t* leaf_value_;
    const std::uint8_t* varied_;
    Residual whole_;
};

}  // namespace treesens
