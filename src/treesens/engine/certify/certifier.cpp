#include "certify/certifier.hpp"

#include <utility>
#include <vector>

#include "certify/rounding_messages.hpp"
#include "problem/checked.hpp"
#include "problem/rounding.hpp"
#include "problem/schedule.hpp"

namespace treesens {

namespace {

constexpr int kMostSpare = 2;  // sweeps after a node is refuted: more slack makes shorter integers

// The low side of every cut first, so that the nodes of the proof are in preorder.
class Certifier : public TreeSearch {
public:
    Certifier(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal, const FactorSets& sets,
              MemoryBudget& budget)
        : TreeSearch(problem, forest, clauses, goal, Gap(), Polishing()),
          sets_(sets),
          bounds_(problem, goal, sets, BoundStack::Full::sides, budget) {
        for (const FactorSet* set : {sets.collapsed.get(), sets.full.get()}) {
            if (set == nullptr) continue;
            for (const std::vector<std::int32_t>& groups : set->factor_groups) {
                proof_.factor_group.insert(proof_.factor_group.end(), groups.begin(), groups.end());
                proof_.factor_offset.push_back(static_cast<std::int64_t>(proof_.factor_group.size()));
            }
        }
        begin_node(Domains(problem), INT64_MAX);
    }

    Proof run(const BoundStack* start, std::int64_t level, std::int64_t node_limit, Control& control) {
        for (const auto& bound_level : bounds_.levels()) {
            bound_level->messages.keep_cells();
            bound_level->set_level(problem_, goal_, level);
        }
        if (start != nullptr) bounds_.warm_start(*start);
        for (const auto& bound_level : bounds_.levels()) bound_level->messages.reset(node_, bound_level->warm);
        proof_.reason = refute(level, node_limit, control);
        proof_.complete = proof_.reason.empty();
        return std::move(proof_);
    }
    std::int64_t work() const override { return bounds_.work(); }

private:
    struct Frame {
        Domains other;  // of the side still to be visited
        std::vector<Saved> saved;
    };

    std::int64_t written() const override { return static_cast<std::int64_t>(proof_.variable.size()); }
    std::int64_t open_upper() const override { return frames_.empty() ? INT64_MIN : INT64_MAX; }
    bool at_root() const override { return node_id_ == 0; }

    void step(std::int64_t, Incumbent& met, Control& control) override {
        tried_ = nullptr;
        leaf_ = Proof::kByClauses;
        if (!enter(frames_.size(), -1)) return;
        leaf_ = Proof::kByMessages;
        move_into_node();
        if (refuted(met, control)) {
            prune();
            return;
        }
        if (met.present()) return;
        if (const Split cut = choose_cut(); cut.variable >= 0)
            split(cut);
        else if (refuted_exactly())
            prune();
        else
            met.offer(goal_.score(problem_, slack_.data()), x_);
    }

    void split(const Split& cut) {
        proof_.variable.push_back(cut.variable);
        proof_.cut.push_back(cut.cut);
        Frame frame{node_, std::vector<Saved>(bounds_.levels().size())};
        frame.other.keep(cut.variable, cut.cut + 1, problem_.size[cut.variable] - 1);
        for (std::size_t i = 0; i < frame.saved.size(); ++i) bounds_.levels()[i]->messages.save(frame.saved[i]);
        frames_.push_back(std::move(frame));
        node_.keep(cut.variable, 0, cut.cut);
        begin_node(std::move(node_), INT64_MAX);
    }

    void next() override {
        proof_.variable.push_back(leaf_);
        proof_.cut.push_back(0);
        finished_ = frames_.empty();
        if (finished_) return;
        const Frame frame = std::move(frames_.back());
        frames_.pop_back();
        begin_node(frame.other, INT64_MAX);
        for (std::size_t i = 0; i < frame.saved.size(); ++i) bounds_.levels()[i]->messages.restore(frame.saved[i]);
    }

    // True if the bounds refute the node; then the leaf is written.
    bool refuted(Incumbent& met, Control& control) {
        if (bounds_.collapsed() != nullptr && refuted_by(*bounds_.collapsed(), met, control)) return true;
        if (bounds_.full().empty() || control.expired()) return false;
        return refuted_by(bounds_.side_for(slack_), met, control);
    }

    bool refuted_by(BoundLevel& bound_level, Incumbent& met, Control& control) {
        Messages& messages = bound_level.messages;
        tried_ = &bound_level;
        messages.sync(node_);
        std::int64_t last = messages.bound();
        const std::int64_t most = at_root() ? schedule.root_sweeps : schedule.proof_sweeps;
        for (std::int64_t i = 0; i < most && messages.bound() >= 0; ++i) {
            if (messages.sweep(i % 2 == 0, node_, control) == Sweep::stopped) return false;
            ++proof_.sweeps;
            const std::int64_t bound = messages.bound();
            const std::int64_t patience = at_root() ? kRootPatience : 2 * (most - i);
            if (bound >= 0 && stalls(last, bound, patience)) break;
            last = bound;
        }
        if (messages.bound() < 0) return finish_leaf(bound_level, control);
        decode(bound_level, met);
        return refuted_by_steps(bound_level, met, control);
    }

    bool refuted_by_steps(BoundLevel& bound_level, Incumbent& met, Control& control) {
        if (bound_level.messages.set().rows.size() < 2) return false;
        Sweep outcome = Sweep::open;
        MultiplierSteps steps(at_root() ? schedule.root_steps : schedule.proof_steps);
        while (steps.more() && !control.expired()) {
            const bool better = bound_level.improve_multipliers(x_, node_, control, outcome);
            if (bound_level.messages.bound() < 0) return finish_leaf(bound_level, control);
            if (better) decode(bound_level, met);
            steps.count(better);
        }
        return false;
    }

