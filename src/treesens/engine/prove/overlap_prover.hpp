// A second prover, for deep forests: branch and bound over the boxes that still intersect a node (overlap/).
//
// Its bound is weaker than that of the messages and costs a fraction of it, in proportion to the active boxes.
// Depth-first; every node is trimmed by its losses and cut where the smaller loss is largest. Exact integers
// throughout: values of boxes are sums of coefficients, below 2^63 (validate), and nothing is rounded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "overlap/cut_losses.hpp"
#include "prove/tree_search.hpp"

namespace treesens {

// The layers of one problem; independent of bounds.
struct BoxLayers {
    std::vector<BoxLayer> layers;  // rows that cancel first, then every row by itself
};
// Throws SetupStopped soon after the limits of `control`, if there is one, are reached.
BoxLayers build_box_layers(const Problem& problem, const Forest& forest, const Goal& goal, MemoryBudget& budget,
                           Control* control = nullptr);

// The cuts of a search and what has refuted each of its leaves, written down as the search makes them. The search may
// visit either side of a cut first, and cut off an end of a domain on its way; the tree has them in their places.
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
    // The place at work becomes a leaf that a layer of boxes refutes, or the clauses.
    void close(std::int32_t layer) { nodes_[at_].layer = layer; }
    // Cuts the place at work and goes on in its low side or in its high one; the number of the other one.
    std::int64_t cut(std::int32_t variable, Cell cut, bool low_first) {
        const std::int64_t low = static_cast<std::int64_t>(nodes_.size());
        nodes_.resize(nodes_.size() + 2);
        nodes_[at_] = {variable, cut, kByClauses, low, low + 1};
        at_ = low_first ? low : low + 1;
        return low_first ? low + 1 : low;
    }
    // Cuts off a side that a layer refutes.
    void cut_off(std::int32_t variable, Cell cut, bool low, std::int32_t layer) {
        nodes_[this->cut(variable, cut, !low)].layer = layer;
    }
    void go_to(std::int64_t place) { at_ = place; }
    const std::vector<Node>& nodes() const { return nodes_; }

private:
    std::vector<Node> nodes_;
    std::int64_t at_ = 0;
};

class OverlapProver : public TreeSearch {
public:
    OverlapProver(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal,
                  const BoxLayers& layers, const Gap& gap, MemoryBudget& budget);

    std::int64_t work() const override;
    // The current node: as deep as the search, which first goes where the layers lose least.
    const Domains& node() const { return node_; }
    // Records the whole search for `level`; returns the reason if it did not finish.
    std::string record(CutTree& tree, std::int64_t level, std::int64_t node_limit, Control& control);

private:
    // A node that an active list belongs to, to come back to.
    struct Station {
        std::int64_t node;
        std::size_t depth;
        ActiveBoxes::Mark mark;
        std::vector<Cell> low;
        std::vector<Cell> high;
    };
    struct State {
        State(const BoxLayer& layer, const Problem& problem, MemoryBudget& budget);
        ActiveBoxes boxes;
        std::vector<Station> stations;
        Station at;  // `mark` is not used
        std::int64_t tried = 0;
        std::int64_t pruned = 0;
        // Prunes too few nodes to be tried at each.
        bool idle() const { return tried >= 40 && pruned * 12 < tried; }
    };
    struct Frame {
        std::int64_t id;
        Domains other;  // of the child that is still to be visited
        std::int32_t variable;
        bool pending;
        std::int64_t upper;
        std::int64_t place;  // in what is written down
    };

    std::int64_t written() const override { return static_cast<std::int64_t>(tree_->nodes().size()); }
    void step(std::int64_t node_limit, Incumbent& incumbent, Control& control) override;
    void next() override;
    std::int64_t open_upper() const override;
    bool at_root() const override { return frames_.empty(); }
    bool arrive();
    bool refuted(bool all);
    bool trim(bool all);
    bool look(bool all);
    bool narrow_to(const std::vector<Cell>& low, const std::vector<Cell>& high);
    bool record_ends(const std::vector<Cell>& low, const std::vector<Cell>& high);
    void sync(State& state);
    bool is_on_path(const Station& station) const;
    bool settle(std::int32_t layer);
    std::int64_t spare(const State& state) const;
    std::int64_t needed(const BoxLayer& layer) const;
    std::int64_t upper_of(const State& state) const;
    void read_hull();
    void choose_point(const Incumbent& incumbent);
    void branch(Incumbent& incumbent);
    void split(std::int32_t variable, Cell cut, bool low_first);

    std::vector<std::unique_ptr<State>> states_;
    CutLosses losses_;

    CutTree* tree_ = nullptr;                      // what is written down
    std::int32_t refuting_ = CutTree::kByClauses;  // the layer that the node fails by
    std::vector<Frame> frames_;
    std::vector<Cell> low_;
    std::vector<Cell> high_;
    std::vector<std::int32_t> narrowed_;
    std::vector<std::pair<Cell, std::int64_t>> votes_;
    std::int64_t point_work_ = 0;
};

}  // namespace treesens
