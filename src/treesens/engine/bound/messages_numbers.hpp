// Numbers shared by the files of the messages.
#pragma once

#include <algorithm>
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

// A table over the runs of n segments or cells: one line per run length 1, 2, 4, .. and in it one position per run, by
// its start. Any run is covered by two positions, so that no loop is as long as a run: mispredicted ends of short loops
// took half of an update.
inline std::int64_t run_lines(std::int64_t n) {
    std::int64_t lines = 1;
    while ((std::int64_t{1} << lines) <= n) ++lines;
    return lines;
}

// From the first line, the maximum of every run.
inline void gather_runs(double* table, std::int64_t n) {
    double* line = table;
    for (std::int64_t half = 1; 2 * half <= n; half *= 2, line += n) {
        for (std::int64_t g = 0; g + 2 * half <= n; ++g) line[n + g] = std::max(line[g], line[g + half]);
    }
}

// To the first line, the maximum of all runs that a segment is in.
inline void spread_runs(double* table, std::int64_t n) {
    for (std::int64_t l = run_lines(n) - 1; l > 0; --l) {
        const std::int64_t half = std::int64_t{1} << (l - 1);
        double* line = table + (l - 1) * n;
        for (std::int64_t g = 0; g + 2 * half <= n; ++g) {
            line[g] = std::max(line[g], line[n + g]);
            line[g + half] = std::max(line[g + half], line[n + g]);
        }
    }
}

}  // namespace treesens