    bool finish_leaf(BoundLevel& bound_level, Control& control) {
        Messages& messages = bound_level.messages;
        for (int i = 0; i < kMostSpare && !messages.empty(); ++i) {
            const std::int64_t before = messages.bound();
            if (messages.sweep(i % 2 == 0, node_, control) == Sweep::stopped) return false;
            ++proof_.sweeps;
            if (messages.bound() > before + before / 8) break;
        }
        RoundedMessages rounded(problem_, messages, node_);
        if (!rounded.round()) return false;
        rounded.drop();
        const bool collapsed = &bound_level == bounds_.collapsed();
        rounded.write(collapsed || !sets_.collapsed ? 0 : sets_.collapsed->factors(), proof_);
        const std::size_t first = proof_.add_leaf(problem_.rows, rounded.exponent());
        const FactorSet& set = messages.set();
        for (std::size_t m = 0; m < set.rows.size(); ++m) {
            for (const std::int32_t r : set.rows[m]) {
                ensure(proof_.multiplier[first + r] == 0, "a row is in two sums");
                proof_.multiplier[first + r] = messages.multipliers()[m];
                // A sum of rows has one grid, which may differ from that of its rows.
                proof_.row_shift[first + r] = set.shift[m];
            }
        }
        return true;
    }

    void decode(const BoundLevel& bound_level, Incumbent& met) {
        move_into_node();
        bound_level.messages.decode(x_);
        evaluate(problem_, forest_, goal_.bound, x_.data(), slack_.data());
        if (!clauses_.satisfied(x_.data())) return;
        const Score s = goal_.score(problem_, slack_.data());
        if (s.hard >= 0 && s.soft >= level_) met.offer(s, x_);
    }

    Split choose_cut() {
        Split cut;
        if (tried_ != nullptr) cut = branching_.by_deficit(tried_->messages, node_, x_);
        if (cut.variable < 0) cut = branching_.by_clause(node_, x_);
        if (cut.variable < 0 && !bounds_.full().empty()) {
            bounds_.full()[0]->messages.sync(node_);
            cut = branching_.by_spread(bounds_.full()[0]->messages, node_);
        }
        return cut;
    }

    // All rows are constant over the node: the row that a point violates refutes the node without messages.
    bool refuted_exactly() {
        evaluate(problem_, forest_, goal_.bound, x_.data(), slack_.data());
        for (std::int32_t r = 0; r < problem_.rows; ++r) {
            if (!goal_.counts(problem_, r) || slack_[r] >= (goal_.soft[r] ? level_ : 0)) continue;
            proof_.multiplier[proof_.add_leaf(problem_.rows, 0) + r] = kMultiplierUnit;
            proof_.message_offset.push_back(static_cast<std::int64_t>(proof_.message_factor.size()));
            return true;
        }
        return false;
    }

    const FactorSets& sets_;
    BoundStack bounds_;
    BoundLevel* tried_ = nullptr;            // the last bound tried at this node
    std::int32_t leaf_ = Proof::kByClauses;  // the outcome if the node is left now
    std::vector<Frame> frames_;
    Proof proof_;
};

void write_boxes(const Problem& problem, const BoxLayer& layer, Proof& proof) {
    const std::size_t first = proof.add_leaf(problem.rows, 0);
    for (const std::int32_t r : layer.rows) proof.multiplier[first + r] = 1;
    proof.message_offset.push_back(0);
}

void write_nodes(const Problem& problem, const CutTree& tree, const BoxLayers& layers, Proof& proof) {
    std::vector<std::int64_t> waiting{0};
    while (!waiting.empty()) {
        const CutTree::Node& node = tree.nodes()[waiting.back()];
        waiting.pop_back();
        proof.cut.push_back(node.cut);
        if (node.variable >= 0) {
            proof.variable.push_back(node.variable);
            waiting.push_back(node.high);
            waiting.push_back(node.low);
        } else if (node.layer == CutTree::kByClauses) {
            proof.variable.push_back(Proof::kByClauses);
        } else {
            proof.variable.push_back(Proof::kByMessages);
            write_boxes(problem, layers.layers[node.layer], proof);
        }
    }
}

// Rows that cancel need all copies of a tree together; others are sums over single trees.
void write_factors(const Problem& problem, const BoxLayers& layers, Proof& proof) {
    for (const BoxLayer& layer : layers.layers) {
        if (layer.rows.size() > 1) return;
    }
    for (std::int32_t g = 0; g < problem.groups(); ++g) {
        proof.factor_group.push_back(g);
        proof.factor_offset.push_back(g + 1);
    }
}

}  // namespace

Proof certify_by_messages(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal,
                          const FactorSets& sets, const BoundStack* start, std::int64_t level, std::int64_t node_limit,
                          MemoryBudget& budget, Control& control) {
    return Certifier(problem, forest, clauses, goal, sets, budget).run(start, level, node_limit, control);
}

Proof certify_by_overlap(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal,
                         const BoxLayers& layers, std::int64_t level, std::int64_t node_limit, MemoryBudget& budget,
                         Control& control) {
    Proof proof;
    CutTree tree;
    OverlapProver prover(problem, forest, clauses, goal, layers, Gap(), budget);
    proof.reason = prover.record(tree, level, node_limit, control);
    if (!proof.reason.empty()) return proof;
    write_nodes(problem, tree, layers, proof);
    write_factors(problem, layers, proof);
    proof.complete = true;
    return proof;
}

}  // namespace treesens
