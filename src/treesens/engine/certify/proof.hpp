// A proof that no point of a problem reaches a level, for a checker that shares nothing with this engine
// (docs/certificates.md): a tree of cuts, and at every leaf multipliers of the rows and integer messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "problem/problem.hpp"

namespace treesens {

struct Proof {
    static constexpr std::int32_t kByClauses = -1;
    static constexpr std::int32_t kByMessages = -2;

    bool complete = false;
    std::string reason;  // why it is not complete

    // Nodes in preorder, the child with cells <= cut first. `variable` is kByClauses or kByMessages at leaves.
    std::vector<std::int32_t> variable;
    std::vector<Cell> cut;

    // Leaves by messages, in the order of the nodes.
    std::vector<std::int32_t> multiplier;  // [leaves][rows of the problem]
    std::vector<std::int32_t> row_shift;   // [leaves][rows]: the grid on which the leaf counts a row (rounding.hpp)
    std::vector<std::int32_t> exponent;    // [leaves]: run values count 2^exponent units of the grid
    std::vector<std::int64_t> message_offset{0};
    std::vector<std::int32_t> message_factor;  // [messages]
    std::vector<std::int32_t> message_variable;
    std::vector<std::int64_t> run_offset{0};  // [messages + 1]; a message is 0 before its first run
    std::vector<Cell> run_start;
    std::vector<std::int64_t> run_value;

    // The groups of every factor.
    std::vector<std::int64_t> factor_offset{0};
    std::vector<std::int32_t> factor_group;

    std::int64_t sweeps = 0;

    // One more leaf by messages, which counts no row yet: the place of its first row.
    std::size_t add_leaf(std::int32_t rows, int exponent_of_runs) {
        exponent.push_back(exponent_of_runs);
        multiplier.resize(multiplier.size() + rows, 0);
        row_shift.resize(multiplier.size(), 0);
        return multiplier.size() - rows;
    }
};

}  // namespace treesens
