#include "nearest/residual_trees.hpp"

#include <algorithm>

#include "problem/checked.hpp"

namespace treesens {

namespace {

constexpr std::uint8_t kUpper = 1;
constexpr std::uint8_t kLower = 2;

}  // namespace

void Residual::clear() {
    nodes.clear();
    bounds.clear();
    roots.clear();
    upper = lower = 0;
    total.fill(0);
}

TreeSpecialiser::TreeSpecialiser(const CellTrees& trees, std::int64_t nodes, const std::int64_t* leaf_value,
                                 const std::uint8_t* varied)
    : trees_(trees), leaf_value_(leaf_value), varied_(varied) {
    for (std::int64_t n = 0; n < nodes; ++n) {
        const bool inner = trees.feature[n] >= 0;
        const bool plain = inner && trees.category_set[n] < 0 && trees.missing_cell[trees.feature[n]] < 0;
        whole_.nodes.push_back({narrow<std::int32_t>(n), inner ? trees.left[n] : -1, inner ? trees.right[n] : -1,
                                inner ? trees.feature[n] : -1, trees.cut[n], plain});
    }
    whole_.roots.assign(trees.root, trees.root + trees.trees);
}

std::int32_t TreeSpecialiser::leaf(std::int32_t source, Residual& to) const {
    const std::int64_t value = leaf_value_[trees_.leaf[source]];
    PairBounds bounds;
    for (int k = 0; k < kWeights; ++k) bounds[k] = (kWeight[k].high - kWeight[k].low) * value;
    to.nodes.push_back({source, -1, -1, -1, 0, false});
    to.bounds.push_back(bounds);
    return narrow<std::int32_t>(to.nodes.size()) - 1;
}

// `points` says which of the two points come to the node at all.
std::int32_t TreeSpecialiser::copy(const Residual& from, std::int32_t node, const PairBox& box, std::uint8_t points,
                                   Residual& to) const {
    const Residual::Node here = from.nodes[node];
    const std::int32_t f = here.feature;
    if (f < 0) return leaf(here.source, to);
    Sides upper = sides_of(here, box.low[f], box.high[f]);
    Sides lower = upper;
    if (varied_[f]) {
        upper = (points & kUpper) ? upper : 0;
        lower = (points & kLower) ? sides_of(here, box.lower_low[f], box.lower_high[f]) : 0;
    }
    const Sides both = upper | lower;
    const auto comes = [&](Sides side) -> std::uint8_t {
        if (!varied_[f]) return points;
        return static_cast<std::uint8_t>(((upper & side) ? kUpper : 0) | ((lower & side) ? kLower : 0));
    };
    if (both != kBoth) return copy(from, both == kLeft ? here.left : here.right, box, comes(both), to);
    const std::int32_t left = copy(from, here.left, box, comes(kLeft), to);
    const std::int32_t right = copy(from, here.right, box, comes(kRight), to);
    PairBounds bounds{};
    const PairBounds& one = to.bounds[left];
    const PairBounds& other = to.bounds[right];
    if (!varied_[f]) {
        for (int k = 0; k < kWeights; ++k) bounds[k] = std::max(one[k], other[k]);
    } else if (lower == 0) {
        bounds[0] = std::max(one[0], other[0]);
    } else if (upper == 0) {
        bounds[1] = std::max(one[1], other[1]);
    } else {
        for (int k = 0; k < kWeights; ++k) {
            std::int64_t best = INT64_MIN;
            if ((upper & kLeft) && (lower & kLeft)) best = std::max(best, one[k]);
            if ((upper & kRight) && (lower & kRight)) best = std::max(best, other[k]);
            const Weight w = kWeight[k];
            if ((upper & kLeft) && (lower & kRight)) best = std::max(best, w.high * one[0] + w.low * other[1]);
            if ((upper & kRight) && (lower & kLeft)) best = std::max(best, w.high * other[0] + w.low * one[1]);
            bounds[k] = best;
        }
    }
    to.nodes.push_back({here.source, left, right, f, here.cut, here.plain});
    to.bounds.push_back(bounds);
    return narrow<std::int32_t>(to.nodes.size()) - 1;
}

void TreeSpecialiser::shrink(const Residual& from, const PairBox& box, Residual& to) const {
    to.clear();
    to.upper = from.upper;
    to.lower = from.lower;
    for (const std::int32_t root : from.roots) {
        const std::size_t before = to.nodes.size();
        const std::int32_t node = copy(from, root, box, kUpper | kLower, to);
        const Residual::Node& top = to.nodes[node];
        if (top.left < 0 && top.right < 0) {
            const std::int64_t value = leaf_value_[trees_.leaf[top.source]];
            to.upper += value;
            to.lower += value;
        } else {
            const std::int32_t f = trees_.feature[top.source];
            Sides upper = 0;
            Sides lower = 0;
            if (varied_[f]) {
                upper = trees_.split(top.source).sides(box.low[f], box.high[f]);
                lower = trees_.split(top.source).sides(box.lower_low[f], box.lower_high[f]);
            }
            const auto is_leaf = [&](std::int32_t n) { return to.nodes[n].left < 0 && to.nodes[n].right < 0; };
            // Each point goes to one side, and there to one leaf.
            const bool decided =
                varied_[f] && upper != kBoth && lower != kBoth && is_leaf(top.left) && is_leaf(top.right);
            if (!decided) {
                to.roots.push_back(node);
                for (int k = 0; k < kWeights; ++k) to.total[k] += to.bounds[node][k];
                continue;
            }
            to.upper += leaf_value_[trees_.leaf[to.nodes[upper == kLeft ? top.left : top.right].source]];
            to.lower += leaf_value_[trees_.leaf[to.nodes[lower == kLeft ? top.left : top.right].source]];
        }
        to.nodes.resize(before);
        to.bounds.resize(before);
    }
    for (int k = 0; k < kWeights; ++k) to.total[k] += kWeight[k].high * to.upper - kWeight[k].low * to.lower;
}

}  // namespace treesens
