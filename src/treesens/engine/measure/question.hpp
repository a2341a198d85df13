// Which inputs are concerned: those for which some choice makes one side high, and another choice the other side.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/box_ranges.hpp"

namespace treesens {

// sign * (score of a table) is at least `certain` (then it surely holds), or below `possible` (then it surely does
// not). The two differ where scores are rounded.
struct ShareRow {
    std::int32_t table;
    int sign;
    Wide possible;
    Wide certain;
};

// There are choices s and s' with all rows of `first` at s, all rows of `second` at s', and, if `apart_counts`,
// (table compared.high at s) - (table compared.low at s') at least a bound. The bound `apart_possible` holds in any
// case for pairs that count. With `allowed` [choices][choices] only these pairs of choices are meant.
struct ShareQuestion {
    std::vector<ShareRow> first;
    std::vector<ShareRow> second;
    Compared compared;
    bool apart_counts = false;
    Wide apart_possible = 0;
    Wide apart_certain = 0;
    std::vector<std::uint8_t> allowed;
};

enum class ShareAnswer : std::uint8_t { kNone = 0, kOpen = 1, kAll = 2 };

// What the tables are wanted to do, for the choice of cuts: the rows, and last that choices are apart.
std::vector<Wanted> wanted_by(const ShareQuestion& question);
// Whether no two choices can be far enough apart.
bool never_apart(const ShareQuestion& question, const Ranges& ranges);
// By how much bounds lie above what would exclude a box, in the order of `wanted_by`; at least 1.
void excess_of(const ShareQuestion& question, std::int32_t choices, const Ranges& ranges, std::vector<double>& excess);
// What ranges say about every input that they hold for.
ShareAnswer answer_of(const ShareQuestion& question, const ChoiceTrees& trees, const Ranges& ranges);
// The answer for one input with its scores [tables][choices]; open only where rounded scores leave it open.
ShareAnswer answer_at(const ShareQuestion& question, const ChoiceTrees& trees, const std::vector<Wide>& scores);

}  // namespace treesens
