// The leaves of one tree, or of all copies of a tree taken together: simultaneous traversal.
//
// Copies branch only on variables that they do not share. Every combination of leaves that can be reached together is
// an entry: a box, and the sums of its rows.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "problem/box_trees.hpp"
#include "problem/limits.hpp"
#include "problem/problem.hpp"

namespace treesens {

// Rows of the prover: each is a sum of rows of the problem.
using RowSum = std::vector<std::int32_t>;

class Join {
public:
    struct Entry {
        std::int64_t first_literal;
        std::int64_t last_literal;
        std::int64_t first_value;
    };

    // With `collapse`, two sides of a cut that are one entry each, with equal values, are merged.
    Join(const Problem& p, const Forest& f, const std::vector<RowSum>& rows, bool collapse);

    std::vector<Entry> entries;
    std::vector<Literal> literals;
    std::vector<std::int64_t> values;  // [entries][rows], exact

    // From now on entries with at most `least` in the first row are dropped; left_out() is true if there were any.
    void leave_out(std::int64_t least);
    bool left_out() const { return left_out_; }
    bool collapses() const { return collapse_; }
    // From now on `run` throws SetupStopped soon after the limits of `control`, if there is one, are reached.
    void stop_by(Control* control) { control_ = control; }
    // From now on a first row within `slop` of zero counts as `slop`: rounded upwards, and equal.
    void even_out(std::int64_t slop) { slop_ = slop; }
    // False if more than `limit` entries would be needed, or too many steps: dropped and merged entries do not count,
    // so that their number is not limited.
    bool run(const std::vector<std::int32_t>& groups, std::int64_t limit);
    // The number of entries it would make, or `limit` + 1 if that is exceeded. The entries have no boxes.
    std::int64_t count(const std::vector<std::int32_t>& groups, std::int64_t limit);

private:
    struct Place {
        std::int32_t node;
        std::int32_t depth;
    };
    // Clauses of two literals that are rays: `own` of one variable, and one of `other`. A ray up holds from its bound
    // on, one down up to it. Sorted by own bounds; best[i] is the bound of `other` that is missed first, of all clauses
    // whose own ray is missed if that of clause i is. A relation between two features is hundreds of these.
    struct Rays {
        std::int32_t other;
        bool up;
        bool other_up;
        std::vector<std::pair<Cell, Cell>> bounds;  // own, other
        std::vector<Cell> best;
    };

    bool walk(const std::vector<std::int32_t>& groups, std::int64_t limit, bool writes_boxes);
    bool visit(std::vector<Place>& places);
    bool refuted(std::int32_t v) const;
    bool misses(const Rays& rays, std::int32_t v) const;
    void add_pair(const Literal& own, const Literal& other);
    void sort_rays();
    bool emit(const std::vector<Place>& places);
    void write_box(Entry& e);
    void merge(std::size_t first);
    std::int64_t fill_most(std::int32_t group, std::int32_t node);
    std::int64_t leaf_sum(std::int32_t group, std::int32_t leaf) const;
    bool hopeless(const std::vector<Place>& places) const;

    const Problem& p_;
    const Forest& f_;
    const std::vector<RowSum>& rows_;
    const bool collapse_;
    std::vector<std::vector<std::int32_t>> mixes_;
    std::vector<std::int32_t> groups_;
    std::vector<Cell> low_;
    std::vector<Cell> high_;
    std::vector<std::vector<std::pair<Literal, Literal>>>
        pairs_;                            // [variables]: clauses of two literals that are no rays, own literal first
    std::vector<std::vector<Rays>> rays_;  // [variables]
    Control* control_ = nullptr;
    bool filter_ = true;
    bool writes_boxes_ = true;
    std::vector<std::int32_t> narrowed_;  // variables with a smaller range than their domain, in order of the path
    std::int64_t limit_ = 0;
    std::int64_t steps_ = 0;
    bool leaves_out_ = false;
    bool left_out_ = false;
    std::int64_t least_ = 0;
    std::int64_t slop_ = 0;
    std::vector<std::int64_t> most_;  // [nodes of the forest]: the largest first row below, of the groups at work
};

// The groups of every tree, by the number of the tree.
std::map<std::int32_t, std::vector<std::int32_t>> groups_by_tree(const Problem& p);

}  // namespace treesens
