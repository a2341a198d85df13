#include "problem/leaf_boxes.hpp"

#include <algorithm>

namespace treesens {

void LeafBoxes::load(std::int32_t group) {
    first_leaf_ = problem_.group_offset[group];
    const std::int64_t leaves = problem_.group_offset[group + 1] - first_leaf_;
    box_.clear();
    offset_.clear();
    if (problem_.has_boxes()) {
        const std::int64_t first = problem_.leaf_offset[first_leaf_];
        for (std::int64_t l = 0; l <= leaves; ++l) box_.push_back(problem_.leaf_offset[first_leaf_ + l] - first);
        for (std::int64_t b = 0; b <= box_.back(); ++b) offset_.push_back(problem_.box_offset[first + b]);
        literal_ = problem_.literals.data();
        return;
    }
    walked_.clear();
    ways_.clear();
    made_.clear();
    follow(forest_.root[group]);
    std::stable_sort(ways_.begin(), ways_.end(), [](const Way& a, const Way& b) { return a.leaf < b.leaf; });
    box_.push_back(0);
    offset_.push_back(0);
    auto way = ways_.begin();
    for (std::int64_t l = first_leaf_; l < first_leaf_ + leaves; ++l) {
        for (; way != ways_.end() && way->leaf == l; ++way) {
            made_.insert(made_.end(), walked_.begin() + way->first, walked_.begin() + way->last);
            offset_.push_back(static_cast<std::int64_t>(made_.size()));
        }
        box_.push_back(static_cast<std::int64_t>(offset_.size()) - 1);
    }
    literal_ = made_.data();
}

void LeafBoxes::follow(std::int32_t node) {
    if (node < 0) {
        const std::int64_t first = static_cast<std::int64_t>(walked_.size());
        for (const std::int32_t v : narrowed_) walked_.push_back({v, low_[v], high_[v]});
        ways_.push_back({first, static_cast<std::int64_t>(walked_.size()), ~node});
        return;
    }
    const TreeNode n = forest_.nodes[node];
    const Cell low = low_[n.variable];
    const Cell high = high_[n.variable];
    if (high <= n.cut || low > n.cut) {
        follow(high <= n.cut ? n.left : n.right);
        return;
    }
    const bool is_new = low == 0 && high == problem_.size[n.variable] - 1;
    if (is_new) narrowed_.push_back(n.variable);
    high_[n.variable] = n.cut;
    follow(n.left);
    high_[n.variable] = high;
    low_[n.variable] = n.cut + 1;
    follow(n.right);
    low_[n.variable] = low;
    if (is_new) narrowed_.pop_back();
}

bool LeafBoxes::same(const LeafBoxes& one, std::int64_t leaf, const LeafBoxes& other, std::int64_t its) {
    const std::int64_t mine = one.box_[leaf - one.first_leaf_];
    const std::int64_t theirs = other.box_[its - other.first_leaf_];
    const std::int64_t boxes = one.box_[leaf - one.first_leaf_ + 1] - mine;
    if (other.box_[its - other.first_leaf_ + 1] - theirs != boxes) return false;
    for (std::int64_t b = 0; b < boxes; ++b) {
        const bool equal =
            std::equal(one.literal_ + one.offset_[mine + b], one.literal_ + one.offset_[mine + b + 1],
                       other.literal_ + other.offset_[theirs + b], other.literal_ + other.offset_[theirs + b + 1],
                       [](const Literal& l, const Literal& k) {
                           return l.variable == k.variable && l.low == k.low && l.high == k.high;
                       });
        if (!equal) return false;
    }
    return true;
}

}  // namespace treesens
