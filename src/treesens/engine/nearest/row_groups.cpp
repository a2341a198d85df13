#include "nearest/row_groups.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "problem/checked.hpp"

namespace treesens {

namespace {

// Rows whose distance costs no more than this share of the cutoff are refuted together, if so many boxes are enough.
constexpr double kCloseRows = 0.25;
constexpr std::int64_t kGroupBoxes = 100;

}  // namespace

RowGroups::RowGroups(const Table& table, const CellCosts& costs, const std::uint8_t* varied)
    : table_(table), costs_(costs), varied_(varied), order_(table.rows) {
    std::iota(order_.begin(), order_.end(), 0);
    if (table.rows > 0) groups_.push_back({0, table.rows, kUnsplit, kUnsplit});
}

void RowGroups::find_ranges(const Group& group, std::vector<ValueRange>& ranges) const {
    ranges.assign(costs_.features, ValueRange{});
    for (std::int64_t f = 0; f < costs_.features; ++f) {
        if (varied_[f] || costs_.unit[f] == 0.0) continue;
        ValueRange& range = ranges[f];
        range.low = std::numeric_limits<double>::infinity();
        range.high = -range.low;
        range.first_cell = INT32_MAX;
        for (std::int64_t i = group.begin; i < group.end; ++i) {
            const double value = table_.values[order_[i] * costs_.features + f];
            const std::int32_t cell = table_.cells[order_[i] * costs_.features + f];
            if (std::isnan(value)) {
                range.absent = true;
                continue;
            }
            range.present = true;
            range.low = std::min(range.low, value);
            range.high = std::max(range.high, value);
            if (cell < 0) continue;
            range.first_cell = std::min(range.first_cell, cell);
            range.last_cell = std::max(range.last_cell, cell);
        }
    }
}

double RowGroups::spread(const ValueRange& range, std::int64_t f) const {
    if (varied_[f] || costs_.unit[f] == 0.0) return 0.0;
    double result = range.present ? range.high - range.low : 0.0;
    if (result > 0.0) result = costs_.same_or_not[f] || costs_.norm == Norm::kL0 ? 1.0 : result / costs_.unit[f];
    return range.present && range.absent ? std::max(result, 1.0) : result;
}

double RowGroups::spread(const std::vector<ValueRange>& ranges) const {
    double total = 0.0;
    for (std::int64_t f = 0; f < costs_.features; ++f) {
        const double one = spread(ranges[f], f);
        if (costs_.norm == Norm::kLinf)
            total = std::max(total, one);
        else
            total += costs_.norm == Norm::kL2 ? one * one : one;
    }
    return total;
}

void RowGroups::split(std::int32_t group) {
    const std::int64_t begin = groups_[group].begin;
    const std::int64_t end = groups_[group].end;
    std::int64_t widest = -1;
    double most = 0.0;
    for (std::int64_t f = 0; f < costs_.features; ++f) {
        const double mine = spread(ranges_[f], f);
        if (mine > most) most = mine, widest = f;
    }
    groups_[group].left = kEqual;
    if (widest < 0) return;
    const auto value = [&](std::int64_t row) {
        const double v = table_.values[row * costs_.features + widest];
        return std::isnan(v) ? std::numeric_limits<double>::infinity() : v;
    };
    // Equal values stay together: the group is cut at the change that is nearest to the middle.
    std::sort(order_.begin() + begin, order_.begin() + end,
              [&](std::int64_t a, std::int64_t b) { return value(a) < value(b) || (value(a) == value(b) && a < b); });
    const std::int64_t middle = begin + (end - begin) / 2;
    std::int64_t down = middle;
    std::int64_t up = middle;
    const auto changes = [&](std::int64_t i) { return value(order_[i - 1]) != value(order_[i]); };
    while (down > begin && !changes(down)) --down;
    while (up < end && (up == begin || !changes(up))) ++up;
    const std::int64_t cut = down > begin && (up == end || middle - down <= up - middle) ? down : up;
    // Infinite values beside missing ones: the bounds for all of them will do.
    if (cut == begin || cut == end) return;
    const std::int32_t left = narrow<std::int32_t>(groups_.size());
    groups_.push_back({begin, cut, kUnsplit, kUnsplit});
    groups_.push_back({cut, end, kUnsplit, kUnsplit});
    groups_[group].left = left;
    groups_[group].right = left + 1;
}

void RowGroups::visit(std::int32_t group, std::size_t depth, const PairLevel& from, Pass& pass) {
    Group here = groups_[group];
    const std::int64_t begin = std::max(here.begin, pass.first);
    const auto active = [&](std::int64_t row) { return pass.active[row] != 0; };
    if (pass.ended || std::none_of(order_.begin() + begin, order_.begin() + std::max(begin, here.end), active)) return;
    if (pass.over()) {
        pass.ended = true;
        pass.found.next = begin;
        return;
    }
    const auto close = [&] {
        for (std::int64_t i = begin; i < here.end; ++i) pass.closed[order_[i]] = pass.active[order_[i]];
    };
    find_ranges(here, ranges_);
    if (levels_.size() <= depth) levels_.emplace_back();
    PairLevel& mine = levels_[depth];
    if (here.left != kEqual && !pass.search.narrow(from, ranges_, pass.cutoff, mine)) {
        close();
        return;
    }
    if (here.left == kUnsplit) {
        split(group);
        here = groups_[group];
    }
    if (here.left == kEqual) {
        const RowOutcome outcome = pass.search.search(from, ranges_, pass.cutoff, pass.boxes, pass.over);
        if (outcome.found) {
            pass.found = {here.end, order_[begin], outcome.cost, outcome.closed};
            pass.ended = true;
        } else if (outcome.closed) {
            close();
        }
        return;
    }
    // Rows that are close together share most of the boxes around them.
    if (spread(ranges_) <= kCloseRows * pass.cutoff &&
        pass.search.refutes(mine, ranges_, pass.cutoff, std::min(pass.boxes, kGroupBoxes), pass.over)) {
        close();
        return;
    }
    visit(here.left, depth + 1, mine, pass);
    visit(here.right, depth + 1, mine, pass);
}

RowGroups::Found RowGroups::pass(PairSearch& search, const std::uint8_t* active, std::int64_t first, double cutoff,
                                 std::int64_t boxes, const std::function<bool()>& over, std::uint8_t* closed) {
    Pass pass{search, active, first, cutoff, boxes, over, closed, {table_.rows, -1, 0.0, false}, false};
    if (!groups_.empty()) visit(0, 0, search.everything(), pass);
    return pass.found;
}

std::vector<ValueRange> RowGroups::values_of(std::int64_t row) const {
    std::vector<ValueRange> values(costs_.features);
    for (std::int64_t f = 0; f < costs_.features; ++f) {
        const double value = table_.values[row * costs_.features + f];
        const std::int32_t cell = table_.cells[row * costs_.features + f];
        const bool absent = std::isnan(value);
        values[f] = {value, value, absent || cell < 0 ? 0 : cell, absent ? -1 : cell, !absent, absent};
    }
    return values;
}

RowGroups::Found RowGroups::around(PairSearch& search, std::int64_t row, double cutoff, std::int64_t boxes,
                                   const std::function<bool()>& over) const {
    const RowOutcome outcome = search.search(search.everything(), values_of(row), cutoff, boxes, over);
    return {0, outcome.found ? row : -1, outcome.cost, outcome.closed};
}

}  // namespace treesens
