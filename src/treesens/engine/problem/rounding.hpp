// Proof of pruned nodes: the bound is computed without any rounding error.
//
// All numbers of the prover (entry values, messages, bounds) are integers kept in doubles. IEEE addition, subtraction
// and maximum of integers are exact as long as operands and result stay below 2^53 in magnitude. So rounding happens in
// three places only, and each time upwards, which keeps an upper bound an upper bound:
//
//  1. A row is brought to a grid: every coefficient c becomes ceil(c * 2^shift), with shift such that the sum of the
//     largest coefficients of the row is below 2^kRowBits. Shifts to the left are exact.
//  2. Multipliers are integers k_r >= 0 with sum 2^kMultiplierBits, so a combined value is an exact integer
//     below 2^(kRowBits + kMultiplierBits) in sum.
//  3. A message A / n is rounded up to an integer (round_up_quotient): then the messages of the n factors of a variable
//     sum to at least the unary term instead of exactly to it, and the bound only grows.
//
// What is left is the range: messages are sums of values and could in principle drift. Messages keeps, per factor, a
// bound on the magnitude of everything added into it, and starts again from zero messages if it would pass
// kLargestExact. Sums over factors are taken in int64.
#pragma once

#include <cmath>
#include <cstdint>

namespace treesens {

inline constexpr int kRowBits = 35;
inline constexpr int kMultiplierBits = 11;
inline constexpr std::int32_t kMultiplierUnit = 1 << kMultiplierBits;
inline constexpr double kLargestExact = 4503599627370496.0;  // 2^52

// ceil(value * 2^shift); |value| < 2^63 and a left shift must fit (shift_for sees to it).
inline std::int64_t to_grid(std::int64_t value, int shift) {
    if (shift >= 0) return value * (std::int64_t{1} << shift);
    const int down = -shift;
    if (down >= 63) return value > 0 ? 1 : 0;
    const std::int64_t unit = std::int64_t{1} << down;
    const std::int64_t quotient = value / unit;
    return quotient + (value % unit > 0);
}

// The shift that brings a sum of magnitudes to just below 2^kRowBits.
inline int shift_for(std::int64_t magnitude) {
    int bits = 0;
    while (bits < 63 && (std::int64_t{1} << bits) <= magnitude) ++bits;
    return kRowBits - bits;
}

// An integer >= a / n for |a| < 2^51: the product is within 1/4 of the quotient, adding and subtracting 1.5 * 2^52
// rounds it to the nearest integer, and one is added for both errors.
inline double round_up_quotient(double a, double inverse) {
    constexpr double kShift = 6755399441055744.0;
    const double product = a * inverse;
    const double nearest = (product + kShift) - kShift;
    return nearest + 1.0;
}

}  // namespace treesens
