// The problem of the native engine: a frozen, validated copy of the arrays of SearchProblem (problem.py documents
// shapes).
//
// Find one cell per variable such that every row holds:
//     slack_r(x) = sum over groups of coefficient[r, leaf of x] + sum over variables of unary[r, v, x_v] - bound[r] >=
//     0
// and every clause (a disjunction of "x_v in [low, high]") is satisfied.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ensemble/cell_split.hpp"

namespace treesens {

// Raised if max_bytes would be exceeded; becomes the answer "open, reason memory" and never leaves the engine.
struct MemoryLimit : std::runtime_error {
    MemoryLimit() : std::runtime_error("the memory limit of the search is reached") {}
};

// Counts the large arrays before they are allocated; provers in several threads share one.
class MemoryBudget {
public:
    explicit MemoryBudget(std::int64_t limit = -1) : limit_(limit) {}
    // A share of another budget with a shorter lifetime: its charges are returned at its end.
    struct Share {};
    MemoryBudget(MemoryBudget& whole, Share) : limit_(-1), whole_(&whole) {}
    ~MemoryBudget() {
        if (whole_ != nullptr) whole_->release(used_.load(std::memory_order_relaxed));
    }
    MemoryBudget(const MemoryBudget&) = delete;
    MemoryBudget& operator=(const MemoryBudget&) = delete;

    void charge(std::int64_t bytes) {
        if (whole_ != nullptr) whole_->charge(bytes);
        const std::int64_t used = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
        if (limit_ >= 0 && used > limit_) {
            release(bytes);
            throw MemoryLimit();
        }
        raise_peak(used);
    }
    // The same, but returns false instead of throwing.
    bool try_charge(std::int64_t bytes) {
        if (room() < bytes) return false;
        charge_anyway(bytes);
        return true;
    }
    // For operations that must not fail; the caller keeps them small.
    void charge_anyway(std::int64_t bytes) {
        if (whole_ != nullptr) whole_->charge_anyway(bytes);
        const std::int64_t used = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
        raise_peak(used);
    }
    void release(std::int64_t bytes) {
        if (whole_ != nullptr) whole_->release(bytes);
        used_.fetch_sub(bytes, std::memory_order_relaxed);
    }
    std::int64_t used() const { return used_.load(std::memory_order_relaxed); }
    std::int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
    std::int64_t room() const {
        if (whole_ != nullptr) return whole_->room();
        return limit_ < 0 ? INT64_MAX : limit_ - used_.load(std::memory_order_relaxed);
    }

private:
    void raise_peak(std::int64_t used) {
        std::int64_t peak = peak_.load(std::memory_order_relaxed);
        while (used > peak && !peak_.compare_exchange_weak(peak, used, std::memory_order_relaxed)) {
        }
    }

    std::int64_t limit_;
    MemoryBudget* whole_ = nullptr;
    std::atomic<std::int64_t> used_{0};
    std::atomic<std::int64_t> peak_{0};
};

struct Literal {
    std::int32_t variable;
    Cell low;
    Cell high;
};

struct Forest;

struct Problem {
    // Variables. Cells of variable v are numbered 0 .. size[v]-1; cell k of v has the number cell_offset[v] + k
    // overall.
    std::vector<std::int32_t> size;
    std::vector<std::int32_t> feature;  // copies of one feature for several points have the same number
    std::vector<std::int32_t> cell_offset;
    std::vector<std::uint8_t> allowed;  // [cells]

    // Groups: exactly one leaf each. A leaf is a union of boxes; the boxes of a group partition the space.
    std::vector<std::int32_t> group_tree;
    std::vector<std::int64_t> group_offset;  // [groups + 1], into leaves
    // Empty if the trees are known, which define the same boxes (leaf_boxes.hpp).
    std::vector<std::int64_t> leaf_offset;  // [leaves + 1], into boxes
    std::vector<std::int64_t> box_offset;   // [boxes + 1], into literals
    std::vector<Literal> literals;

    // Rows: the constraints, and after them the objective if there is one.
    std::int32_t rows = 0;
    std::int32_t constraints = 0;
    bool has_objective = false;
    // The coefficients are freed as soon as a Forest holds their values.
    std::vector<std::int64_t> coefficient_offset;  // [leaves + 1]
    std::vector<std::int32_t> coefficient_row;
    std::vector<std::int64_t> coefficient_value;
    std::vector<std::int64_t> bound;         // [rows]; 0 for the objective
    std::vector<std::uint8_t> slack_weight;  // [rows]; 1: counts in the minimum slack, 0: must hold as it is
    std::vector<std::int64_t> unary;         // [rows][cells], only when has_unary
    bool has_unary = false;

    std::vector<std::int64_t> clause_offset;
    std::vector<Literal> clause_literals;

    std::vector<Cell> hints;  // [hint_count][variables]
    std::int64_t hint_count = 0;

    std::int32_t variables() const { return static_cast<std::int32_t>(size.size()); }
    std::int32_t cells() const { return cell_offset.back(); }
    std::int32_t groups() const { return static_cast<std::int32_t>(group_tree.size()); }
    std::int64_t leaves() const { return group_offset.back(); }
    bool has_boxes() const { return !leaf_offset.empty(); }
    std::int64_t clauses() const { return static_cast<std::int64_t>(clause_offset.size()) - 1; }
    std::int64_t unary_at(std::int32_t row, std::int32_t variable, Cell cell) const {
        return has_unary ? unary[static_cast<std::size_t>(row) * cells() + cell_offset[variable] + cell] : 0;
    }
    // The largest absolute value that row r can take without its bound: sum of the largest |terms|.
    std::int64_t magnitude(std::int32_t row) const { return row_magnitude[row]; }

    std::vector<std::int64_t> row_magnitude;  // filled by validate
};

// Checks every index, range and sum; throws std::invalid_argument with a sentence. Fills row_magnitude.
void validate(Problem& problem);
// The same for a problem whose leaves come from a forest made of checked trees.
void validate(Problem& problem, const Forest& forest);
// The sums and the new bounds must stay below 2^62 together.
void validate_bounds(const Problem& problem, const std::vector<std::int64_t>& bound);

}  // namespace treesens
