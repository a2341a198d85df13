#include "prove/overlap_prover.hpp"

#include <algorithm>

#include "bound/factors.hpp"
#include "problem/checked.hpp"
#include "problem/schedule.hpp"

namespace treesens {

namespace {

constexpr int kTrims = 4;  // rounds of trimming at one node
// Examining a box costs several times as much as a messages entry, whose lists are read in order.
constexpr std::int64_t kWorkPerBox = 6;
// A unit of polishing takes several times as long as one of this search.
constexpr Polishing kPolishing{16, 64, 100, 4'000'000};

}  // namespace

BoxLayers build_box_layers(const Problem& p, const Forest& forest, const Goal& goal, MemoryBudget& budget,
                           Control* control) {
    BoxLayers result;
    const std::vector<RowSum> cancelling = cancelling_rows(p, forest, goal);
    if (!cancelling.empty()) result.layers.push_back(build_difference_layer(p, forest, cancelling[0], budget, control));
    for (std::int32_t r = 0; r < p.rows; ++r) {
        if (goal.counts(p, r)) result.layers.push_back(build_row_layer(p, forest, r, budget));
    }
    return result;
}

OverlapProver::State::State(const BoxLayer& layer, const Problem& problem, MemoryBudget& budget)
    : boxes(layer, budget), at{-1, 0, {}, std::vector<Cell>(problem.variables(), 0), problem.size} {
    for (Cell& high : at.high) --high;
}

OverlapProver::OverlapProver(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal,
                             const BoxLayers& layers, const Gap& gap, MemoryBudget& budget)
    : TreeSearch(problem, forest, clauses, goal, gap, kPolishing),
      losses_(problem),
      low_(problem.variables(), 0),
      high_(problem.variables(), 0) {
    for (const BoxLayer& layer : layers.layers) states_.push_back(std::make_unique<State>(layer, problem, budget));
    begin_node(Domains(problem), INT64_MAX);
}

std::int64_t OverlapProver::work() const {
    std::int64_t sum = losses_.work() + point_work_;
    for (const auto& state : states_) sum += state->boxes.work();
    return kWorkPerBox * sum + 100 * statistics_.nodes;
}

std::int64_t OverlapProver::open_upper() const {
    std::int64_t bound = INT64_MIN;
    for (const Frame& f : frames_) {
        if (f.pending) bound = std::max(bound, f.upper);
    }
    return bound;
}

void OverlapProver::step(std::int64_t, Incumbent& incumbent, Control& control) {
    const bool proposes = tree_ == nullptr;
    if (proposes) level_ = level_to_reach(problem_, goal_, gap_, incumbent);
    if (!arrive()) return;
    if (proposes && (frames_.empty() || statistics_.nodes % schedule.overlap_point == 0)) {
        choose_point(incumbent);
        propose(incumbent, control);
    }
    branch(incumbent);
}

std::string OverlapProver::record(CutTree& tree, std::int64_t level, std::int64_t node_limit, Control& control) {
    tree_ = &tree;
    return refute(level, node_limit, control);
}

// Clauses, layers and losses at the node at work; false if it is left.
bool OverlapProver::arrive() {
    refuting_ = CutTree::kByClauses;
    if (!enter(frames_.size(), frames_.empty() ? -1 : frames_.back().variable)) return false;
    read_hull();
    const bool all = frames_.empty() || statistics_.nodes % schedule.overlap_idle == 0;
    if (!refuted(all) && trim(all)) return true;
    prune();
    return false;
}

void OverlapProver::read_hull() {
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        low_[v] = node_.first(v);
        high_[v] = node_.last(v);
    }
}

bool OverlapProver::is_on_path(const Station& station) const {
    return station.node < 0 || (station.depth < frames_.size() && frames_[station.depth].id == station.node);
}

// Brings the lists of a layer to this node: from where they are if that is above, else from the last place that is.
void OverlapProver::sync(State& state) {
    if (state.at.node != node_id_) {
        if (is_on_path(state.at)) {
            if (state.stations.empty() || state.boxes.worth_a_mark()) {
                state.at.mark = state.boxes.mark();
                state.stations.push_back(state.at);
            }
        } else {
            while (!is_on_path(state.stations.back())) state.stations.pop_back();
            state.boxes.undo(state.stations.back().mark);
            state.at = state.stations.back();
        }
    }
    narrowed_.clear();
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (low_[v] == state.at.low[v] && high_[v] == state.at.high[v]) continue;
        narrowed_.push_back(v);
        state.at.low[v] = low_[v];
        state.at.high[v] = high_[v];
    }
    if (!narrowed_.empty()) state.boxes.restrict_to(narrowed_, low_, high_);
    state.at.node = node_id_;
    state.at.depth = frames_.size();
}

