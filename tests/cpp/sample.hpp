// A small random pair problem for the unit tests: shared variables 0..2, the copies 3 and 4 of a sensitive feature.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "problem/goal.hpp"
#include "problem/problem.hpp"

namespace sample {

using treesens::Cell;
using treesens::Literal;
using treesens::Problem;

class Builder {
public:
    explicit Builder(std::uint64_t seed) : random_(seed) {}

    Problem build(int trees, std::int64_t bound) {
        Problem p;
        p.size = {4, 3, 5, 4, 4};
        p.feature = {0, 1, 2, 3, 3};
        p.cell_offset.assign(1, 0);
        for (std::int32_t n : p.size) p.cell_offset.push_back(p.cell_offset.back() + n);
        p.allowed.assign(p.cells(), 1);
        p.constraints = p.rows = 2;
        p.bound = {bound, bound};
        p.slack_weight = {1, 1};
        p.group_offset = p.leaf_offset = p.box_offset = p.coefficient_offset = p.clause_offset = {0};
        for (int t = 0; t < trees; ++t) {
            boxes_.clear();
            values_.clear();
            split(p, {}, 3);
            bool affected = false;
            for (const auto& box : boxes_) {
                for (const Literal& l : box) affected = affected || l.variable == 3;
            }
            if (affected) {
                group(p, t, 3, {{0, 1}});
                group(p, t, 4, {{1, -1}});
            } else {
                group(p, t, 3, {{0, 1}, {1, -1}});
            }
        }
        return p;
    }

private:
    void split(const Problem& p, std::vector<Literal> box, int depth) {
        const std::int32_t v = static_cast<std::int32_t>(random_() % 4);
        Cell low = 0;
        Cell high = p.size[v] - 1;
        std::size_t at = box.size();
        for (std::size_t i = 0; i < box.size(); ++i) {
            if (box[i].variable == v) low = box[i].low, high = box[i].high, at = i;
        }
        if (depth == 0 || low == high) {
            boxes_.push_back(box);
            values_.push_back(static_cast<std::int64_t>(random_() % 201) - 100);
            return;
        }
        if (at == box.size()) box.push_back({v, low, high});
        const Cell cut = low + static_cast<Cell>(random_() % (high - low));
        box[at] = {v, low, cut};
        split(p, box, depth - 1);
        box[at] = {v, cut + 1, high};
        split(p, box, depth - 1);
    }

    void group(Problem& p, int tree, std::int32_t sensitive, const std::vector<std::pair<int, int>>& rows) {
        p.group_tree.push_back(tree);
        for (std::size_t b = 0; b < boxes_.size(); ++b) {
            for (Literal l : boxes_[b]) {
                if (l.variable == 3) l.variable = sensitive;
                p.literals.push_back(l);
            }
            p.box_offset.push_back(static_cast<std::int64_t>(p.literals.size()));
            p.leaf_offset.push_back(static_cast<std::int64_t>(p.box_offset.size()) - 1);
            for (const auto& [row, sign] : rows) {
                p.coefficient_row.push_back(row);
                p.coefficient_value.push_back(sign * values_[b]);
            }
            p.coefficient_offset.push_back(static_cast<std::int64_t>(p.coefficient_row.size()));
        }
        p.group_offset.push_back(static_cast<std::int64_t>(p.leaf_offset.size()) - 1);
    }

    std::mt19937_64 random_;
    std::vector<std::vector<Literal>> boxes_;
    std::vector<std::int64_t> values_;
};

inline Problem problem(std::uint64_t seed, int trees = 6, std::int64_t bound = 0) {
    Problem p = Builder(seed).build(trees, bound);
    treesens::validate(p);
    return p;
}

// Calls visit(x) for every assignment.
template <typename Visit>
void for_all(const Problem& p, Visit visit) {
    std::vector<Cell> x(p.variables(), 0);
    for (;;) {
        visit(x);
        std::int32_t v = 0;
        while (v < p.variables() && ++x[v] == p.size[v]) x[v++] = 0;
        if (v == p.variables()) return;
    }
}

// No solution has more: the proved bound, but for points that were passed over for the best one met so far.
template <typename Prover>
std::int64_t upper(const Prover& prover, const treesens::Incumbent& met) {
    const bool reached = met.present() && met.score.hard >= 0;
    return reached ? std::max(prover.proved_upper(), met.score.soft) : prover.proved_upper();
}

}  // namespace sample
