// Records the cuts of a search and the refutation of each leaf, during the search.
//
// The search may visit either side of a cut first, and trim ends of domains on its way; the tree stores these in order.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/problem.hpp"

namespace treesens {

class CutTree {
public:
    static constexpr std::int32_t kByClauses = -1;
    struct Node {
        std::int32_t variable = -1;  // -1: a leaf
        Cell cut = 0;                // cells <= cut are in `low`
        std::int32_t layer = kByClauses;
        std::int64_t low = -1;
        std::int64_t high = -1;
    };

    CutTree() : nodes_(1) {}
    // Makes the current node a leaf refuted by a layer of boxes, or by the clauses.
    void close(std::int32_t layer) { nodes_[at_].layer = layer; }
    // Cuts the current node and moves to its low or high side; returns the index of the other one.
    std::int64_t cut(std::int32_t variable, Cell cut, bool low_first) {
        const std::int64_t low = static_cast<std::int64_t>(nodes_.size());
        nodes_.resize(nodes_.size() + 2);
        nodes_[at_] = {variable, cut, kByClauses, low, low + 1};
        at_ = low_first ? low : low + 1;
        return low_first ? low + 1 : low;
    }
    // Cuts off a side refuted by a layer.
    void cut_off(std::int32_t variable, Cell cut, bool low, std::int32_t layer) {
        nodes_[this->cut(variable, cut, !low)].layer = layer;
    }
    void go_to(std::int64_t place) { at_ = place; }
    const std::vector<Node>& nodes() const { return nodes_; }

private:
    std::vector<Node> nodes_;
    std::int64_t at_ = 0;
};

}  // namespace treesens
