#include "measure/question.hpp"

#include <algorithm>
#include <limits>

namespace treesens {

namespace {

constexpr std::uint8_t kPossible = 1;
constexpr std::uint8_t kCertain = 2;

// What is known of all rows of a side at a choice.
std::uint8_t state_of(const std::vector<ShareRow>& rows, std::int32_t choices, const std::vector<Wide>& upper,
                      const std::vector<Wide>& lower, std::int32_t s) {
    std::uint8_t state = kPossible | kCertain;
    for (const ShareRow& row : rows) {
        const std::size_t place = static_cast<std::size_t>(row.table) * choices + s;
        const Wide most = row.sign > 0 ? upper[place] : -lower[place];
        const Wide least = row.sign > 0 ? lower[place] : -upper[place];
        if (most < row.possible) return 0;
        if (least < row.certain) state = kPossible;
    }
    return state;
}

struct SideStates {
    std::vector<std::uint8_t> first;
    std::vector<std::uint8_t> second;
};

SideStates states_of(const ShareQuestion& q, std::int32_t choices, const std::vector<Wide>& upper,
                     const std::vector<Wide>& lower) {
    SideStates sides{std::vector<std::uint8_t>(choices), std::vector<std::uint8_t>(choices)};
    for (std::int32_t s = 0; s < choices; ++s) {
        sides.first[s] = state_of(q.first, choices, upper, lower, s);
        sides.second[s] = state_of(q.second, choices, upper, lower, s);
    }
    return sides;
}

bool any(const std::vector<std::uint8_t>& states, std::uint8_t wanted) {
    return std::any_of(states.begin(), states.end(), [&](std::uint8_t s) { return (s & wanted) != 0; });
}

bool may_pair(const ShareQuestion& q, std::int32_t choices, std::int32_t s, std::int32_t other) {
    return q.allowed.empty() || q.allowed[static_cast<std::size_t>(s) * choices + other] != 0;
}

}  // namespace

std::vector<Wanted> wanted_by(const ShareQuestion& q) {
    std::vector<Wanted> wanted;
    for (const std::vector<ShareRow>* rows : {&q.first, &q.second}) {
        for (const ShareRow& row : *rows) wanted.push_back({row.table, row.sign});
    }
    wanted.push_back({});
    return wanted;
}

bool never_apart(const ShareQuestion& q, const Ranges& ranges) {
    return *std::max_element(ranges.apart_upper.begin(), ranges.apart_upper.end()) < q.apart_possible;
}

void excess_of(const ShareQuestion& q, std::int32_t choices, const Ranges& ranges, std::vector<double>& excess) {
    excess.clear();
    for (const std::vector<ShareRow>* rows : {&q.first, &q.second}) {
        for (const ShareRow& row : *rows) {
            const std::vector<Wide>& bounds = row.sign > 0 ? ranges.upper : ranges.lower;
            Wide most = std::numeric_limits<Wide>::min();
            for (std::int32_t s = 0; s < choices; ++s) {
                const Wide bound = bounds[static_cast<std::size_t>(row.table) * choices + s];
                most = std::max(most, row.sign > 0 ? bound : -bound);
            }
            excess.push_back(std::max(1.0, static_cast<double>(most) - static_cast<double>(row.possible)));
        }
    }
    const Wide apart = *std::max_element(ranges.apart_upper.begin(), ranges.apart_upper.end());
    excess.push_back(std::max(1.0, static_cast<double>(apart) - static_cast<double>(q.apart_possible)));
}

ShareAnswer answer_of(const ShareQuestion& q, const ChoiceTrees& trees, const Ranges& ranges) {
    const std::int32_t choices = trees.choices();
    const SideStates sides = states_of(q, choices, ranges.upper, ranges.lower);
    if (!any(sides.first, kPossible) || !any(sides.second, kPossible)) return ShareAnswer::kNone;
    if (q.allowed.empty() && !q.apart_counts && any(sides.first, kCertain) && any(sides.second, kCertain)) {
        return ShareAnswer::kAll;
    }
    const std::int32_t blocks = trees.blocks();
    std::vector<std::uint8_t> first(blocks);
    std::vector<std::uint8_t> second(blocks);
    for (std::int32_t s = 0; s < choices; ++s) {
        first[trees.block_of(s)] |= sides.first[s];
        second[trees.block_of(s)] |= sides.second[s];
    }
    // Blocks are single choices where pairs are named (the binding checks it), and where certainty is read off them.
    const bool single = blocks == choices;
    bool possible = false;
    for (std::int32_t g = 0; g < blocks; ++g) {
        for (std::int32_t h = 0; h < blocks; ++h) {
            if (single && !may_pair(q, choices, g, h)) continue;
            const std::size_t place = static_cast<std::size_t>(g) * blocks + h;
            if ((first[g] & second[h] & kPossible) == 0) continue;
            if (ranges.apart_upper[place] < q.apart_possible) continue;
            possible = true;
            const bool both = (first[g] & second[h] & kCertain) != 0;
            if (both && (!q.apart_counts || ranges.apart_lower[place] >= q.apart_certain)) return ShareAnswer::kAll;
        }
    }
    return possible ? ShareAnswer::kOpen : ShareAnswer::kNone;
}

ShareAnswer answer_at(const ShareQuestion& q, const ChoiceTrees& trees, const std::vector<Wide>& scores) {
    const std::int32_t choices = trees.choices();
    const SideStates sides = states_of(q, choices, scores, scores);
    if (!any(sides.first, kPossible) || !any(sides.second, kPossible)) return ShareAnswer::kNone;
    const Wide* high = scores.data() + static_cast<std::size_t>(q.compared.high) * choices;
    const Wide* low = scores.data() + static_cast<std::size_t>(q.compared.low) * choices;
    if (!q.allowed.empty()) {
        bool possible = false;
        for (std::int32_t s = 0; s < choices; ++s) {
            for (std::int32_t t = 0; t < choices; ++t) {
                if (!may_pair(q, choices, s, t) || (sides.first[s] & sides.second[t] & kPossible) == 0) continue;
                if (q.apart_counts && high[s] - low[t] < q.apart_possible) continue;
                possible = true;
                const bool both = (sides.first[s] & sides.second[t] & kCertain) != 0;
                if (both && (!q.apart_counts || high[s] - low[t] >= q.apart_certain)) return ShareAnswer::kAll;
            }
        }
        return possible ? ShareAnswer::kOpen : ShareAnswer::kNone;
    }
    if (!q.apart_counts) {
        const bool certain = any(sides.first, kCertain) && any(sides.second, kCertain);
        return certain ? ShareAnswer::kAll : ShareAnswer::kOpen;
    }
    ShareAnswer answer = ShareAnswer::kNone;
    for (const std::uint8_t wanted : {kPossible, kCertain}) {
        Wide most = std::numeric_limits<Wide>::min();
        Wide least = std::numeric_limits<Wide>::max();
        for (std::int32_t s = 0; s < choices; ++s) {
            if ((sides.first[s] & wanted) != 0) most = std::max(most, high[s]);
            if ((sides.second[s] & wanted) != 0) least = std::min(least, low[s]);
        }
        // Scores stay below 2^62, so that only a side without any choice could overflow.
        if (!any(sides.first, wanted) || !any(sides.second, wanted)) break;
        if (most - least < (wanted == kCertain ? q.apart_certain : q.apart_possible)) break;
        answer = wanted == kCertain ? ShareAnswer::kAll : ShareAnswer::kOpen;
    }
    return answer;
}

}  // namespace treesens
