// The boxes of one group's leaves: those in the problem, or the paths of its tree if there are none.
//
// In a deep forest the boxes of all leaves take more memory than everything else. The trees give the same boxes, one
// group at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/box_trees.hpp"
#include "problem/problem.hpp"

namespace treesens {

class LeafBoxes {
public:
    // Both must outlive it.
    LeafBoxes(const Problem& problem, const Forest& forest)
        : problem_(problem), forest_(forest), low_(problem.variables(), 0), high_(problem.size) {
        for (Cell& h : high_) --h;
    }

    // Forgets the previous group.
    void load(std::int32_t group);
    // Calls visit(first, last) with the literals of every box of a leaf of the group, numbered as in the problem.
    template <typename Visit>
    void of(std::int64_t leaf, Visit visit) const {
        for (std::int64_t b = box_[leaf - first_leaf_]; b < box_[leaf - first_leaf_ + 1]; ++b) {
            visit(literal_ + offset_[b], literal_ + offset_[b + 1]);
        }
    }
    // True if two leaves of loaded groups have the same boxes, in the same order.
    static bool same(const LeafBoxes& one, std::int64_t leaf, const LeafBoxes& other, std::int64_t its);

private:
    struct Way {
        std::int64_t first;
        std::int64_t last;
        std::int64_t leaf;
    };

    void follow(std::int32_t node);

    const Problem& problem_;
    const Forest& forest_;
    std::int64_t first_leaf_ = 0;
    std::vector<std::int64_t> box_;     // [leaves of the group + 1]
    std::vector<std::int64_t> offset_;  // [boxes of the group + 1]
    const Literal* literal_ = nullptr;
    std::vector<Literal> made_;
    std::vector<Literal> walked_;
    std::vector<Way> ways_;
    std::vector<std::int32_t> narrowed_;  // variables with a smaller range than their domain, in order of the path
    std::vector<Cell> low_;
    std::vector<Cell> high_;
};

}  // namespace treesens
