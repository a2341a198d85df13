#include "certify/rounding_messages.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "problem/checked.hpp"

namespace treesens {

namespace {

constexpr std::int64_t kNothing = -(std::int64_t{1} << 60);

std::int64_t nearest_multiple(std::int64_t value, int exponent) {
    if (exponent == 0) return value;
    const std::int64_t half = std::int64_t{1} << (exponent - 1);
    const std::int64_t unit = std::int64_t{1} << exponent;
    const std::int64_t lifted = value + half;
    const std::int64_t quotient = lifted / unit - (lifted % unit < 0 ? 1 : 0);
    return quotient * unit;
}

}  // namespace

RoundedMessages::RoundedMessages(const Problem& problem, Messages& messages, const Domains& domains)
    : problem_(problem), messages_(messages), set_(messages.set()), domains_(domains) {
    const std::size_t segments = set_.segment_start.size();
    open_.assign(segments, 0);
    exact_.assign(segments, 0);
    residual_.assign(problem.cells(), 0);
    factor_.assign(set_.factors(), 0);
    variable_.assign(problem.variables(), 0);
    std::vector<double> read(segments, 0);
    messages.read_messages(read);
    std::int64_t longest = 1;
    for (std::int32_t s = 0; s < set_.slots(); ++s) {
        longest = std::max(longest, set_.slot_literal[s + 1] - set_.slot_literal[s]);
        bool first = true;
        std::int64_t base = 0;
        for (std::int64_t g = set_.slot_segment[s]; g < set_.slot_segment[s + 1]; ++g) {
            open_[g] = domains.any(set_.slot_variable[s], set_.segment_start[g], set_.segment_end[g]);
            if (!open(g)) continue;
            const std::int64_t value = truncated<std::int64_t>(read[g]);
            if (first) base = value;
            first = false;
            exact_[g] = value - base;
        }
        // A factor whose entries do not part over this variable needs no message about it.
        if (messages.alive(set_.slot_factor[s]) < 2) {
            for (std::int64_t g = set_.slot_segment[s]; g < set_.slot_segment[s + 1]; ++g) exact_[g] = 0;
        }
    }
    literal_.assign(longest, 0);
    constant_ = messages.constant();
    rounded_ = exact_;
}

std::int64_t RoundedMessages::best_of_factor(std::int32_t t) {
    const std::int64_t first = set_.entry_offset[t];
    std::vector<std::int64_t> value(messages_.alive(t));
    if (value.empty()) return kNothing;
    for (std::int32_t i = 0; i < messages_.alive(t); ++i) {
        value[i] = truncated<std::int64_t>(messages_.value(first + i));
    }
    for (std::int32_t s = set_.slot_offset[t]; s < set_.slot_offset[t + 1]; ++s) {
        const std::int64_t begin = set_.slot_segment[s];
        const std::int64_t end = set_.slot_segment[s + 1];
        if (std::all_of(rounded_.begin() + begin, rounded_.begin() + end, [](std::int64_t m) { return m == 0; }))
            continue;
        const std::int64_t literals = set_.slot_literal[s + 1] - set_.slot_literal[s];
        for (std::int64_t d = 0; d < literals; ++d) {
            const std::int64_t at = set_.slot_literal[s] + d;
            literal_[d] = kNothing;
            for (std::int64_t g = begin + set_.literal_low[at]; g <= begin + set_.literal_high[at]; ++g) {
                if (open(g)) literal_[d] = std::max(literal_[d], rounded_[g]);
            }
        }
        const std::uint16_t* column = set_.column.data() + set_.slot_column[s];
        for (std::int32_t i = 0; i < messages_.alive(t); ++i) {
            value[i] += literal_[column[messages_.entry(first + i) - first]];
        }
    }
    return *std::max_element(value.begin(), value.end());
}

std::int64_t RoundedMessages::best_of_variable(std::int32_t v) const {
    std::int64_t best = kNothing;
    for (Cell k = 0; k < problem_.size[v]; ++k) {
        if (domains_.has(v, k)) best = std::max(best, residual_[problem_.cell_offset[v] + k]);
    }
    return best;
}

void RoundedMessages::add_to_residual(std::int32_t slot, std::int64_t sign) {
    std::int64_t* residual = residual_.data() + problem_.cell_offset[set_.slot_variable[slot]];
    for (std::int64_t g = set_.slot_segment[slot]; g < set_.slot_segment[slot + 1]; ++g) {
        if (rounded_[g] == 0) continue;
        for (Cell k = set_.segment_start[g]; k <= set_.segment_end[g]; ++k) residual[k] += sign * rounded_[g];
    }
}

void RoundedMessages::evaluate() {
    for (std::int32_t c = 0; c < problem_.cells(); ++c) residual_[c] = truncated<std::int64_t>(messages_.unary(c));
    for (std::int32_t s = 0; s < set_.slots(); ++s) add_to_residual(s, -1);
    total_ = 0;
    for (std::int32_t t = 0; t < set_.factors(); ++t) {
        factor_[t] = best_of_factor(t);
        if (factor_[t] == kNothing) {
            total_ = kNothing;
            return;
        }
        total_ += factor_[t];
    }
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        variable_[v] = best_of_variable(v);
        total_ += variable_[v];
    }
}

