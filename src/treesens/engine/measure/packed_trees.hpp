// Trees packed for many inputs at a time: one comparison at every node, and no branch that could be guessed wrong.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/choice_trees.hpp"

namespace treesens {

// A tree that is packed.
struct PackedWay {
    std::int32_t root = 0;
    std::int32_t depth = 0;
    bool sets = false;  // some node asks for a set of categories
};

// A packed tree in two parts: ways to the first node about a varied feature, and from there on.
struct Parted {
    PackedWay until;
    PackedWay rest;
};

// Where inputs have come to: the number of a leaf, or, below 0, a node about a varied feature to go on from.
using Arrival = std::int32_t;

class PackedTrees {
public:
    explicit PackedTrees(const ChoiceTrees& trees) : trees_(trees) {}

    // Packs the tree below a node.
    PackedWay pack(std::int32_t root);
    Parted part(const PackedWay& whole);
    // Where every input ends: `cells` are the rows with the numbers `rows`, of `width` cells each. They begin at
    // the root, or go on from where they have come to.
    void descend(const PackedWay& way, const Cell* cells, std::size_t width, const std::vector<std::int32_t>& rows,
                 std::vector<Arrival>& found) const;
    void go_on(const PackedWay& way, const Cell* cells, std::size_t width, const std::vector<std::int32_t>& rows,
               const std::vector<Arrival>& from, std::vector<Arrival>& found) const;

private:
    // An input goes on to below[1] if its cell lies in first .. first + span - 1. A leaf leads back to itself, and
    // `first` is its number. With a span of kSet the cell is looked up from `first` on.
    struct Step {
        std::uint32_t first;
        std::uint32_t span;
        std::int32_t column;
        std::int32_t below[2];
    };
    static constexpr std::uint32_t kSet = UINT32_MAX;

    std::int32_t copy(std::int32_t number, std::int32_t depth, PackedWay& way);
    void copy_test(const ChoiceNode& node, Step& step);
    std::int32_t stop_early(std::int32_t step, std::int32_t depth, Parted& parted);
    std::int32_t height(std::int32_t step) const;
    template <bool kSets>
    void descend_block(const PackedWay& way, const Cell* const* inputs, std::int32_t* at) const;
    template <typename Start>
    void descend_all(const PackedWay& way, const Cell* cells, std::size_t width, const std::vector<std::int32_t>& rows,
                     const Start& start, std::vector<Arrival>& found) const;

    const ChoiceTrees& trees_;
    std::vector<Step> steps_;
    std::vector<std::uint8_t> goes_right_;  // per cell, of every set in turn
};

}  // namespace treesens
