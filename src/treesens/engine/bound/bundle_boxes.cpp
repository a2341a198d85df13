#include <algorithm>
#include <numeric>
#include <utility>

#include "bound/bundles.hpp"
#include "problem/checked.hpp"

namespace treesens {

BundleBoxes::BundleBoxes(const Problem& p, const Forest& f) : p_(p), f_(f), column_(p.variables(), -1) {
    for (const std::int32_t n : p.size) path_.push_back({0, n - 1});
}

void BundleBoxes::clear() {
    for (const std::int32_t v : scope_) column_[v] = -1;
    scope_.clear();
    ranges_.clear();
    size_ = 1;
}

// The boxes among list_[first, last) that meet one side of a cut, at the end of the list.
void BundleBoxes::divide(std::int32_t node, std::size_t first, std::size_t last, bool to_left) {
    const TreeNode& n = f_.nodes[node];
    const std::int32_t column = column_[n.variable];
    const std::size_t end = list_.size();
    list_.resize(end + last - first);
    std::int32_t* out = list_.data() + end;
    const std::int32_t* in = list_.data() + first;
    const std::int32_t* stop = list_.data() + last;
    if (column < 0) {
        out = std::copy(in, stop, out);
    } else {
        const Range* range = ranges_[column].data();
        for (; in != stop; ++in) {
            *out = *in;
            out += to_left ? range[*in].low <= n.cut : range[*in].high > n.cut;
        }
    }
    list_.resize(static_cast<std::size_t>(out - list_.data()));
}

void BundleBoxes::count(std::int32_t node, std::size_t first, std::size_t last, std::int64_t most) {
    if (node < 0 || first == last || counted_ > most) return;
    const std::size_t begin = list_.size();
    divide(node, first, last, true);
    const std::size_t middle = list_.size();
    divide(node, first, last, false);
    const std::size_t end = list_.size();
    counted_ += static_cast<std::int64_t>(end - begin) - static_cast<std::int64_t>(last - first);
    count(f_.nodes[node].left, begin, middle, most);
    count(f_.nodes[node].right, middle, end, most);
    list_.resize(begin);
}

std::int64_t BundleBoxes::size_with(std::int32_t group, std::int64_t most) {
    list_.resize(static_cast<std::size_t>(size_));
    std::iota(list_.begin(), list_.end(), 0);
    counted_ = size_;
    count(f_.root[group], 0, list_.size(), most);
    return counted_;
}

void BundleBoxes::widen_scope(std::int32_t node) {
    if (node < 0) return;
    const std::int32_t v = f_.nodes[node].variable;
    if (column_[v] < 0) {
        column_[v] = narrow<std::int32_t>(scope_.size());
        scope_.push_back(v);
        ranges_.emplace_back(size_, Range{0, p_.size[v] - 1});
    }
    widen_scope(f_.nodes[node].left);
    widen_scope(f_.nodes[node].right);
}

void BundleBoxes::write_boxes(std::size_t first, std::size_t last) {
    for (std::size_t c = 0; c < scope_.size(); ++c) {
        const Range path = path_[scope_[c]];
        for (std::size_t i = first; i < last; ++i) {
            const Range range = ranges_[c][list_[i]];
            next_[c].push_back({std::max(range.low, path.low), std::min(range.high, path.high)});
        }
    }
}

void BundleBoxes::write(std::int32_t node, std::size_t first, std::size_t last) {
    if (first == last) return;
    if (node < 0) {
        write_boxes(first, last);
        return;
    }
    const TreeNode& n = f_.nodes[node];
    Range& range = path_[n.variable];
    const Range here = range;
    const std::size_t begin = list_.size();
    divide(node, first, last, true);
    range = {here.low, std::min(here.high, n.cut)};
    write(n.left, begin, list_.size());
    list_.resize(begin);
    divide(node, first, last, false);
    range = {std::max(here.low, n.cut + 1), here.high};
    write(n.right, begin, list_.size());
    list_.resize(begin);
    range = here;
}

void BundleBoxes::add(std::int32_t group) {
    widen_scope(f_.root[group]);
    next_.assign(scope_.size(), {});
    list_.resize(static_cast<std::size_t>(size_));
    std::iota(list_.begin(), list_.end(), 0);
    write(f_.root[group], 0, list_.size());
    std::swap(ranges_, next_);
    if (!ranges_.empty()) size_ = static_cast<std::int64_t>(ranges_[0].size());
}

}  // namespace treesens
