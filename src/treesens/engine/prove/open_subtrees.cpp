// The open subtrees of a prover: backtracking, and subtrees that change hands.
#include <algorithm>

#include "prove/prover.hpp"

namespace treesens::search {

void Prover::prune(const Messages* pruned_by) {
    audit_.prune(node_, level_, pruned_by);
    pruned_upper_ = std::max(pruned_upper_, std::min(node_upper_, level_ - 1));
    backtrack();
}

void Prover::backtrack() {
    while (!frames_.empty() && !frames_.back().pending) {
        for (const Saved& s : frames_.back().saved) {
            if (s.present) budget_.release(s.bytes());
        }
        frames_.pop_back();
    }
    if (frames_.empty()) {
        finished_ = true;
        return;
    }
    Frame& frame = frames_.back();
    frame.pending = false;
    visit(std::move(frame.other), frame.upper);
}

bool Prover::donate(Subproblem& out) {
    const auto frame = std::find_if(frames_.begin(), frames_.end(), [](const Frame& f) { return f.pending; });
    if (finished_ || frame == frames_.end()) return false;
    frame->pending = false;
    out.upper = frame->upper;
    out.domains = std::move(frame->other);
    out.start.assign(bound_levels_.size(), Saved());
    for (std::size_t i = 0; i < bound_levels_.size(); ++i) {
        for (auto f = std::make_reverse_iterator(frame + 1); f != frames_.rend() && !out.start[i].present; ++f) {
            if (!f->saved[i].present) continue;
            out.start[i].present = true;
            out.start[i].reduced = f->saved[i].reduced;
            out.start[i].multiplier = f->saved[i].multiplier;
        }
    }
    return true;
}

void Prover::adopt(Subproblem subproblem) {
    for (std::size_t i = 0; i < bound_levels_.size(); ++i) {
        // Which entries are alive follows from the domains; only the messages are taken over.
        const Saved& start = subproblem.start[i];
        bound_levels_[i]->warm = start.present;
        bound_levels_[i]->loaded = -1;
        if (!start.present) continue;
        bound_levels_[i]->messages.set_multipliers(start.multiplier);
        bound_levels_[i]->messages.set_reduced(start.reduced);
    }
    finished_ = false;
    adopted_ = true;
    visit(std::move(subproblem.domains), subproblem.upper);
}

}  // namespace treesens::search
