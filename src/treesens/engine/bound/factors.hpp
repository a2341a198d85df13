// Factors: a tree, or all copies of a tree taken together, as a list of entries (a box and one value per row).
//
// Copies are traversed simultaneously, so they branch only on variables that they do not share
// (docs/engine.md; UnAff and Aff of the paper, taken to their end). In the collapsed set (bound_level D) rows are added
// up first, and every part of a factor in which the sum is constant becomes one entry; whole trees that cancel
// disappear.
#pragma once

#include <cstdint>
#include <vector>

#include "bound/join.hpp"
#include "problem/goal.hpp"
#include "problem/problem.hpp"

namespace treesens {

struct FactorSet {
    std::vector<RowSum> rows;
    std::vector<int> shift;  // [rows]: the grid of the row, see rounding.hpp
    bool collapsed = false;

    std::int32_t factors() const { return static_cast<std::int32_t>(entry_offset.size()) - 1; }
    std::int64_t entries() const { return entry_offset.back(); }
    std::int32_t slots() const { return static_cast<std::int32_t>(slot_variable.size()); }

    std::vector<std::int64_t> entry_offset;  // [factors + 1]
    std::vector<std::vector<std::int32_t>>
        factor_groups;                      // [factors]: the groups of the problem that a factor is made of
    std::vector<std::int32_t> slot_offset;  // [factors + 1]: the scope of a factor, one slot per variable
    // Slots. The cells of the variable fall into segments that no entry of the factor tells apart; the entries use few
    // different ranges of segments ("literals"). `column` holds the literal of every entry of the factor.
    std::vector<std::int32_t> slot_variable;
    std::vector<std::int32_t> slot_factor;
    std::vector<std::int64_t> slot_segment;   // [slots + 1]
    std::vector<std::int64_t> slot_literal;   // [slots + 1]
    std::vector<std::int64_t> slot_column;    // [slots]
    std::vector<Cell> segment_start;          // [segments]; the last segment ends with the domain
    std::vector<Cell> segment_end;            // [segments], inclusive
    std::vector<std::uint8_t> segment_level;  // [segments]: floor(log2(cells)), the line of the sparse table to ask
    std::vector<std::int32_t> literal_low;    // [literals], segments counted from the slot's first
    std::vector<std::int32_t> literal_high;
    // The two places of a literal in a table over runs of 1, 2, 4, .. segments of its slot (messages_numbers.hpp).
    std::vector<std::int32_t> literal_first;
    std::vector<std::int32_t> literal_second;
    std::vector<std::uint16_t> column;
    std::vector<std::int32_t> use_offset;    // [variables + 1]
    std::vector<std::int32_t> use_slot;      // slots of a variable
    std::vector<std::vector<double>> value;  // [rows][entries], grid integers
    // The grid value of whole trees that are constant, per row.
    std::vector<std::int64_t> constant;
    std::int64_t bytes() const;
};

// Limits one joint factor: above it the copies are separate factors (weaker, never wrong).
inline constexpr std::int64_t kLargestFactor = 20'000;

// With `together` above 0, trees share a factor of at most that many entries (bundles.hpp).
FactorSet build_factors(const Problem& problem, const Forest& forest, const std::vector<RowSum>& rows,
                        const std::vector<int>& shift, bool collapse, MemoryBudget& budget, std::int64_t together = 0,
                        Control* control = nullptr);

// Row sums in which every group that appears once in its tree cancels: the D bound_levels. At most one: of several
// pairs of rows about two points the one that can be least above what it needs.
std::vector<RowSum> cancelling_rows(const Problem& problem, const Forest& forest, const Goal& goal);
// Rows over other trees than those of a sum of rows, or without trees (likelihoods, costs; also an objective):
// separate, so that the trees of the sum stay small.
std::vector<std::int32_t> rows_beside(const Problem& problem, const Forest& forest, const Goal& goal,
                                      const RowSum& sum);
// True if an objective is over other trees than all other rows, or has none (a likelihood, costs).
bool is_objective_apart(const Problem& problem, const Forest& forest, const Goal& goal);
// True if every tree with a single copy cancels in the sum, and some tree does not.
bool cancel(const Problem& problem, const Forest& forest, const RowSum& rows);
// Rows rounded for the engine cancel except for some units: the maximum of these at a shared leaf.
std::int64_t rounding_slop(const Problem& problem, const Forest& forest, const RowSum& rows);

}  // namespace treesens
