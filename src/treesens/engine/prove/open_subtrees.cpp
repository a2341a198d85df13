// The open subtrees of a prover: the two children of a node, their start states, and transfers between provers.
#include <algorithm>
#include <utility>

#include "prove/prover.hpp"
#include "prove/subproblem.hpp"

namespace treesens {

void Prover::split(const Split& cut) {
    const Cell last = problem_.size[cut.variable] - 1;
    const bool low_first = x_[cut.variable] <= cut.cut;
    OpenNode other = child_of_node();
    if (watches_ && path_.empty()) {
        root_ = other;
        root_.path.clear();
    }
    other.variable = cut.variable;
    OpenNode first = other;
    first.domains.keep(cut.variable, low_first ? 0 : cut.cut + 1, low_first ? cut.cut : last);
    other.domains.keep(cut.variable, low_first ? cut.cut + 1 : 0, low_first ? last : cut.cut);
    open_.put_off(std::move(other));
    if (open_.goes_on(first.upper, level_)) {
        visit(std::move(first));
        return;
    }
    open_.put_off(std::move(first));
    next();
}

// All of the node at work, one level below it.
OpenNode Prover::child_of_node() {
    OpenNode child;
    child.upper = node_upper_;
    child.path = path_;
    child.path.push_back(node_id_);
    leave_messages(child);
    child.domains = node_;
    return child;
}

// The children's start state: the messages of this node if there are any, else its own start state.
void Prover::leave_messages(OpenNode& child) {
    child.start = start_;
    for (std::size_t i = 0; i < bounds_.levels().size(); ++i) {
        BoundLevel& bound_level = *bounds_.levels()[i];
        if (bound_level.loaded != node_id_) continue;
        bound_level.messages.sync(node_);
        const Messages& m = bound_level.messages;
        const std::int64_t bytes =
            static_cast<std::int64_t>(4 * m.reduced().size()) + m.set().entries() / 8 + node_.bytes() + 256;
        // Without memory the children start from an older ancestor: slower, but correct.
        if (budget_.room() < 2 * bytes || !budget_.try_charge(bytes)) continue;
        MemoryBudget& budget = budget_;
        child.start[i] = std::shared_ptr<const SavedMessages>(new SavedMessages(m.saved_messages()),
                                                              [&budget, bytes](const SavedMessages* saved) {
                                                                  budget.release(bytes);
                                                                  delete saved;
                                                              });
    }
}

void Prover::next() {
    if (open_.empty()) {
        finished_ = true;
        return;
    }
    visit(open_.take());
}

bool Prover::donate(OpenNode& out) {
    if (finished_) return false;
    if (open_.give(out)) return true;
    if (phase_ != Phase::part || !part_->donate(node_, out)) return false;
    out.upper = std::min(out.upper, node_upper_);
    out.start.resize(bounds_.levels().size());
    return true;
}

void Prover::take_back(OpenNode node) {
    open_.put_off(std::move(node));
}

void Prover::adopt(OpenNode subtree) {
    // The ancestors' indices belong to another prover.
    bounds_.forget_nodes();
    subtree.path.clear();
    finished_ = false;
    adopted_ = true;
    visit(std::move(subtree));
}

}  // namespace treesens
