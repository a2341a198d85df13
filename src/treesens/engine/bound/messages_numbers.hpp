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

// Lines of a table over runs of n segments or cells: one for each of 1, 2, 4, .. of them, as far as there are runs so
// long, and in it a place for each run, by where it begins.
inline std::int64_t run_lines(std::int64_t n) {
    std::int64_t lines = 1;
    while ((std::int64_t{1} << lines) <= n) ++lines;
    return lines;
}

}  // namespace treesens
