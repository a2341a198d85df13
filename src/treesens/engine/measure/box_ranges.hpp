// What every choice can score in a box of cells: lower and upper bounds that every input of the box keeps.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/choice_trees.hpp"
#include "measure/cut_worth.hpp"

namespace treesens {

// Bounds in whole numbers. `upper` and `lower` [tables][choices]; `apart_upper` and `apart_lower` [blocks][blocks]
// bound table `high` at a choice of one block minus table `low` at a choice of another one, at one input.
struct Ranges {
    std::vector<Wide> upper;
    std::vector<Wide> lower;
    std::vector<Wide> apart_upper;
    std::vector<Wide> apart_lower;
    bool settled = false;  // no tree can tell inputs of the box from each other
};

// Which tables are compared across choices: those that two sides of a question want high and low.
struct Compared {
    std::int32_t high = 0;
    std::int32_t low = 0;
};

class BoxRanges {
public:
    // `wanted`: what a question asks of tables, for the choice of cuts; `base` is what tables have without any leaf.
    BoxRanges(const ChoiceTrees& trees, std::vector<Wide> base, Compared compared, std::vector<Wanted> wanted);

    // Bounds for a box, in two steps: what choices can be apart, then everything. The box is left as it was.
    const Ranges& bound_apart(RangeBox& box);
    const Ranges& bound_all(RangeBox& box);
    // The best cut of the box bounded last (see CutWorth).
    template <typename Share>
    ValuedCut best_cut(const RangeBox& box, const std::vector<double>& excess, const Share& share) {
        return cuts_.best(box, excess, share);
    }

private:
    struct Item {
        std::int32_t node;
        std::int32_t first;
        std::int32_t count;
    };
    std::int32_t follow(const RangeBox& box, std::int32_t node, const std::vector<std::int32_t>& tables);
    void bound_plain(const ChoiceTree& tree, const RangeBox& box);
    void compare_plain(const ChoiceTree& tree, const RangeBox& box);
    void bound_varied(const ChoiceTree& tree, RangeBox& box);
    std::int32_t together(const ChoiceTree& tree, RangeBox& box, std::size_t first);
    std::size_t resolve(const RangeBox& box, std::size_t first);
    void part_classes(std::size_t item);
    std::int32_t arrive(const ChoiceTree& tree, std::size_t first);
    void set_blocks(const ChoiceTree& tree, const std::vector<Wide>& most, const std::vector<Wide>& least);
    void each_alone(const ChoiceTree& tree, const RangeBox& box, std::int32_t node, std::size_t first,
                    std::size_t count);
    void add_tree(const ChoiceTree& tree);
    std::size_t at(std::int32_t table) const { return static_cast<std::size_t>(table) * choices_; }
    std::size_t of_class(std::int32_t table) const { return static_cast<std::size_t>(table) * most_classes_; }

    const ChoiceTrees& trees_;
    std::vector<Wide> base_;
    Compared compared_;
    std::int32_t choices_;
    std::int32_t tables_;
    std::int32_t blocks_;
    Ranges result_;
    CutWorth cuts_;
    std::vector<Item> items_;
    std::vector<std::int32_t> classes_;
    std::vector<Wide> class_upper_;  // [tables][classes] of the tree at hand
    std::vector<Wide> class_lower_;
    std::vector<Wide> class_value_;
    std::vector<Wide> tree_apart_upper_;
    std::vector<Wide> tree_apart_lower_;
    std::vector<Wide> block_most_;
    std::vector<Wide> block_least_;
    std::int32_t arrivals_ = 0;
    std::int32_t most_classes_ = 1;
};

}  // namespace treesens
