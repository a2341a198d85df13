// The bound levels of one search: the collapsed one, if there is any, and the full ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "bound/bound_levels.hpp"

namespace treesens {

// The factor sets of one problem; independent of bounds, so a sweep over bounds builds them once.
struct FactorSets {
    std::shared_ptr<const FactorSet> collapsed;  // null when no rows cancel
    std::shared_ptr<const FactorSet> full;
    bool objective_is_apart = false;
    std::size_t objective_beside = 0;  // index of an objective next to the sum of the collapsed rows (0: none)
};
// With `together` trees share factors, see bundles.hpp. Throws SetupStopped soon after the limits of `control`, if
// there is one, are reached.
FactorSets build_factor_sets(const Problem& problem, const Forest& forest, const Goal& goal, MemoryBudget& budget,
                             std::int64_t together = 0, Control* control = nullptr);

// Initial multipliers: the collapsed row at its weight, and the same weights row by row (equal ones if nothing
// collapses).
std::vector<std::int32_t> collapsed_multiplier(const FactorSets& sets);
std::vector<std::int32_t> start_multipliers(const FactorSets& sets);

// Sweeps stall if, at the current pace, they would need more than `patience` for the rest of the bound.
inline constexpr std::int64_t kRootPatience = 30;
inline bool stalls(std::int64_t before, std::int64_t bound, std::int64_t patience) {
    return before - bound <= bound / std::max<std::int64_t>(patience, 1);
}

// Number of multiplier steps at a node: at most this many, but no more after four consecutive failures.
class MultiplierSteps {
public:
    explicit MultiplierSteps(std::int64_t most = 0) : most_(most) {}
    bool more() const { return steps_ < most_ && failures_ < kMostFailures; }
    void count(bool better) {
        ++steps_;
        failures_ = better ? 0 : failures_ + 1;
    }
    std::int64_t taken() const { return steps_; }
    // An aborted step.
    void count_broken() { ++steps_; }

private:
    static constexpr int kMostFailures = 4;
    std::int64_t most_;
    std::int64_t steps_ = 0;
    int failures_ = 0;  // in a row
};

class BoundStack {
public:
    // One full level, or one for each side of 1/2 if there are two rows with multipliers.
    enum class Full { one, sides };
    BoundStack(const Problem& problem, const Goal& goal, const FactorSets& sets, Full full, MemoryBudget& budget);

    // Cheapest first: the collapsed one, then the full ones.
    const std::vector<std::unique_ptr<BoundLevel>>& levels() const { return levels_; }
    BoundLevel* collapsed() const { return collapsed_; }  // null if no rows cancel
    const std::vector<BoundLevel*>& full() const { return full_; }
    // The full level for a point with these slacks.
    BoundLevel& side_for(const std::vector<std::int64_t>& slack) const;
    std::size_t index_of(const BoundLevel& level) const;
    // Takes over multipliers and messages of another stack with the same factors, for the first reset.
    void warm_start(const BoundStack& other);
    // Marks the state of all levels as belonging to no known node.
    void forget_nodes();
    std::int64_t work() const;

private:
    std::vector<std::unique_ptr<BoundLevel>> levels_;
    BoundLevel* collapsed_ = nullptr;
    std::vector<BoundLevel*> full_;
};

}  // namespace treesens
