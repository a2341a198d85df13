// Conversions that refuse unrepresentable values, and the error for an internal contradiction.
//
// A silent narrowing cast once turned multipliers into -2^31 and gave a wrong bound, and the node with the optimum was
// pruned. So: no narrowing cast without a check, except in a few accessors whose range validate() has checked.
#pragma once

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace treesens {

// The engine contradicts itself. None of its proofs is valid: the answer is "open, reason internal".
struct InternalError : std::logic_error {
    explicit InternalError(const std::string& what) : std::logic_error(what) {}
};

inline void ensure(bool condition, const char* what) {
    if (!condition) throw InternalError(what);
}

// The same integer in another type.
template <typename To, typename From>
constexpr To narrow(From value) {
    static_assert(std::is_integral_v<To> && std::is_integral_v<From>, "floats go through truncated()");
    const To result = static_cast<To>(value);
    if (static_cast<From>(result) != value || (result < To{}) != (value < From{})) {
        throw InternalError("a number does not fit the type that holds it");
    }
    return result;
}

// The integer part of a float.
template <typename To>
To truncated(double value) {
    static_assert(std::is_integral_v<To> && std::is_signed_v<To>, "signed integers only");
    const double limit = std::ldexp(1.0, std::numeric_limits<To>::digits);
    if (!(value > -limit && value < limit)) throw InternalError("a number does not fit the type that holds it");
    return static_cast<To>(value);
}

}  // namespace treesens
