#include "measure/packed_trees.hpp"

#include <algorithm>

#include "problem/checked.hpp"

namespace treesens {

namespace {

// Inputs that go down together, so that the memory is waited for once.
constexpr std::size_t kTogether = 8;
// Levels between two looks at whether all have arrived.
constexpr std::int32_t kLevels = 8;

}  // namespace

PackedWay PackedTrees::pack(std::int32_t root) {
    PackedWay way;
    way.root = copy(root, 0, way);
    return way;
}

Parted PackedTrees::part(const PackedWay& whole) {
    Parted parted;
    parted.until.sets = parted.rest.sets = whole.sets;
    parted.until.root = stop_early(whole.root, 0, parted);
    return parted;
}

std::int32_t PackedTrees::stop_early(std::int32_t number, std::int32_t depth, Parted& parted) {
    const Step whole = steps_[number];
    const auto mine = narrow<std::int32_t>(steps_.size());
    steps_.push_back(whole);
    const bool leaf = whole.span == 0;
    if (leaf || trees_.is_varied(whole.column)) {
        parted.until.depth = std::max(parted.until.depth, depth);
        if (!leaf) parted.rest.depth = std::max(parted.rest.depth, height(number));
        const std::uint32_t arrival = leaf ? whole.first : static_cast<std::uint32_t>(~number);
        steps_[mine] = {arrival, 0, 0, {mine, mine}};
        return mine;
    }
    const std::int32_t left = stop_early(whole.below[0], depth + 1, parted);
    const std::int32_t right = stop_early(whole.below[1], depth + 1, parted);
    steps_[mine].below[0] = left;
    steps_[mine].below[1] = right;
    return mine;
}

std::int32_t PackedTrees::height(std::int32_t number) const {
    const Step& step = steps_[number];
    return step.span == 0 ? 0 : 1 + std::max(height(step.below[0]), height(step.below[1]));
}

std::int32_t PackedTrees::copy(std::int32_t number, std::int32_t depth, PackedWay& way) {
    const ChoiceNode& node = trees_.node(number);
    const auto mine = narrow<std::int32_t>(steps_.size());
    steps_.emplace_back();
    if (node.feature < 0) {
        way.depth = std::max(way.depth, depth);
        steps_[mine] = {narrow<std::uint32_t>(node.leaf), 0, 0, {mine, mine}};
        return mine;
    }
    way.sets = way.sets || node.set >= 0;
    copy_test(node, steps_[mine]);
    const std::int32_t left = copy(node.left, depth + 1, way);
    const std::int32_t right = copy(node.right, depth + 1, way);
    steps_[mine].below[0] = left;
    steps_[mine].below[1] = right;
    return mine;
}

void PackedTrees::copy_test(const ChoiceNode& node, Step& step) {
    step.column = node.feature;
    const Cell count = trees_.cells()[node.feature];
    if (node.set >= 0) {
        step.first = narrow<std::uint32_t>(goes_right_.size());
        step.span = kSet;
        const CellSplit split = trees_.split(node);
        for (Cell c = 0; c < count; ++c) goes_right_.push_back(split.goes_left(c) ? 0 : 1);
        return;
    }
    // The missing cell is the last one, and goes where it is sent, whatever the cut is.
    const bool absent = node.absent >= 0;
    const Cell first = absent ? std::min(node.cut + 1, node.absent) : node.cut + 1;
    const Cell end = absent && node.default_left ? node.absent : count;
    if (first >= end) {
        // No cell goes right, and the node is no leaf.
        step.first = UINT32_MAX;
        step.span = 1;
        return;
    }
    step.first = narrow<std::uint32_t>(first);
    step.span = narrow<std::uint32_t>(end - first);
}

void PackedTrees::descend(const PackedWay& way, const Cell* cells, std::size_t width,
                          const std::vector<std::int32_t>& rows, std::vector<Arrival>& found) const {
    descend_all(way, cells, width, rows, [&](std::size_t) { return way.root; }, found);
}

void PackedTrees::go_on(const PackedWay& way, const Cell* cells, std::size_t width,
                        const std::vector<std::int32_t>& rows, const std::vector<Arrival>& from,
                        std::vector<Arrival>& found) const {
    descend_all(way, cells, width, rows, [&](std::size_t i) { return ~from[i]; }, found);
}

template <typename Start>
void PackedTrees::descend_all(const PackedWay& way, const Cell* cells, std::size_t width,
                              const std::vector<std::int32_t>& rows, const Start& start,
                              std::vector<Arrival>& found) const {
    found.resize(rows.size());
    const Cell* inputs[kTogether];
    std::int32_t at[kTogether];
    for (std::size_t i = 0; i < rows.size(); i += kTogether) {
        const std::size_t count = std::min(kTogether, rows.size() - i);
        for (std::size_t j = 0; j < kTogether; ++j) {
            const std::size_t place = i + std::min(j, count - 1);
            inputs[j] = cells + static_cast<std::size_t>(rows[place]) * width;
            at[j] = start(place);
        }
        if (way.sets)
            descend_block<true>(way, inputs, at);
        else
            descend_block<false>(way, inputs, at);
        for (std::size_t j = 0; j < count; ++j) found[i + j] = static_cast<Arrival>(steps_[at[j]].first);
    }
}

template <bool kSets>
void PackedTrees::descend_block(const PackedWay& way, const Cell* const* inputs, std::int32_t* at) const {
    const Step* steps = steps_.data();
    for (std::int32_t level = 0; level < way.depth; ++level) {
        for (std::size_t j = 0; j < kTogether; ++j) {
            const Step& step = steps[at[j]];
            const auto cell = static_cast<std::uint32_t>(inputs[j][step.column]);
            bool right = cell - step.first < step.span;
            if (kSets && step.span == kSet) right = goes_right_[step.first + cell] != 0;
            at[j] = step.below[right ? 1 : 0];
        }
        if (level % kLevels == kLevels - 1 &&
            std::all_of(at, at + kTogether, [&](std::int32_t n) { return steps[n].span == 0; })) {
            return;
        }
    }
}

}  // namespace treesens