bool RoundedMessages::round() {
    exponent_ = 0;
    rounded_ = exact_;
    evaluate();
    if (bound() >= 0) return false;
    int low = 0;
    int high = 1;
    while ((std::int64_t{1} << high) < -bound() && high < 55) ++high;
    // Coarser units are not always weaker, but nearly: the largest one that a bisection finds will do.
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        for (std::size_t g = 0; g < exact_.size(); ++g) rounded_[g] = nearest_multiple(exact_[g], middle);
        evaluate();
        if (bound() < 0)
            low = middle;
        else
            high = middle - 1;
    }
    exponent_ = low;
    for (std::size_t g = 0; g < exact_.size(); ++g) rounded_[g] = nearest_multiple(exact_[g], low);
    evaluate();
    return bound() < 0;
}

std::int64_t RoundedMessages::size_of(std::int32_t slot) const {
    std::int64_t most = 0;
    for (std::int64_t g = set_.slot_segment[slot]; g < set_.slot_segment[slot + 1]; ++g) {
        if (open(g)) most = std::max(most, std::abs(rounded_[g]));
    }
    return most;
}

bool RoundedMessages::try_without(std::int32_t slot) {
    const std::int32_t t = set_.slot_factor[slot];
    const std::int32_t v = set_.slot_variable[slot];
    const auto begin = rounded_.begin() + set_.slot_segment[slot];
    const auto end = rounded_.begin() + set_.slot_segment[slot + 1];
    const std::vector<std::int64_t> kept(begin, end);
    add_to_residual(slot, 1);
    std::fill(begin, end, 0);
    const std::int64_t factor = best_of_factor(t);
    const std::int64_t variable = best_of_variable(v);
    const std::int64_t total = total_ - factor_[t] - variable_[v] + factor + variable;
    if (total + constant_ < 0) {
        total_ = total;
        factor_[t] = factor;
        variable_[v] = variable;
        return true;
    }
    std::copy(kept.begin(), kept.end(), begin);
    add_to_residual(slot, -1);
    return false;
}

void RoundedMessages::drop() {
    if (total_ == kNothing) return;
    std::vector<std::pair<std::int64_t, std::int32_t>> order;
    for (std::int32_t s = 0; s < set_.slots(); ++s) {
        if (const std::int64_t size = size_of(s); size > 0) order.emplace_back(size, s);
    }
    std::sort(order.begin(), order.end());
    int failures = 0;
    for (const auto& [size, slot] : order) {
        failures = try_without(slot) ? 0 : failures + 1;
        if (failures > 20) return;
    }
}

void RoundedMessages::write(std::int32_t first_factor, Proof& out) const {
    for (std::int32_t s = 0; s < set_.slots(); ++s) {
        if (size_of(s) == 0) continue;
        std::int64_t last = 0;
        for (std::int64_t g = set_.slot_segment[s]; g < set_.slot_segment[s + 1]; ++g) {
            if (!open(g) || rounded_[g] == last) continue;
            last = rounded_[g];
            out.run_start.push_back(set_.segment_start[g]);
            out.run_value.push_back(last / (std::int64_t{1} << exponent_));
        }
        out.run_offset.push_back(static_cast<std::int64_t>(out.run_start.size()));
        out.message_factor.push_back(first_factor + set_.slot_factor[s]);
        out.message_variable.push_back(set_.slot_variable[s]);
    }
    out.message_offset.push_back(static_cast<std::int64_t>(out.message_factor.size()));
}

}  // namespace treesens
