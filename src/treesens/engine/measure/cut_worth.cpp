#include "measure/cut_worth.hpp"

#include <algorithm>
#include <limits>

namespace treesens {

CutWorth::CutWorth(std::vector<Cell> cells, std::int32_t tables, std::vector<Wanted> wanted)
    : tables_(tables), wanted_(std::move(wanted)), is_touched_(cells.size(), 0) {
    cut_offset_.push_back(0);
    for (const Cell n : cells) cut_offset_.push_back(cut_offset_.back() + n);
    losses_.assign(static_cast<std::size_t>(cut_offset_.back()) * 2 * wanted_.size(), 0.0);
    is_open_.assign(static_cast<std::size_t>(cut_offset_.back()), 0);
}

void CutWorth::reset() {
    for (const std::int32_t f : touched_) {
        is_touched_[f] = 0;
        std::fill(losses(f, 0, 0), losses_.data() + cut_offset_[f + 1] * 2 * wanted_.size(), 0.0);
        std::fill(is_open_.begin() + cut_offset_[f], is_open_.begin() + cut_offset_[f + 1], std::uint8_t{0});
    }
    touched_.clear();
}

std::int32_t CutWorth::add_leaf() {
    const std::size_t number = static_cast<std::size_t>(used_++);
    if (branches_.size() <= number) {
        branches_.resize(2 * number + 64);
        low_.resize(branches_.size() * tables_);
        high_.resize(branches_.size() * tables_);
        apart_.resize(branches_.size());
    }
    branches_[number].feature = -1;
    apart_[number] = 0;
    return used_ - 1;
}

std::int32_t CutWorth::add_branch(std::int32_t feature, Cell cut, std::int32_t left, std::int32_t right,
                                  const std::vector<std::int32_t>& tables) {
    const std::int32_t number = add_leaf();
    branches_[number] = {feature, cut, left, right};
    for (const std::int32_t t : tables) {
        low(number, t) = std::min(low(left, t), low(right, t));
        high(number, t) = std::max(high(left, t), high(right, t));
    }
    apart_[number] = std::max(apart_[left], apart_[right]);
    if (is_touched_[feature] == 0) {
        is_touched_[feature] = 1;
        touched_.push_back(feature);
    }
    is_open_[cut_offset_[feature] + cut] = 1;
    return number;
}

// Down to the branch with the greatest value; `outside` is the greatest of all that is not below.
template <typename Value>
void CutWorth::walk(std::int32_t root, std::size_t wanted, const Value& value) {
    const double whole = static_cast<double>(value(root));
    double outside = -std::numeric_limits<double>::infinity();
    std::int32_t at = root;
    while (branches_[at].feature >= 0) {
        const Branch& branch = branches_[at];
        const bool left = value(branch.left) >= value(branch.right);
        const std::int32_t best = left ? branch.left : branch.right;
        const std::int32_t other = left ? branch.right : branch.left;
        outside = std::max(outside, static_cast<double>(value(other)));
        if (outside >= whole) return;
        // The side without the best one.
        losses(branch.feature, branch.cut, left ? 1 : 0)[wanted] += whole - outside;
        at = best;
    }
}

void CutWorth::end_tree(std::int32_t root, const std::vector<std::int32_t>& tables, bool varied) {
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
        const std::int32_t t = wanted_[i].table;
        if (t < 0) {
            if (varied) walk(root, i, [&](std::int32_t b) { return apart_[b]; });
            continue;
        }
        if (std::find(tables.begin(), tables.end(), t) == tables.end()) continue;
        if (wanted_[i].sign > 0)
            walk(root, i, [&](std::int32_t b) { return high_[place(b, t)]; });
        else
            walk(root, i, [&](std::int32_t b) { return -low_[place(b, t)]; });
    }
}

}  // namespace treesens
