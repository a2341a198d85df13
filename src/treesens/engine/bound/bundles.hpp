// The grouping of trees into factors.
//
// A factor of several trees has an entry for every combination of leaves that can be reached together. The bound then
// adds fewer maxima, each over joint choices of its trees, and is tighter; a sweep touches more entries. Trees that
// split on the same features have few combinations.
#pragma once

#include <cstdint>
#include <vector>

#include "bound/join.hpp"
#include "problem/box_trees.hpp"

namespace treesens {

// The boxes of the entries of a bundle of trees, as far as the choice of the next tree needs them.
//
// How many entries a bundle has with one tree more is the number of pairs of an entry and a leaf whose boxes meet. All
// entries go down the tree together: at a cut an entry goes to one side, or to both, and is then one more. Clauses and
// equal values are left out of account, so this is the number that a Join has, or more.
class BundleBoxes {
public:
    BundleBoxes(const Problem& p, const Forest& f);

    // Begins anew: one box, which is everything.
    void clear();
    std::int64_t size() const { return size_; }
    // The number of boxes with this group as well, or some number above `most`.
    std::int64_t size_with(std::int32_t group, std::int64_t most);
    void add(std::int32_t group);

private:
    struct Range {
        Cell low;
        Cell high;
    };

    void widen_scope(std::int32_t node);
    void divide(std::int32_t node, std::size_t first, std::size_t last, bool to_left);
    void count(std::int32_t node, std::size_t first, std::size_t last, std::int64_t most);
    void write(std::int32_t node, std::size_t first, std::size_t last);
    void write_boxes(std::size_t first, std::size_t last);

    const Problem& p_;
    const Forest& f_;
    std::int64_t size_ = 1;
    std::vector<std::int32_t> column_;        // [variables]: where its ranges are; -1: every box has all of its cells
    std::vector<std::int32_t> scope_;         // [columns]: the variable
    std::vector<std::vector<Range>> ranges_;  // [columns][boxes]
    std::vector<std::vector<Range>> next_;    // [columns][boxes], while a group is added
    std::vector<Range> path_;                 // [variables]: of the path in the tree
    std::vector<std::int32_t> list_;          // the boxes that have come to a node, for all nodes of the path
    std::int64_t counted_ = 0;
};

// The groups of every factor: all copies of a tree, or with `most` above 0 those of several trees as long as they have
// no more than `most` entries together.
std::vector<std::vector<std::int32_t>> bundle_trees(const Problem& p, const Forest& f, Join& join, std::int64_t most);

}  // namespace treesens
