// Numbers that the files of the messages share.
#pragma once

#include <cstdint>
#include <limits>

#include "problem/rounding.hpp"

namespace treesens {

constexpr double kNone = -std::numeric_limits<double>::infinity();
constexpr std::int64_t kEmpty = -(std::int64_t{1} << 61);  // the bound of an empty node
constexpr double kRange = kLargestExact / 4;

inline std::int64_t whole(double value) {
    return static_cast<std::int64_t>(value);
}

}  // namespace treesens
