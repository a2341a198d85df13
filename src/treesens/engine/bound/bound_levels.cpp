#include "bound/bound_levels.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "problem/checked.hpp"
#include "problem/rounding.hpp"

namespace treesens {

namespace {

constexpr double kLongestStep = 0.5;

std::int64_t weight(const std::int64_t magnitude, std::int64_t bound) {
    return magnitude + std::abs(bound) + 1;
}

// A level beyond a row's range is equivalent to one just beyond it.
std::int64_t counted_level(const Problem& p, const Goal& goal, std::int32_t r, std::int64_t level) {
    const std::int64_t reach = weight(p.magnitude(r), goal.bound[r]);
    return std::clamp(level, -reach, reach);
}

}  // namespace

std::vector<int> row_shifts(const Problem& p, const Goal& goal, bool objective_is_apart) {
    std::vector<std::int32_t> order(p.rows);
    std::iota(order.begin(), order.end(), 0);
    const auto magnitude = [&](std::int32_t r) { return weight(p.magnitude(r), goal.bound[r]); };
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return magnitude(a) > magnitude(b); });
    std::vector<int> shift(p.rows, 0);
    std::int64_t leader = 0;
    for (std::int32_t r : order) {
        if (objective_is_apart && r == p.constraints) {
            shift[r] = shift_for(magnitude(r));
            continue;
        }
        if (leader == 0 || magnitude(r) < leader / 64) leader = magnitude(r);
        shift[r] = shift_for(leader);
    }
    return shift;
}

std::vector<std::int32_t> step_multipliers(const std::vector<std::int32_t>& multiplier,
                                           const std::vector<double>& slack, double step) {
    ensure(step > 0 && step <= 1, "the step of the multipliers is out of range");
    const std::size_t n = multiplier.size();
    double mean = 0;
    for (std::size_t r = 0; r < n; ++r) mean += slack[r] * multiplier[r] / kMultiplierUnit;
    double length = 0;
    for (std::size_t r = 0; r < n; ++r) {
        if (multiplier[r] > 0 || slack[r] < mean) length = std::max(length, std::fabs(slack[r] - mean));
    }
    if (length == 0) return multiplier;
    std::vector<double> target(n);
    for (std::size_t r = 0; r < n; ++r) {
        target[r] = static_cast<double>(multiplier[r]) / kMultiplierUnit - step * (slack[r] - mean) / length;
    }
    std::vector<double> sorted = target;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    double sum = 0;
    double shift = 0;
    for (std::size_t r = 0; r < n; ++r) {
        sum += sorted[r];
        const double candidate = (sum - 1) / static_cast<double>(r + 1);
        if (sorted[r] > candidate) shift = candidate;
    }
    std::vector<std::int32_t> result(n);
    std::int32_t rest = kMultiplierUnit;
    std::size_t largest = 0;
    for (std::size_t r = 0; r < n; ++r) {
        result[r] = truncated<std::int32_t>(std::max(0.0, target[r] - shift) * kMultiplierUnit);
        rest -= result[r];
        if (result[r] > result[largest]) largest = r;
    }
    result[largest] += rest;  // the integers' excess or deficit
    return result;
}

BoundLevel::BoundLevel(const Problem& problem, const Goal& goal, std::shared_ptr<const FactorSet> set,
                       std::vector<std::int32_t> multiplier, MemoryBudget& budget)
    : messages(problem, *set, budget), set_(std::move(set)) {
    messages.set_multipliers(multiplier);
    set_level(problem, goal, 0);
}

void BoundLevel::set_level(const Problem& p, const Goal& goal, std::int64_t level) {
    level_ = level;
    std::vector<std::int64_t> constant;
    for (std::size_t m = 0; m < set_->rows.size(); ++m) {
        std::int64_t sum = 0;
        for (std::int32_t r : set_->rows[m]) {
            sum += to_grid(-goal.bound[r] - (goal.soft[r] ? counted_level(p, goal, r, level) : 0), set_->shift[m]);
        }
        constant.push_back(sum);
    }
    messages.set_constants(constant);
}

// sum over the soft rows of k_r 2^shift_r (slack_r + bound_r) <= bound + sum of k_r 2^shift_r c_r, where c_r is the
// level as the row counts it. All rows of a solution at level t have slack_r >= t: so t times the sum of the weights is
// no more.
std::int64_t BoundLevel::upper(const Problem& p, const Goal& goal) const {
    int lowest = 0;
    for (const int shift : set_->shift) lowest = std::min(lowest, shift);
    __int128 slope = 0;
    __int128 most = static_cast<__int128>(messages.bound()) * (static_cast<__int128>(1) << -lowest);
    for (std::size_t m = 0; m < set_->rows.size(); ++m) {
        const __int128 weighed = static_cast<__int128>(messages.multipliers()[m]) << (set_->shift[m] - lowest);
        for (const std::int32_t r : set_->rows[m]) {
            if (!goal.soft[r]) continue;
            slope += weighed;
            most += weighed * counted_level(p, goal, r, level_);
        }
    }
    if (slope == 0) return INT64_MAX;
    const __int128 upper = most / slope - (most % slope < 0 ? 1 : 0);  // rounded down: levels are whole
    return static_cast<std::int64_t>(std::clamp<__int128>(upper, INT64_MIN, INT64_MAX));
}

