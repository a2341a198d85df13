// Trees of a question in which some features take any of a list of choices and the others lie in a box of cells.
#pragma once

#include <cstdint>
#include <vector>

#include "ensemble/cell_trees.hpp"

namespace treesens {

using Wide = std::int64_t;

// A box of cells: every feature f has the cells low[f]..high[f]. Those of varied features mean nothing.
struct RangeBox {
    std::vector<Cell> low;
    std::vector<Cell> high;
};

struct ChoiceNode {
    std::int32_t feature = -1;  // -1: a leaf
    std::int32_t cut = 0;
    std::int32_t left = 0;
    std::int32_t right = 0;
    std::int32_t leaf = 0;
    std::int32_t set = -1;     // of categories
    std::int32_t sides = -1;   // first of the entries in `goes_left` if the feature is varied
    std::int32_t absent = -1;  // the missing cell of the feature
    bool default_left = false;
};

// From this choice on (up to the next run) choices belong to a class: the tree cannot tell them apart.
struct ClassRun {
    std::int32_t start;
    std::int32_t of_class;
};

struct ChoiceTree {
    std::int32_t root = 0;
    bool varied = false;
    std::vector<std::int32_t> tables;  // in which some leaf is not 0
    std::int32_t classes = 1;
    std::vector<ClassRun> runs;
    std::vector<std::vector<std::int32_t>> block_classes;  // the classes that each block of choices meets
};

// The varied features and what they may be: cells [choices][features] by row.
struct Choices {
    std::vector<std::int32_t> features;
    std::vector<Cell> cells;
    std::int32_t count = 0;
};

// Blocks of choices that are compared with each other; up to so many choices stand for themselves.
constexpr std::int32_t kBlocks = 16;
// Into so many blocks more choices are put.
constexpr std::int32_t kFewBlocks = 6;

class ChoiceTrees {
public:
    // Of so many nodes. `values` [leaves][tables] in whole numbers, whose sums over trees fit int64 several times over.
    ChoiceTrees(const CellTrees& trees, std::int64_t nodes, std::vector<Cell> cells, std::vector<Wide> values,
                std::int32_t tables, Choices choices);

    std::int32_t tables() const { return tables_; }
    std::int32_t choices() const { return choices_.count; }
    std::int32_t blocks() const { return blocks_; }
    std::int32_t features() const { return static_cast<std::int32_t>(cells_.size()); }
    const std::vector<Cell>& cells() const { return cells_; }
    const Choices& varied() const { return choices_; }
    bool is_varied(std::int32_t feature) const { return place_[feature] >= 0; }
    const std::vector<ChoiceTree>& trees() const { return trees_; }
    const ChoiceNode& node(std::int32_t number) const { return nodes_[number]; }
    Wide value(std::int32_t leaf, std::int32_t table) const {
        return values_[static_cast<std::size_t>(leaf) * tables_ + table];
    }
    // Whether a class of choices goes left at a node about a varied feature.
    bool goes_left(const ChoiceNode& node, std::int32_t of_class) const {
        return goes_left_[node.sides + of_class] != 0;
    }
    CellSplit split(const ChoiceNode& node) const {
        return {node.cut, node.absent, node.default_left,
                node.set < 0 ? nullptr : set_member_.data() + set_offset_[node.set]};
    }
    // The sides that some cell of low..high takes. Ranges of categories are long, so members are counted beforehand.
    Sides sides(const ChoiceNode& node, Cell low, Cell high) const {
        return node.set < 0 ? split(node).sides(low, high) : sides_of_set(node, low, high);
    }
    // A cell c of low..high such that c and c + 1 part; both sides are taken.
    Cell parting(const ChoiceNode& node, Cell low, Cell high) const;
    std::int32_t block_of(std::int32_t choice) const {
        return static_cast<std::int32_t>(static_cast<Wide>(choice) * blocks_ / choices_.count);
    }

private:
    Sides sides_of_set(const ChoiceNode& node, Cell low, Cell high) const;
    void copy_nodes(const CellTrees& trees, std::int64_t nodes);
    void classify(ChoiceTree& tree);
    std::vector<std::int32_t> nodes_of(std::int32_t root) const;
    void find_tables(ChoiceTree& tree, const std::vector<std::int32_t>& nodes) const;

    std::vector<Cell> cells_;
    std::vector<Wide> values_;
    std::int32_t tables_;
    Choices choices_;
    std::int32_t blocks_;
    std::vector<std::int32_t> place_;  // of a feature among the varied ones, -1
    std::vector<ChoiceNode> nodes_;
    std::vector<ChoiceTree> trees_;
    std::vector<std::uint8_t> goes_left_;
    std::vector<std::int64_t> set_offset_;
    std::vector<std::uint8_t> set_member_;
    std::vector<std::int32_t> set_before_;  // members before each cell of a set
};

}  // namespace treesens
