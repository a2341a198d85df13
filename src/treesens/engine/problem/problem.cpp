#include "problem/problem.hpp"

#include <algorithm>
#include <cstdlib>

#include "problem/box_trees.hpp"
#include "problem/checked.hpp"

namespace treesens {

namespace {

constexpr std::int64_t kLargestSum = std::int64_t{1} << 62;

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

void require_offsets(const std::vector<std::int64_t>& offset, std::int64_t end, const char* message) {
    require(!offset.empty() && offset.front() == 0 && offset.back() == end, message);
    require(std::is_sorted(offset.begin(), offset.end()), message);
}

void require_literals(const Problem& p, const std::vector<Literal>& literals, const char* message) {
    for (const Literal& l : literals) {
        require(l.variable >= 0 && l.variable < p.variables(), message);
        require(0 <= l.low && l.low <= l.high && l.high < p.size[l.variable], message);
    }
}

std::int64_t absolute(std::int64_t value) {
    require(value > -kLargestSum && value < kLargestSum, "a coefficient is not below 2^62");
    return value < 0 ? -value : value;
}

std::int64_t add(std::int64_t sum, std::int64_t term) {
    require(term < kLargestSum - sum, "the sum of the coefficients of a row is not below 2^62");
    return sum + term;
}

void validate_boxes(const Problem& p) {
    require(p.leaf_offset.size() == p.coefficient_offset.size(), "leaf_offset must have one entry more than leaves");
    require_offsets(p.leaf_offset, static_cast<std::int64_t>(p.box_offset.size()) - 1,
                    "leaf_offset must run from 0 to the number of boxes");
    require_offsets(p.box_offset, static_cast<std::int64_t>(p.literals.size()),
                    "box_offset must run from 0 to the number of literals");
    require_literals(p, p.literals, "a literal of a box is out of range");
}

void validate_coefficients(const Problem& p) {
    require(static_cast<std::int64_t>(p.coefficient_offset.size()) == p.leaves() + 1,
            "group_offset must run from 0 to the number of leaves, and coefficient_offset must have one entry more");
    require_offsets(p.coefficient_offset, static_cast<std::int64_t>(p.coefficient_value.size()),
                    "coefficient_offset must run from 0 to the number of coefficients");
    for (std::int32_t r : p.coefficient_row) require(r >= 0 && r < p.rows, "the row of a coefficient is out of range");
}

void add_magnitudes_of_leaves(Problem& p) {
    std::vector<std::int64_t> largest(p.rows, 0);
    for (std::int32_t g = 0; g < p.groups(); ++g) {
        std::fill(largest.begin(), largest.end(), 0);
        for (std::int64_t i = p.coefficient_offset[p.group_offset[g]]; i < p.coefficient_offset[p.group_offset[g + 1]];
             ++i) {
            std::int64_t& row = largest[p.coefficient_row[i]];
            row = std::max(row, absolute(p.coefficient_value[i]));
        }
        for (std::int32_t r = 0; r < p.rows; ++r) p.row_magnitude[r] = add(p.row_magnitude[r], largest[r]);
    }
}

void add_magnitudes_of_values(Problem& p, const Forest& forest) {
    for (std::int32_t g = 0; g < p.groups(); ++g) {
        const std::int64_t rows = forest.rows_of(g);
        const std::int64_t* value = forest.value.data() + forest.value_offset[g];
        for (std::int64_t j = 0; j < rows; ++j) {
            std::int64_t largest = 0;
            for (std::int64_t l = 0; l < p.group_offset[g + 1] - p.group_offset[g]; ++l) {
                largest = std::max(largest, absolute(value[l * rows + j]));
            }
            std::int64_t& sum = p.row_magnitude[forest.group_rows[forest.row_offset[g] + j]];
            sum = add(sum, largest);
        }
    }
}

void add_magnitudes_of_cells(Problem& p) {
    if (!p.has_unary) return;
    for (std::int32_t r = 0; r < p.rows; ++r) {
        for (std::int32_t v = 0; v < p.variables(); ++v) {
            std::int64_t most = 0;
            for (Cell k = 0; k < p.size[v]; ++k) most = std::max(most, absolute(p.unary_at(r, v, k)));
            p.row_magnitude[r] = add(p.row_magnitude[r], most);
        }
    }
}

// Everything but leaves.
void validate_frame(const Problem& p) {
    constexpr std::size_t kMost = INT32_MAX;
    require(p.variables() > 0, "there are no variables");
    require(!p.group_offset.empty() && p.group_offset.size() == p.group_tree.size() + 1,
            "group_offset must have one entry more than groups");
    require_offsets(p.group_offset, p.leaves(), "group_offset must run from 0 to the number of leaves");
    require(p.size.size() < kMost && p.group_tree.size() < kMost && static_cast<std::size_t>(p.leaves()) < kMost,
            "variables, groups and leaves must be fewer than 2^31");
    require(p.feature.size() == p.size.size(), "feature must have one entry per variable");
    for (std::int32_t n : p.size) require(n > 0 && n < (1 << 24), "a variable must have between 1 and 2^24 cells");
    require(static_cast<std::int64_t>(p.allowed.size()) == p.cells(), "allowed must have one entry per cell");
    require(narrow<std::int32_t>(p.slack_weight.size()) == p.rows, "slack_weight must have one entry per row");
    require_offsets(p.clause_offset, static_cast<std::int64_t>(p.clause_literals.size()),
                    "clause_offset must run from 0 to the number of clause literals");
    require_literals(p, p.clause_literals, "a literal of a clause is out of range");
    for (std::int64_t h = 0; h < p.hint_count; ++h) {
        for (std::int32_t v = 0; v < p.variables(); ++v) {
            const Cell k = p.hints[h * p.variables() + v];
            require(k >= 0 && k < p.size[v], "a cell of a hint is out of range");
        }
    }
}

}  // namespace

void validate_bounds(const Problem& p, const std::vector<std::int64_t>& bound) {
    require(narrow<std::int32_t>(bound.size()) == p.rows, "one bound per row is needed");
    for (std::int32_t r = 0; r < p.rows; ++r) add(p.row_magnitude[r], absolute(bound[r]));
}

void validate(Problem& p) {
    validate_frame(p);
    validate_coefficients(p);
    if (p.has_boxes()) validate_boxes(p);
    p.row_magnitude.assign(p.rows, 0);
    add_magnitudes_of_leaves(p);
    add_magnitudes_of_cells(p);
    validate_bounds(p, p.bound);
}

void validate(Problem& p, const Forest& forest) {
    validate_frame(p);
    require(forest.root.size() == p.group_tree.size(), "every group needs a tree");
    p.row_magnitude.assign(p.rows, 0);
    add_magnitudes_of_values(p, forest);
    add_magnitudes_of_cells(p);
    validate_bounds(p, p.bound);
}

}  // namespace treesens