// The least upper bound is where the bound at that same level is least: below it the multipliers would neglect the
// objective for rows that are far from being satisfied.
void BoundLevel::count_slack_from(std::int64_t upper, const Goal& goal) {
    const double above = static_cast<double>(upper) - static_cast<double>(level_);
    for (std::size_t m = 0; m < set_->rows.size(); ++m) {
        for (const std::int32_t r : set_->rows[m]) {
            if (goal.soft[r]) row_slack_[m] -= std::ldexp(above, set_->shift[m]);
        }
    }
}

// A sum of several rows has the weight of all of them, and its slack is their mean.
std::vector<std::int32_t> BoundLevel::step_from(const std::vector<std::int32_t>& multiplier) {
    std::vector<std::int32_t> weight = multiplier;
    for (std::size_t m = 0; m < weight.size(); ++m) {
        const auto size = narrow<std::int32_t>(set_->rows[m].size());
        weight[m] *= size;
        row_slack_[m] /= size;
    }
    weight = step_multipliers(weight, row_slack_, step);
    std::int32_t rest = 0;
    std::size_t last = 0;
    for (std::size_t m = 0; m < weight.size(); ++m) {
        const auto size = narrow<std::int32_t>(set_->rows[m].size());
        rest += weight[m] % size;
        weight[m] /= size;
        if (size == 1) last = m;
    }
    // A remainder unit goes to a single row; for rows of the same size the sum stays a multiple.
    if (rest > 0) weight[last] += rest;
    return weight;
}

// The multipliers with this weight for one row that is not a sum; the others keep their proportions.
std::vector<std::int32_t> BoundLevel::with_share(std::size_t row, std::int32_t share) const {
    std::vector<std::int32_t> result = messages.multipliers();
    const std::int64_t others = kMultiplierUnit - result[row];
    std::int32_t rest = kMultiplierUnit;
    for (std::size_t m = 0; m < result.size(); ++m) {
        if (m == row) continue;
        result[m] = narrow<std::int32_t>(result[m] * std::int64_t{kMultiplierUnit - share} / others);
        rest -= result[m] * narrow<std::int32_t>(set_->rows[m].size());
    }
    result[row] = rest;
    return result;
}

Sweep BoundLevel::choose_share(Domains& domains, Control& control, const Optimised& of) {
    constexpr int kSweeps = 6;
    constexpr std::int32_t kShares[] = {kMultiplierUnit / 64, kMultiplierUnit / 8,
                                        kMultiplierUnit - kMultiplierUnit / 8};
    const std::vector<std::int32_t> start = messages.multipliers();
    std::size_t row = 0;
    while (row < start.size() && set_->rows[row] != RowSum{of.problem.constraints}) ++row;
    if (row == start.size() || start[row] == 0 || start[row] == kMultiplierUnit) return Sweep::open;
    std::vector<std::vector<std::int32_t>> candidates(1, start);
    for (const std::int32_t share : kShares) candidates.push_back(with_share(row, share));
    std::vector<std::int32_t> best = start;
    std::int64_t least = INT64_MAX;
    Sweep outcome = Sweep::open;
    for (const std::vector<std::int32_t>& candidate : candidates) {
        messages.set_multipliers(candidate);
        messages.reset(domains, false);
        for (int i = 0; i < kSweeps && outcome == Sweep::open; ++i) {
            outcome = messages.sweep(i % 2 == 0, domains, control);
            ++statistics.sweeps;
        }
        if (outcome == Sweep::pruned) return outcome;
        if (outcome == Sweep::stopped) break;
        const std::int64_t upper = BoundLevel::upper(of.problem, of.goal);
        if (upper < least) least = upper, best = candidate;
    }
    messages.set_multipliers(best);
    messages.reset(domains, false);
    return outcome;
}

bool BoundLevel::improve_multipliers(const std::vector<Cell>& x, Domains& domains, Control& control, Sweep& outcome,
                                     const Optimised* of) {
    const auto measure = [&] {
        const std::int64_t upper = of == nullptr ? INT64_MAX : BoundLevel::upper(of->problem, of->goal);
        return std::pair<std::int64_t, std::int64_t>(upper, messages.bound());
    };
    const auto before = measure();
    const std::vector<std::int32_t> old = messages.multipliers();
    messages.best_rows(x, row_slack_);
    if (before.first < INT64_MAX && before.first > level_) count_slack_from(before.first, of->goal);
    const std::vector<std::int32_t> next = step_from(old);
    if (next == old) {
        // In a corner nothing moves for any step length: without a limit it grows until the projection loses precision.
        step = std::min(step * 1.5, kLongestStep);
        return false;
    }
    kept_ = messages.reduced();
    messages.set_multipliers(next);
    messages.refresh();
    // Messages fitted to the old multipliers hide the gain of a step.
    const std::int64_t sweeps = of == nullptr ? 1 : of->sweeps;
    bool better = false;
    for (std::int64_t i = 0; i < sweeps && !better; ++i) {
        outcome = messages.sweep(i % 2 == 0, domains, control);
        ++statistics.sweeps;
        if (outcome != Sweep::open) return true;
        better = measure() < before;
    }
    if (better) {
        step = std::min(step * 1.6, kLongestStep);
        return true;
    }
    messages.set_multipliers(old);
    messages.set_reduced(kept_);
    messages.refresh();
    step = std::max(step * 0.4, 1.0 / 512);
    return false;
}

}  // namespace treesens
