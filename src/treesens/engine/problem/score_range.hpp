// The range of the integers in scores: one limit for all searches, which Python reads too (compiler/model/scores.py).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace treesens {

// Of one score: base, slack, and the largest leaf of every tree, added up, stay below 2^kScoreBits in magnitude. Then
// the difference of two scores, and what it differs by from a bound of the same size, is far from overflow.
inline constexpr int kScoreBits = 60;
inline constexpr std::int64_t kMostScore = std::int64_t{1} << kScoreBits;

// True if a number is in the range of a score.
inline bool is_score(std::int64_t value) {
    return value >= -kMostScore && value <= kMostScore;
}

// True if `trees` leaves of these `count` values sum to a score. (Absolute values would fail for INT64_MIN.)
inline bool sum_to_scores(const std::int64_t* value, std::size_t count, std::int64_t trees) {
    const std::int64_t most = kMostScore / std::max<std::int64_t>(1, trees);
    return std::all_of(value, value + count, [most](std::int64_t v) { return v >= -most && v <= most; });
}

}  // namespace treesens
