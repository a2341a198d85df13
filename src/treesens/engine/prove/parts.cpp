// A long search continues in parts (ADR 0016): it restarts, and nodes of some depth become separate problems. A part is
// searched in the same way, and may itself restart in parts.
#include <algorithm>
#include <utility>

#include "problem/schedule.hpp"
#include "prove/prover.hpp"
#include "prove/subproblem.hpp"

namespace treesens {

void Prover::set_parts(const Parts& parts) {
    parts_ = parts;
    watches_ = parts.together > 0 && goal_.mode == Mode::objective && !parts.at_once;
    in_parts_ = parts.together > 0 && goal_.mode == Mode::objective && parts.at_once;
    first_node_ = statistics_.nodes;
}

bool Prover::has_done(std::int64_t nodes) const {
    if (nodes < 0 || statistics_.nodes < nodes) return false;
    return phase_ == Phase::enter || (phase_ == Phase::part && part_->has_done(part_->statistics().nodes));
}

// The search looks long if between two nodes the greatest bound keeps more than so much of its distance from the level.
// At that pace a thousand nodes more would follow. Measured: 0.43 to 0.60 in searches of 100 to 450 nodes, 0.66 to 0.76
// in those of 1,400 to 7,900.
void Prover::watch_pace() {
    const std::int64_t nodes = statistics_.nodes - first_node_;
    if (nodes < schedule.part_early) return;
    const std::int64_t distance = std::max<std::int64_t>(std::min(proved_upper(), root_upper_) - level_, 0);
    if (nodes == schedule.part_early) early_distance_ = distance;
    if (nodes < schedule.part_late) return;
    watches_ = false;
    const bool looks_long = 1000.0 * static_cast<double>(distance) >
                            static_cast<double>(schedule.part_long) * static_cast<double>(early_distance_);
    if (looks_long && root_.domains.variables() > 0) begin_in_parts();
    root_ = OpenNode();
}

// Restarts at the root with its messages. Everything proved so far is kept.
void Prover::begin_in_parts() {
    in_parts_ = true;
    root_.upper = std::min(root_.upper, proved_upper());
    open_.clear();
    bounds_.forget_nodes();
    visit(std::move(root_));
}

bool Prover::is_part() const {
    return in_parts_ && !adopted_ && static_cast<std::int32_t>(path_.size()) == parts_.depth;
}

// False if the node is unchanged.
bool Prover::enter_part(const Incumbent& incumbent) {
    std::vector<std::uint8_t> allowed(problem_.cells(), 0);
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        for (Cell k = 0; k < problem_.size[v]; ++k) allowed[problem_.cell_offset[v] + k] = node_.has(v, k);
    }
    Restrictor restrictor(problem_, forest_);
    const std::vector<Cell>& hint = incumbent.present() ? incumbent.x : x_;
    Restricted left = restrictor.restrict(allowed.data(), nullptr, goal_.bound, {hint});
    if (left.left == Left::nothing) {
        prune();
        return true;
    }
    if (left.left == Left::point) return false;
    try {
        part_ = std::make_shared<Subproblem>(std::move(left), goal_, gap_, parts_, budget_, audit_.share());
    } catch (const MemoryLimit&) {
        in_parts_ = false;
        return false;
    }
    ++statistics_.parts;
    phase_ = Phase::part;
    return true;
}

void Prover::run_part(std::int64_t node_limit, Incumbent& incumbent, Control& control) {
    const ProverStatistics before = part_->statistics();
    const std::int64_t done = part_->work();
    const std::int64_t audited = part_->audited();
    const std::int64_t most = node_limit < 0 ? -1 : before.nodes + node_limit - statistics_.nodes;
    if (part_turn_ <= 0) part_turn_ = schedule.part_turn;
    part_->run(std::min(part_turn_, std::max<std::int64_t>(end_ - work(), 1)), most, incumbent, control);
    const ProverStatistics& after = part_->statistics();
    statistics_.nodes += after.nodes - before.nodes;
    statistics_.closed += after.closed - before.closed;
    statistics_.pruned_by_clauses += after.pruned_by_clauses - before.pruned_by_clauses;
    statistics_.multiplier_steps += after.multiplier_steps - before.multiplier_steps;
    statistics_.parts += after.parts - before.parts;
    statistics_.deepest = std::max(statistics_.deepest, after.deepest + static_cast<std::int64_t>(path_.size()));
    part_work_ += part_->work() - done;
    part_turn_ -= part_->work() - done;
    audited_in_parts_ += part_->audited() - audited;
    node_upper_ = std::min(node_upper_, std::max(part_->proved_upper(), level_ - 1));
    level_ = level_to_reach(problem_, goal_, gap_, incumbent);
    if (part_->finished()) {
        count_in(node_upper_);
        part_.reset();
        part_turn_ = 0;
        next();
        return;
    }
    // A turn cut short by the clock is resumed, so that the order of nodes does not depend on it.
    if (part_turn_ > 0 || open_.goes_on(node_upper_, level_)) return;
    OpenNode node;
    node.domains = std::move(node_);
    node.upper = node_upper_;
    node.path = path_;
    node.start = std::move(start_);
    node.part = std::move(part_);
    open_.put_off(std::move(node));
    next();
}

}  // namespace treesens
