#include "tiers.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rounding.hpp"

namespace treesens::search {

namespace {

constexpr std::int32_t kUnit = 1 << kMultiplierBits;

std::int64_t weight(const std::int64_t magnitude, std::int64_t bound) { return magnitude + std::abs(bound) + 1; }

}  // namespace

std::vector<int> row_shifts(const Problem& p, const Goal& goal) {
    std::vector<std::int32_t> order(p.rows);
    std::iota(order.begin(), order.end(), 0);
    const auto magnitude = [&](std::int32_t r) { return weight(p.magnitude(r), goal.bound[r]); };
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return magnitude(a) > magnitude(b); });
    std::vector<int> shift(p.rows, 0);
    std::int64_t leader = 0;
    for (std::int32_t r : order) {
        if (leader == 0 || magnitude(r) < leader / 64) leader = magnitude(r);
        shift[r] = shift_for(leader);
    }
    return shift;
}

std::vector<std::int32_t> step_multipliers(const std::vector<std::int32_t>& multiplier, const std::vector<double>& slack,
                                           double step) {
    const std::size_t n = multiplier.size();
    double mean = 0;
    for (std::size_t r = 0; r < n; ++r) mean += slack[r] * multiplier[r] / kUnit;
    double length = 0;
    for (std::size_t r = 0; r < n; ++r) {
        if (multiplier[r] > 0 || slack[r] < mean) length = std::max(length, std::fabs(slack[r] - mean));
    }
    if (length == 0) return multiplier;
    std::vector<double> target(n);
    for (std::size_t r = 0; r < n; ++r) {
        target[r] = static_cast<double>(multiplier[r]) / kUnit - step * (slack[r] - mean) / length;
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
    std::int32_t rest = kUnit;
    std::size_t largest = 0;
    for (std::size_t r = 0; r < n; ++r) {
        result[r] = static_cast<std::int32_t>(std::max(0.0, target[r] - shift) * kUnit);
        rest -= result[r];
        if (result[r] > result[largest]) largest = r;
    }
    result[largest] += rest;  // what the integers left over, or took too much
    return result;
}

Tier::Tier(const Problem& problem, const Goal& goal, std::shared_ptr<const FactorSet> set,
           std::vector<std::int32_t> multiplier, MemoryBudget& budget)
    : messages(problem, *set, budget), set_(std::move(set)) {
    messages.set_multipliers(multiplier);
    set_level(problem, goal, 0);
}

void Tier::set_level(const Problem& p, const Goal& goal, std::int64_t level) {
    level_ = level;
    std::vector<std::int64_t> constant;
    for (std::size_t m = 0; m < set_->rows.size(); ++m) {
        std::int64_t sum = 0;
        for (std::int32_t r : set_->rows[m]) {
            // A level beyond what the row can reach says no more than one just beyond it.
            const std::int64_t reach = weight(p.magnitude(r), goal.bound[r]);
            sum += to_grid(-goal.bound[r] - (goal.soft[r] ? std::clamp(level, -reach, reach) : 0), set_->shift[m]);
        }
        constant.push_back(sum);
    }
    messages.set_constants(constant);
}

std::int64_t Tier::upper(const Goal& goal) const {
    double slope = 0;  // how fast the bound falls with the level
    for (std::size_t m = 0; m < set_->rows.size(); ++m) {
        for (std::int32_t r : set_->rows[m]) {
            if (goal.soft[r]) slope += std::ldexp(messages.multipliers()[m], set_->shift[m]);
        }
    }
    if (slope <= 0) return INT64_MAX;
    const double above = std::ceil(static_cast<double>(messages.bound()) / slope * (1 + 1e-15)) + 1;
    const double upper = static_cast<double>(level_) + above;
    if (above < 0) return level_;
    if (!(upper < 4.0e18)) return INT64_MAX;
    return level_ + static_cast<std::int64_t>(above);
}

bool Tier::improve_multipliers(const std::vector<Cell>& x, Domains& domains, Control& control, Sweep& outcome) {
    const std::int64_t before = messages.bound();
    const std::vector<std::int32_t> old = messages.multipliers();
    messages.best_rows(x, row_slack_);
    const std::vector<std::int32_t> next = step_multipliers(old, row_slack_, step);
    if (next == old) {
        step *= 1.5;
        return false;
    }
    kept_ = messages.reduced();
    messages.set_multipliers(next);
    messages.refresh();
    outcome = messages.sweep(true, domains, control);
    ++statistics.sweeps;
    if (outcome != Sweep::open) return true;
    if (messages.bound() < before) {
        step = std::min(step * 1.6, 0.5);
        return true;
    }
    messages.set_multipliers(old);
    messages.set_reduced(kept_);
    messages.refresh();
    step = std::max(step * 0.4, 1.0 / 512);
    return false;
}

}  // namespace treesens::search
