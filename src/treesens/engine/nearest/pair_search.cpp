#include "nearest/pair_search.hpp"

#include <algorithm>
#include <cmath>

#include "ensemble/flip_profiles.hpp"
#include "problem/checked.hpp"

namespace treesens {

namespace {

// Boxes between two looks at the clock.
constexpr std::int64_t kClockEvery = 32;
// How far below the roots of the trees cuts are counted.
constexpr std::int64_t kDeepest = 8;
constexpr std::uint8_t kUpperPoint = 1;
constexpr std::uint8_t kLowerPoint = 2;

// What is left of the trees, to look into along a feature.
struct ResidualTrees {
    const Residual& residual;

    bool is_leaf(std::int32_t node) const { return residual.nodes[node].left < 0; }
    // With weights 1 and 0 the bound of a leaf is its value.
    std::int64_t value(std::int32_t node) const { return residual.bounds[node][0]; }
    std::int32_t source(std::int32_t node) const { return residual.nodes[node].source; }
    std::int32_t left(std::int32_t node) const { return residual.nodes[node].left; }
    std::int32_t right(std::int32_t node) const { return residual.nodes[node].right; }
};

}  // namespace

PairSearch::PairSearch(const TreeSpecialiser& specialiser, const CellTrees& trees, const CellCosts& costs,
                       const PairGoal& goal, const std::uint8_t* varied)
    : specialiser_(specialiser), trees_(trees), costs_(costs), goal_(goal), varied_(varied) {
    const std::int64_t cells = costs.cell_offset[costs.features];
    std::int64_t widest = 0;
    for (std::int64_t f = 0; f < costs.features; ++f) {
        if (varied[f]) varied_features_.push_back(treesens::narrow<std::int32_t>(f));
        widest = std::max(widest, costs.cell_offset[f + 1] - costs.cell_offset[f]);
    }
    cost_.resize(cells);
    upper_.resize(costs.features);
    lower_.resize(costs.features);
    profile_.resize(widest + 1);
    gap_.assign(2 * cells, 0);
    gap_of_.assign(2 * costs.features, 0);
    PairBox& box = everything_.box;
    for (std::int64_t f = 0; f < costs.features; ++f) {
        box.high.push_back(treesens::narrow<std::int32_t>(costs.cell_offset[f + 1] - costs.cell_offset[f]) - 1);
    }
    box.low.assign(costs.features, 0);
    box.lower_low = box.low;
    box.lower_high = box.high;
    everything_.residual = specialiser.whole();
    for (int k = 0; k < kWeights; ++k) {
        const Weight w = kWeight[k];
        needed_[k] = INT64_MIN;
        if (goal.has_sides) needed_[k] = w.high * goal.top - w.low * goal.bottom - w.high * goal.slack;
        if (goal.has_swing && w.high == 1 && w.low == 1) needed_[k] = std::max(needed_[k], goal.swing - goal.slack);
    }
}

// The least that a cell costs for any of some rows, for the cells of a box.
void PairSearch::set_costs(const std::vector<ValueRange>& ranges, const PairBox& box) {
    for (std::int64_t f = 0; f < costs_.features; ++f) {
        const std::int64_t first = costs_.cell_offset[f];
        const ValueRange& range = ranges[f];
        const std::int32_t low = varied_[f] ? std::min(box.low[f], box.lower_low[f]) : box.low[f];
        const std::int32_t high = varied_[f] ? std::max(box.high[f], box.lower_high[f]) : box.high[f];
        for (std::int32_t k = low; k <= high; ++k) {
            const std::int64_t i = first + k;
            double& cost = cost_[i];
            if (!costs_.legal[i])
                cost = kNever;
            else if (costs_.unit[f] == 0.0)
                cost = 0.0;
            else if (k == costs_.missing_cell[f])
                cost = range.absent ? 0.0 : 1.0;
            else {
                const double gap =
                    std::max(0.0, std::max(costs_.value_low[i] - range.high, range.low - costs_.value_high[i]));
                const bool own = k >= range.first_cell && k <= range.last_cell;
                if (!range.present)
                    cost = 1.0;
                else if (costs_.same_or_not[f])
                    cost = own ? 0.0 : 1.0;
                else if (costs_.norm == Norm::kL0)
                    cost = own || gap == 0.0 ? 0.0 : 1.0;
                else
                    cost = gap / costs_.unit[f];
                if (range.absent) cost = std::min(cost, 1.0);
            }
            if (costs_.norm == Norm::kL2) cost *= cost;
        }
    }
}

const std::vector<double>& PairSearch::costs_of(const std::vector<ValueRange>& row) {
    set_costs(row, everything_.box);
    return cost_;
}

bool PairSearch::narrow(const PairLevel& from, const std::vector<ValueRange>& ranges, double cutoff, PairLevel& to) {
    set_costs(ranges, from.box);
    cutoff_ = cutoff;
    to.box = from.box;
    return shrink(to, from.residual);
}

bool PairSearch::refutes(const PairLevel& from, const std::vector<ValueRange>& ranges, double cutoff,
                         std::int64_t boxes, const std::function<bool()>& over) {
    only_refutes_ = true;
    const RowOutcome outcome = search(from, ranges, cutoff, boxes, over);
    only_refutes_ = false;
    return outcome.closed && !outcome.found;
}

RowOutcome PairSearch::search(const PairLevel& from, const std::vector<ValueRange>& row, double cutoff,
                              std::int64_t boxes, const std::function<bool()>& over) {
    set_costs(row, from.box);
    cutoff_ = cutoff;
    boxes_left_ = boxes;
    over_ = &over;
    outcome_ = {true, false, 0.0};
    if (levels_.empty()) levels_.emplace_back();
    PairLevel& top = levels_[0][0];
    top.box = from.box;
    if (evaluate(top, from.residual)) explore(0, top);
    return outcome_;
}

// Takes cells off the ends of the ranges that are illegal or too expensive; false where nothing is left.
bool PairSearch::trim(PairLevel& level) const {
    level.least.assign(costs_.features, 0.0);
    level.cost = 0.0;
    const auto narrow = [&](std::int64_t f, std::int32_t& low, std::int32_t& high, auto too_much) {
        const double* cost = cost_.data() + costs_.cell_offset[f];
        while (low <= high && too_much(cost[low])) ++low;
        while (high >= low && too_much(cost[high])) --high;
        return low <= high;
    };
    const auto illegal = [](double cost) { return cost == kNever; };
    for (std::int64_t f = 0; f < costs_.features; ++f) {
        if (varied_[f]) {
            if (!narrow(f, level.box.low[f], level.box.high[f], illegal)) return false;
            if (!narrow(f, level.box.lower_low[f], level.box.lower_high[f], illegal)) return false;
            continue;
        }
        const double* cost = cost_.data() + costs_.cell_offset[f];
        level.least[f] = *std::min_element(cost + level.box.low[f], cost + level.box.high[f] + 1);
        level.cost = joined(level.cost, level.least[f]);
    }
    if (!(level.cost < cutoff_)) return false;
    for (std::int64_t f = 0; f < costs_.features; ++f) {
        if (varied_[f]) continue;
        const double others = costs_.norm == Norm::kLinf ? 0.0 : level.cost - level.least[f];
        // The cheapest cell stays, whatever the rounding of the sum.
        const auto too_much = [&](double c) { return c > level.least[f] && !(others + c < cutoff_); };
        if (!narrow(f, level.box.low[f], level.box.high[f], too_much)) return false;
    }
    return true;
}

// The weighted sum that is closest to being refuted, and by how much it passes.
int PairSearch::tightest(const Residual& residual, double* margin) const {
    int result = -1;
    for (int k = 0; k < kWeights; ++k) {
        if (needed_[k] == INT64_MIN) continue;
        const double size = static_cast<double>(kWeight[k].high + kWeight[k].low);
        const std::int64_t passes = residual.total[k] - needed_[k];
        const double mine = static_cast<double>(passes) / size;
        if (passes < 0) {
            *margin = mine;
            return k;
        }
        if (result < 0 || mine < *margin) *margin = mine, result = k;
    }
    return result;
}

bool PairSearch::meets(std::int64_t upper, std::int64_t lower) const {
    if (goal_.has_sides && (upper < goal_.top || lower + goal_.slack > goal_.bottom)) return false;
    return !goal_.has_swing || upper - lower - goal_.slack >= goal_.swing;
}

// Whether a box may hold pairs that are cheap enough.
bool PairSearch::shrink(PairLevel& level, const Residual& from) {
    if (!trim(level)) return false;
    specialiser_.shrink(from, level.box, level.residual);
    double margin = 0.0;
    tightest(level.residual, &margin);
    return !(margin < 0.0);
}

// Whether a box may hold better pairs than its cheapest one, which is offered.
bool PairSearch::evaluate(PairLevel& level, const Residual& from) {
    return shrink(level, from) && !offer(level);
}

// Tries the cheapest cells of a box, with those of the varied features that suit each point best, one feature at a
// time.
bool PairSearch::offer(const PairLevel& level) {
    for (std::int64_t f = 0; f < costs_.features; ++f) {
        const double* cost = cost_.data() + costs_.cell_offset[f];
        upper_[f] = level.box.low[f];
        lower_[f] = varied_[f] ? level.box.lower_low[f] : level.box.low[f];
        if (varied_[f]) continue;
        while (cost[upper_[f]] != level.least[f]) ++upper_[f];
        lower_[f] = upper_[f];
    }
    const Residual& residual = level.residual;
    std::int64_t best_upper = INT64_MIN;
    std::int64_t best_lower = INT64_MAX;
    const bool alone = varied_features_.size() == 1;
    for (const std::int32_t f : varied_features_) {
        const double* cost = cost_.data() + costs_.cell_offset[f];
        const auto sweep = [&](const std::vector<std::int32_t>& point, std::int32_t low, std::int32_t high) {
            std::fill(profile_.begin() + low, profile_.begin() + high + 2, 0);
            for (const std::int32_t root : residual.roots) {
                add_profile(trees_, ResidualTrees{residual}, root, point.data(), f, low, high, profile_.data());
            }
            for (std::int32_t k = low + 1; k <= high; ++k) profile_[k] += profile_[k - 1];
        };
        const std::int32_t low = level.box.low[f];
        const std::int32_t high = level.box.high[f];
        const std::int32_t lower_low = level.box.lower_low[f];
        const std::int32_t lower_high = level.box.lower_high[f];
        // One sweep is enough for both points if they differ in nothing else.
        sweep(upper_, alone ? std::min(low, lower_low) : low, alone ? std::max(high, lower_high) : high);
        best_upper = INT64_MIN;
        for (std::int32_t k = low; k <= high; ++k) {
            if (cost[k] != kNever && profile_[k] > best_upper) best_upper = profile_[k], upper_[f] = k;
        }
        if (!alone) sweep(lower_, lower_low, lower_high);
        best_lower = INT64_MAX;
        for (std::int32_t k = lower_low; k <= lower_high; ++k) {
            if (cost[k] != kNever && profile_[k] < best_lower) best_lower = profile_[k], lower_[f] = k;
        }
    }
    if (!meets(residual.upper + best_upper, residual.lower + best_lower)) return false;
    outcome_.found = true;
    outcome_.cost = cutoff_ = level.cost;
    if (only_refutes_) boxes_left_ = 0;
    best_upper_ = upper_;
    best_lower_ = lower_;
    return true;
}

void PairSearch::count_cut(const PairLevel& level, std::int32_t source, bool lower, std::int64_t gap) {
    const std::int32_t f = trees_.feature[source];
    const std::int32_t low = lower ? level.box.lower_low[f] : level.box.low[f];
    const std::int32_t high = lower ? level.box.lower_high[f] : level.box.high[f];
    const Cell last = std::min(trees_.split(source).run_end(low, high), high - 1);
    const std::int64_t copy = lower ? 1 : 0;
    // Small enough to be added up over all trees. A test that is worth nothing still is one that the box does not
    // decide.
    gap = (gap >> 5) + 1;
    gap_[copy * static_cast<std::int64_t>(cost_.size()) + costs_.cell_offset[f] + last] += gap;
    gap_of_[copy * costs_.features + f] += gap;
}

// Counts what the cuts of a tree are worth for a weighted sum; deeper ones less.
void PairSearch::count(const PairLevel& level, std::int32_t node, std::int64_t divisor, int weight,
                       std::uint8_t points) {
    const Residual& residual = level.residual;
    const Residual::Node& here = residual.nodes[node];
    if (here.left < 0 || divisor > kDeepest) return;
    const PairBounds& one = residual.bounds[here.left];
    const PairBounds& other = residual.bounds[here.right];
    const std::int32_t f = trees_.feature[here.source];
    if (!varied_[f]) {
        count_cut(level, here.source, false, std::abs(one[weight] - other[weight]) / divisor);
        count(level, here.left, 2 * divisor, weight, points);
        count(level, here.right, 2 * divisor, weight, points);
        return;
    }
    std::uint8_t upper = 0;
    std::uint8_t lower = 0;
    if (points & kUpperPoint) upper = trees_.split(here.source).sides(level.box.low[f], level.box.high[f]);
    if (points & kLowerPoint) lower = trees_.split(here.source).sides(level.box.lower_low[f], level.box.lower_high[f]);
    if (upper == kBoth) count_cut(level, here.source, false, std::abs(one[0] - other[0]) / divisor);
    if (lower == kBoth) count_cut(level, here.source, true, std::abs(one[1] - other[1]) / divisor);
    for (const Sides side : {kLeft, kRight}) {
        const bool up = (upper & side) != 0;
        const bool down = (lower & side) != 0;
        if (!up && !down) continue;
        const std::uint8_t come = static_cast<std::uint8_t>((up ? kUpperPoint : 0) | (down ? kLowerPoint : 0));
        count(level, side == kLeft ? here.left : here.right, 2 * divisor, up && down ? weight : (up ? 0 : 1), come);
    }
}

PairSearch::Split PairSearch::choose(const PairLevel& level) {
    double margin = 0.0;
    const int weight = tightest(level.residual, &margin);
    for (const std::int32_t root : level.residual.roots) count(level, root, 1, weight, kUpperPoint | kLowerPoint);
    Split split;
    std::int64_t most = 0;
    for (std::int64_t i = 0; i < 2 * costs_.features; ++i) {
        if (gap_of_[i] > most) {
            most = gap_of_[i];
            split.feature = i % costs_.features;
            split.lower = i >= costs_.features;
        }
    }
    if (split.feature < 0) return split;
    // The cut in the middle of all that is counted.
    const std::int64_t cells = static_cast<std::int64_t>(cost_.size());
    const std::int64_t* gap = gap_.data() + (split.lower ? cells : 0) + costs_.cell_offset[split.feature];
    split.last = split.lower ? level.box.lower_low[split.feature] : level.box.low[split.feature];
    for (std::int64_t sum = gap[split.last]; 2 * sum < most; sum += gap[++split.last]) {
    }
    for (std::int64_t i = 0; i < 2 * costs_.features; ++i) {
        if (gap_of_[i] == 0) continue;
        gap_of_[i] = 0;
        const std::int64_t f = i % costs_.features;
        const auto first = gap_.begin() + (i >= costs_.features ? cells : 0) + costs_.cell_offset[f];
        std::fill(first, first + (costs_.cell_offset[f + 1] - costs_.cell_offset[f]), 0);
    }
    return split;
}

void PairSearch::explore(std::size_t depth, const PairLevel& here) {
    boxes_left_ -= 2;
    if (boxes_left_ % kClockEvery < 2 && (*over_)()) boxes_left_ = 0;
    const Split split = boxes_left_ > 0 ? choose(here) : Split{};
    if (split.feature < 0) {
        // Out of time, or leaf values that are rounded leave it open.
        outcome_.closed = false;
        return;
    }
    if (levels_.size() <= depth + 1) levels_.emplace_back();
    std::array<PairLevel, 2>& parts = levels_[depth + 1];
    std::array<bool, 2> alive{};
    std::array<double, 2> margin{};
    for (int i = 0; i < 2; ++i) {
        PairLevel& part = parts[i];
        part.box = here.box;
        auto& low = split.lower ? part.box.lower_low : part.box.low;
        auto& high = split.lower ? part.box.lower_high : part.box.high;
        if (i == 0)
            high[split.feature] = split.last;
        else
            low[split.feature] = split.last + 1;
        alive[i] = evaluate(part, here.residual);
        if (alive[i]) tightest(part.residual, &margin[i]);
    }
    const int first = margin[1] > margin[0] ? 1 : 0;
    for (const int i : {first, 1 - first}) {
        if (alive[i] && parts[i].cost < cutoff_) explore(depth + 1, parts[i]);
    }
}

}  // namespace treesens