// The least sum of the rows over solutions at the level, before subtracting the rows' bounds.
std::int64_t OverlapProver::needed(const BoxLayer& layer) const {
    __int128 sum = 0;
    for (const std::int32_t r : layer.rows) sum += static_cast<__int128>(goal_.bound[r]) + (goal_.soft[r] ? level_ : 0);
    return static_cast<std::int64_t>(std::clamp<__int128>(sum, INT64_MIN / 2, INT64_MAX / 2));
}

std::int64_t OverlapProver::spare(const State& state) const {
    return state.boxes.bound() - needed(state.boxes.layer());
}

// Moves a layer to the node and drops the boxes that no solution there uses; false if none is left.
bool OverlapProver::settle(std::int32_t layer) {
    State& state = *states_[layer];
    sync(state);
    refuting_ = layer;
    if (!state.boxes.possible() || spare(state) < 0) return false;
    state.boxes.leave_out_beyond(spare(state));
    return true;
}

// All soft rows of a solution at level t have t, hard ones 0: t times their number is no more than the sum.
std::int64_t OverlapProver::upper_of(const State& state) const {
    __int128 sum = state.boxes.bound();
    std::int64_t soft = 0;
    for (const std::int32_t r : state.boxes.layer().rows) {
        sum -= goal_.bound[r];
        soft += goal_.soft[r];
    }
    if (soft == 0) return INT64_MAX;
    const __int128 upper = sum / soft - (sum % soft < 0 ? 1 : 0);
    return static_cast<std::int64_t>(std::clamp<__int128>(upper, INT64_MIN, INT64_MAX));
}

// True if a layer refutes the node; layers that seldom do are tried only at some nodes.
bool OverlapProver::refuted(bool all) {
    for (std::size_t i = 0; i < states_.size(); ++i) {
        const auto& state = states_[i];
        if (state->idle() && !all) continue;
        ++state->tried;
        if (!settle(narrow<std::int32_t>(i))) {
            ++state->pruned;
            audit_.check_sum(node_, state->boxes.layer().rows, needed(state->boxes.layer()));
            return true;
        }
        node_upper_ = std::min(node_upper_, std::max(upper_of(*state), level_ - 1));
    }
    if (frames_.empty()) root_upper_ = std::min(root_upper_, node_upper_);
    return false;
}

// False if the losses refute the whole node. Afterwards losses_ has the best cut.
bool OverlapProver::trim(bool all) {
    for (int round = 0; round < kTrims; ++round) {
        if (!look(all)) return false;
        if (!losses_.trimmed()) return true;
        if (!narrow_to(losses_.low(), losses_.high())) return false;
        const OverlapCut& cut = losses_.best();
        const bool cuts = cut.variable >= 0 && low_[cut.variable] <= cut.cut && cut.cut < high_[cut.variable];
        if (cuts) return true;
    }
    // Enough: what is still to be trimmed is left to the children.
    return look(true);
}

// The losses of every layer; false if one of them refutes the node. Idle layers are tried if no other one has a cut, or
// with `all`.
bool OverlapProver::look(bool all) {
    losses_.start(low_, high_);
    for (std::size_t i = 0; i < states_.size(); ++i) {
        if (states_[i]->idle() && !all && losses_.best().variable >= 0) continue;
        const auto layer = narrow<std::int32_t>(i);
        if (!settle(layer)) return false;
        losses_.look(states_[i]->boxes, spare(*states_[i]), layer);
    }
    return true;
}

// Records the trimmed ends of domains; false if nothing of a domain is left.
bool OverlapProver::record_ends(const std::vector<Cell>& low, const std::vector<Cell>& high) {
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (low[v] > low_[v]) {
            refuting_ = losses_.low_by(v);
            if (low[v] > high_[v]) return false;
            tree_->cut_off(v, low[v] - 1, true, refuting_);
        }
        if (high[v] < high_[v]) {
            refuting_ = losses_.high_by(v);
            if (high[v] < low[v]) return false;
            tree_->cut_off(v, high[v], false, refuting_);
        }
    }
    return true;
}

