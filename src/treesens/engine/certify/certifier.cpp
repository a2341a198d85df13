#include "certify/certifier.hpp"

#include <algorithm>

#include "certify/rounding_messages.hpp"
#include "problem/checked.hpp"
#include "problem/rounding.hpp"

namespace treesens {

namespace {

constexpr int kRootSweeps = 60;
constexpr int kNodeSweeps = 6;
constexpr int kRootSteps = 20;
constexpr int kNodeSteps = 2;
constexpr int kMostSpare = 2;  // sweeps after a node is closed: more slack makes shorter integers

}  // namespace

Certifier::Certifier(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal,
                     const FactorSets& sets, std::int64_t level, MemoryBudget& budget)
    : problem_(problem),
      forest_(forest),
      clauses_(clauses),
      goal_(goal),
      level_(level),
      sets_(sets),
      branching_(problem, clauses),
      bounds_(problem, goal, sets, BoundStack::Full::sides, budget),
      x_(problem.variables(), 0),
      slack_(problem.rows, 0) {
    for (const auto& bound_level : bounds_.levels()) {
        bound_level->messages.keep_cells();
        bound_level->set_level(problem, goal, level);
    }
    for (const FactorSet* set : {sets.collapsed.get(), sets.full.get()}) {
        if (set == nullptr) continue;
        for (const std::vector<std::int32_t>& groups : set->factor_groups) {
            proof_.factor_group.insert(proof_.factor_group.end(), groups.begin(), groups.end());
            proof_.factor_offset.push_back(static_cast<std::int64_t>(proof_.factor_group.size()));
        }
    }
}

void Certifier::save(std::vector<Saved>& out) {
    out.resize(bounds_.levels().size());
    for (std::size_t i = 0; i < bounds_.levels().size(); ++i) bounds_.levels()[i]->messages.save(out[i]);
}

void Certifier::restore(const std::vector<Saved>& saved) {
    for (std::size_t i = 0; i < bounds_.levels().size(); ++i) bounds_.levels()[i]->messages.restore(saved[i]);
}

Proof Certifier::run(std::int64_t node_limit, Control& control) {
    Domains node(problem_);
    for (const auto& bound_level : bounds_.levels()) bound_level->messages.reset(node, bound_level->warm);
    std::vector<Frame> frames;
    for (bool root = true;; root = false) {
        if (control.expired()) proof_.reason = "time";
        if (static_cast<std::int64_t>(proof_.variable.size()) >= node_limit) proof_.reason = "nodes";
        if (!proof_.reason.empty()) return std::move(proof_);
        bool closed = close(node, root, control);
        if (!proof_.reason.empty()) return std::move(proof_);
        const Split cut = closed ? Split() : split(node);
        if (!closed && cut.variable < 0) {
            closed = close_exactly();
            if (!closed) {
                proof_.reason = "a point was met that cannot be refuted";
                return std::move(proof_);
            }
        }
        if (closed) {
            if (frames.empty()) {
                proof_.complete = true;
                return std::move(proof_);
            }
            node = std::move(frames.back().domains);
            restore(frames.back().saved);
            frames.pop_back();
            continue;
        }
        proof_.variable.push_back(cut.variable);
        proof_.cut.push_back(cut.cut);
        Frame frame;
        frame.domains = node;
        frame.domains.keep(cut.variable, cut.cut + 1, problem_.size[cut.variable] - 1);
        save(frame.saved);
        frames.push_back(std::move(frame));
        node.keep(cut.variable, 0, cut.cut);
    }
}

bool Certifier::close(Domains& node, bool root, Control& control) {
    std::vector<std::int32_t> changed;
    last_ = nullptr;
    if (!clauses_.propagate(node, changed)) {
        proof_.variable.push_back(Proof::kByClauses);
        proof_.cut.push_back(0);
        return true;
    }
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (!node.has(v, x_[v])) x_[v] = node.nearest(v, x_[v]);
    }
    if (bounds_.collapsed() != nullptr && close_by(*bounds_.collapsed(), node, root, control)) return true;
    if (bounds_.full().empty() || control.expired()) return false;
    return close_by(bounds_.side_for(slack_), node, root, control);
}

