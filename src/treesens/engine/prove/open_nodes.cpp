#include "prove/open_nodes.hpp"

#include <algorithm>
#include <utility>

namespace treesens {

namespace {

bool is_below(const OpenNode& a, const OpenNode& b) {
    // Of equal bounds the deeper node: it is nearer to its end.
    return a.upper != b.upper ? a.upper < b.upper : a.path.size() < b.path.size();
}

}  // namespace

std::int64_t OpenNode::bytes() const {
    return domains.bytes() + static_cast<std::int64_t>(8 * path.size() + 16 * start.size() + sizeof(OpenNode));
}

OpenNodes::~OpenNodes() {
    clear();
}

void OpenNodes::clear() {
    for (const OpenNode& node : dive_) budget_.release(node.bytes());
    for (const OpenNode& node : rest_) budget_.release(node.bytes());
    dive_.clear();
    rest_.clear();
    ends_ = 0;
    bytes_ = 0;
}

// With what it starts from: two children share what their parent left.
std::int64_t OpenNodes::all_bytes(const OpenNode& node) {
    std::int64_t sum = node.bytes();
    for (const auto& saved : node.start) sum += saved ? saved->bytes() / 2 : 0;
    return sum;
}

std::int64_t OpenNodes::upper() const {
    std::int64_t most = rest_.empty() ? INT64_MIN : rest_.front().upper;
    for (const OpenNode& node : dive_) most = std::max(most, node.upper);
    return most;
}

bool OpenNodes::goes_on(std::int64_t upper, std::int64_t level) const {
    if (is_endless() || is_full()) return true;
    const std::int64_t best = OpenNodes::upper();
    if (upper >= best) return true;
    const double above = static_cast<double>(best) - static_cast<double>(level);
    return static_cast<double>(best) - static_cast<double>(upper) <= limits_.share * above;
}

void OpenNodes::put_off(OpenNode node) {
    bytes_ += all_bytes(node);
    budget_.charge_anyway(node.bytes());
    dive_.push_back(std::move(node));
}

void OpenNodes::end_dive() {
    // Reserves all memory first: a node lost halfway for lack of memory would count as proved.
    if (rest_.capacity() < rest_.size() + dive_.size()) rest_.reserve(2 * rest_.size() + dive_.size());
    for (OpenNode& node : dive_) {
        rest_.push_back(std::move(node));
        std::push_heap(rest_.begin(), rest_.end(), is_below);
    }
    dive_.clear();
}

OpenNode OpenNodes::take_from(std::vector<OpenNode>& nodes) {
    OpenNode node = std::move(nodes.back());
    nodes.pop_back();
    bytes_ -= all_bytes(node);
    budget_.release(node.bytes());
    return node;
}

OpenNode OpenNodes::take() {
    if (!dive_.empty() && (++ends_ < limits_.ends || is_full())) return take_from(dive_);
    end_dive();
    ends_ = 0;
    std::pop_heap(rest_.begin(), rest_.end(), is_below);
    return take_from(rest_);
}

bool OpenNodes::give(OpenNode& out) {
    if (!is_endless()) end_dive();
    if (!rest_.empty()) {
        std::pop_heap(rest_.begin(), rest_.end(), is_below);
        out = take_from(rest_);
        return true;
    }
    if (dive_.empty()) return false;
    std::rotate(dive_.begin(), dive_.begin() + 1, dive_.end());
    out = take_from(dive_);
    return true;
}

}  // namespace treesens