bool OverlapProver::narrow_to(const std::vector<Cell>& low, const std::vector<Cell>& high) {
    if (tree_ != nullptr && !record_ends(low, high)) return false;
    refuting_ = CutTree::kByClauses;
    changed_.clear();
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (low[v] > high[v]) return false;
        if (node_.keep(v, low[v], high[v])) changed_.push_back(v);
        if (node_.empty(v)) return false;
    }
    if (!clauses_.none() && !clauses_.propagate(node_, changed_)) return false;
    read_hull();
    count_in(level_ - 1);
    for (std::size_t i = 0; i < states_.size(); ++i) {
        if (states_[i]->at.node == node_id_ && !settle(narrow<std::int32_t>(i))) return false;
    }
    return true;
}

// Every variable in the cell that most of the best boxes hold, weighed by what they are worth.
void OverlapProver::choose_point(const Incumbent& incumbent) {
    if (incumbent.present()) x_ = incumbent.x;
    const ActiveBoxes& boxes = states_.front()->boxes;
    const BoxLayer& layer = boxes.layer();
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        votes_.clear();
        for (const BoxLayer::Use& use : layer.uses[v]) {
            if (boxes.active(use.factor) == 0) continue;
            const CellRange range = boxes.ranges(use.factor, *boxes.begin(use.factor))[use.slot];
            const Cell low = std::max<Cell>(range.low, low_[v]);
            const Cell high = std::min<Cell>(range.high, high_[v]);
            if (low == low_[v] && high == high_[v]) continue;
            votes_.emplace_back(low, 1);
            votes_.emplace_back(high + 1, -1);
        }
        point_work_ += static_cast<std::int64_t>(layer.uses[v].size());
        std::sort(votes_.begin(), votes_.end());
        std::int64_t sum = 0;
        std::int64_t most = 0;
        Cell choice = x_[v];
        for (std::size_t i = 0; i < votes_.size();) {
            const Cell at = votes_[i].first;
            for (; i < votes_.size() && votes_[i].first == at; ++i) sum += votes_[i].second;
            if (sum > most) most = sum, choice = at;
        }
        x_[v] = node_.has(v, std::clamp(choice, low_[v], high_[v])) ? std::clamp(choice, low_[v], high_[v])
                                                                    : node_.nearest(v, choice);
    }
}

void OverlapProver::branch(Incumbent& incumbent) {
    const OverlapCut& cut = losses_.best();
    if (cut.variable >= 0) {
        split(cut.variable, cut.cut, cut.low_first);
        return;
    }
    // No layer is skipped as long as none knows a cut: all rows are constant over the node, and every bound, which is
    // the value of its rows, was found to be high enough. Only clauses can tell the points of the node apart.
    move_into_node();
    const Split by_clause = branching_.by_clause(node_, x_);
    if (by_clause.variable >= 0) {
        split(by_clause.variable, by_clause.cut, x_[by_clause.variable] > by_clause.cut);
        return;
    }
    refuting_ = CutTree::kByClauses;
    if (!clauses_.satisfied(x_.data())) {
        ++statistics_.pruned_by_clauses;
        prune();
        return;
    }
    close(incumbent);
}

void OverlapProver::split(std::int32_t variable, Cell cut, bool low_first) {
    const Cell last = problem_.size[variable] - 1;
    Domains first = node_;
    first.keep(variable, low_first ? 0 : cut + 1, low_first ? cut : last);
    const std::int64_t place = tree_ == nullptr ? -1 : tree_->cut(variable, cut, low_first);
    Frame frame{node_id_, std::move(node_), variable, true, node_upper_, place};
    frame.other.keep(variable, low_first ? cut + 1 : 0, low_first ? last : cut);
    frames_.push_back(std::move(frame));
    begin_node(std::move(first), frames_.back().upper);
}

void OverlapProver::next() {
    if (tree_ != nullptr) tree_->close(refuting_);
    while (!frames_.empty() && !frames_.back().pending) frames_.pop_back();
    if (frames_.empty()) {
        finished_ = true;
        return;
    }
    Frame& frame = frames_.back();
    frame.pending = false;
    if (tree_ != nullptr) tree_->go_to(frame.place);
    begin_node(std::move(frame.other), frame.upper);
}

}  // namespace treesens