bool Certifier::close_by(BoundLevel& bound_level, Domains& node, bool root, Control& control) {
    Messages& messages = bound_level.messages;
    last_ = &bound_level;
    messages.sync(node);
    std::int64_t last = messages.bound();
    const int most = root ? kRootSweeps : kNodeSweeps;
    for (int i = 0; i < most && messages.bound() >= 0; ++i) {
        if (messages.sweep(i % 2 == 0, node, control) == Sweep::stopped) return false;
        ++proof_.sweeps;
        const std::int64_t bound = messages.bound();
        const std::int64_t patience = root ? kRootPatience : 2 * (kNodeSweeps - i);
        if (bound >= 0 && stalls(last, bound, patience)) break;
        last = bound;
    }
    if (messages.bound() < 0) return finish_leaf(bound_level, node, control);
    decode(bound_level, node);
    return close_by_steps(bound_level, node, root, control);
}

bool Certifier::close_by_steps(BoundLevel& bound_level, Domains& node, bool root, Control& control) {
    Sweep outcome = Sweep::open;
    MultiplierSteps steps(bound_level.messages.set().rows.size() > 1 ? (root ? kRootSteps : kNodeSteps) : 0);
    while (steps.more() && !control.expired()) {
        const bool better = bound_level.improve_multipliers(x_, node, control, outcome);
        if (bound_level.messages.bound() < 0) return finish_leaf(bound_level, node, control);
        if (better) decode(bound_level, node);
        steps.count(better);
    }
    return false;
}

bool Certifier::finish_leaf(BoundLevel& bound_level, Domains& node, Control& control) {
    Messages& messages = bound_level.messages;
    for (int i = 0; i < kMostSpare && !messages.empty(); ++i) {
        const std::int64_t before = messages.bound();
        if (messages.sweep(i % 2 == 0, node, control) == Sweep::stopped) return false;
        ++proof_.sweeps;
        if (messages.bound() > before + before / 8) break;
    }
    RoundedMessages rounded(problem_, messages, node);
    if (!rounded.round()) return false;
    rounded.drop();
    const bool collapsed = &bound_level == bounds_.collapsed();
    rounded.write(collapsed || !sets_.collapsed ? 0 : sets_.collapsed->factors(), proof_);
    write_leaf(weights(messages), rounded.exponent());
    return true;
}

// A sum of rows has one grid, which need not be that of its rows alone.
Certifier::Weights Certifier::weights(const Messages& messages) const {
    Weights weights(problem_.rows);
    const FactorSet& set = messages.set();
    for (std::size_t m = 0; m < set.rows.size(); ++m) {
        for (const std::int32_t r : set.rows[m]) {
            ensure(weights.multiplier[r] == 0, "a row stands in two sums");
            weights.multiplier[r] = messages.multipliers()[m];
            weights.shift[r] = set.shift[m];
        }
    }
    return weights;
}

void Certifier::decode(const BoundLevel& bound_level, const Domains& node) {
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (!node.has(v, x_[v])) x_[v] = node.nearest(v, x_[v]);
    }
    bound_level.messages.decode(x_);
    evaluate(problem_, forest_, goal_.bound, x_.data(), slack_.data());
    if (is_witness()) proof_.reason = "a point was met that cannot be refuted";
}

bool Certifier::is_witness() const {
    if (!clauses_.satisfied(x_.data())) return false;
    const Score s = goal_.score(problem_, slack_.data());
    return s.hard >= 0 && s.soft >= level_;
}

Split Certifier::split(const Domains& node) {
    Split result;
    if (last_ != nullptr) result = branching_.by_deficit(last_->messages, node, x_);
    if (result.variable < 0) result = branching_.by_clause(node, x_);
    if (result.variable < 0 && !bounds_.full().empty()) {
        bounds_.full()[0]->messages.sync(node);
        result = branching_.by_spread(bounds_.full()[0]->messages, node);
    }
    return result;
}

// All rows are constant over the node: the one that a point of it violates refutes the node without any message.
bool Certifier::close_exactly() {
    evaluate(problem_, forest_, goal_.bound, x_.data(), slack_.data());
    for (std::int32_t r = 0; r < problem_.rows; ++r) {
        if (!goal_.counts(problem_, r) || slack_[r] >= (goal_.soft[r] ? level_ : 0)) continue;
        Weights weights(problem_.rows);
        weights.multiplier[r] = kMultiplierUnit;
        write_leaf(weights, 0);
        proof_.message_offset.push_back(static_cast<std::int64_t>(proof_.message_factor.size()));
        return true;
    }
    return false;
}

void Certifier::write_leaf(const Weights& weights, int exponent) {
    proof_.multiplier.insert(proof_.multiplier.end(), weights.multiplier.begin(), weights.multiplier.end());
    proof_.row_shift.insert(proof_.row_shift.end(), weights.shift.begin(), weights.shift.end());
    proof_.exponent.push_back(exponent);
    proof_.variable.push_back(Proof::kByMessages);
    proof_.cut.push_back(0);
}

}  // namespace treesens
