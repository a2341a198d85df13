// Messages as short integers: rounded to multiples of a power of two as large as the slack of the bound allows, and
// left out if the bound stays below zero without them.
//
// For any messages m whatever,
//
//     L(x) <= sum_T max_e [ value(e) + sum_v max_{k in box of e} m_{T,v}(k) ]
//             + sum_v max_k [ unary_v(k) - sum_T m_{T,v}(k) ] + constant,
//
// so rounding can weaken a bound and never make it false.
#pragma once

#include <cstdint>
#include <vector>

#include "bound/messages.hpp"
#include "certify/proof.hpp"
#include "problem/domains.hpp"

namespace treesens {

class RoundedMessages {
public:
    RoundedMessages(const Problem& problem, Messages& messages, const Domains& domains);

    // The bound of the messages as they are now.
    std::int64_t bound() const { return total_ + constant_; }
    // Takes the coarsest unit at which the bound is below zero; false when it is not below zero at any.
    bool round();
    // Sets messages to zero one by one, small ones first, as long as the bound stays below zero.
    void drop();
    // Appends the messages that are not zero; factors are numbered from `first_factor` on.
    void write(std::int32_t first_factor, Proof& out) const;
    int exponent() const { return exponent_; }

private:
    void evaluate();
    std::int64_t best_of_factor(std::int32_t t);
    std::int64_t best_of_variable(std::int32_t v) const;
    bool open(std::int64_t segment) const { return open_[segment] != 0; }
    std::int64_t size_of(std::int32_t slot) const;
    void add_to_residual(std::int32_t slot, std::int64_t sign);
    bool try_without(std::int32_t slot);

    const Problem& problem_;
    const Messages& messages_;
    const FactorSet& set_;
    const Domains& domains_;
    std::vector<std::uint8_t> open_;      // [segments]: holds a cell of the domain
    std::vector<std::int64_t> exact_;     // [segments]: relative to the first open segment of the slot
    std::vector<std::int64_t> rounded_;   // [segments]
    std::vector<std::int64_t> residual_;  // [cells]: unary minus the messages
    std::vector<std::int64_t> factor_;    // [factors]: the best entry
    std::vector<std::int64_t> variable_;  // [variables]: the best residual
    std::vector<std::int64_t> literal_;   // workspace
    std::int64_t constant_ = 0;
    std::int64_t total_ = 0;
    int exponent_ = 0;
};

}  // namespace treesens
