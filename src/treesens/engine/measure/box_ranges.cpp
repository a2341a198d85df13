#include "measure/box_ranges.hpp"

#include <algorithm>
#include <limits>

namespace treesens {

namespace {

constexpr Wide kLeast = std::numeric_limits<Wide>::min();
constexpr Wide kMost = std::numeric_limits<Wide>::max();
// Combinations of leaves of one tree that are looked at together; beyond them choices are bounded one by one.
constexpr std::int32_t kMostArrivals = 192;

}  // namespace

BoxRanges::BoxRanges(const ChoiceTrees& trees, std::vector<Wide> base, Compared compared, std::vector<Wanted> wanted)
    : trees_(trees),
      base_(std::move(base)),
      compared_(compared),
      choices_(trees.choices()),
      tables_(trees.tables()),
      blocks_(trees.blocks()),
      cuts_(trees.cells(), trees.tables(), std::move(wanted)) {
    const std::size_t all = static_cast<std::size_t>(tables_) * choices_;
    result_.upper.resize(all);
    result_.lower.resize(all);
    const std::size_t pairs = static_cast<std::size_t>(blocks_) * blocks_;
    result_.apart_upper.resize(pairs);
    result_.apart_lower.resize(pairs);
    tree_apart_upper_.resize(pairs);
    tree_apart_lower_.resize(pairs);
    block_most_.resize(2 * static_cast<std::size_t>(blocks_));
    block_least_.resize(2 * static_cast<std::size_t>(blocks_));
    for (const ChoiceTree& tree : trees.trees()) most_classes_ = std::max(most_classes_, tree.classes);
    class_upper_.resize(static_cast<std::size_t>(tables_) * most_classes_);
    class_lower_.resize(class_upper_.size());
    class_value_.resize(class_upper_.size());
}

const Ranges& BoxRanges::bound_apart(RangeBox& box) {
    cuts_.reset();
    std::fill(result_.upper.begin(), result_.upper.end(), 0);
    std::fill(result_.lower.begin(), result_.lower.end(), 0);
    const Wide apart = base_[compared_.high] - base_[compared_.low];
    std::fill(result_.apart_upper.begin(), result_.apart_upper.end(), apart);
    std::fill(result_.apart_lower.begin(), result_.apart_lower.end(), apart);
    for (const ChoiceTree& tree : trees_.trees()) {
        if (tree.tables.empty()) continue;
        if (tree.varied)
            bound_varied(tree, box);
        else if (compared_.high != compared_.low)
            compare_plain(tree, box);
    }
    return result_;
}

const Ranges& BoxRanges::bound_all(RangeBox& box) {
    for (std::int32_t t = 0; t < tables_; ++t) {
        result_.upper[at(t)] += base_[t];
        result_.lower[at(t)] += base_[t];
    }
    for (const ChoiceTree& tree : trees_.trees()) {
        if (!tree.tables.empty() && !tree.varied) bound_plain(tree, box);
    }
    for (std::int32_t t = 0; t < tables_; ++t) {
        Wide* upper = result_.upper.data() + at(t);
        Wide* lower = result_.lower.data() + at(t);
        for (std::int32_t s = 1; s < choices_; ++s) {
            upper[s] += upper[s - 1];
            lower[s] += lower[s - 1];
        }
    }
    result_.settled = cuts_.none();
    return result_;
}

// The open splits below a node, with the ranges of the leaves that the box meets.
std::int32_t BoxRanges::follow(const RangeBox& box, std::int32_t number, const std::vector<std::int32_t>& tables) {
    while (true) {
        const ChoiceNode& node = trees_.node(number);
        if (node.feature < 0) {
            const std::int32_t leaf = cuts_.add_leaf();
            for (const std::int32_t t : tables) cuts_.low(leaf, t) = cuts_.high(leaf, t) = trees_.value(node.leaf, t);
            return leaf;
        }
        const Cell low = box.low[node.feature];
        const Cell high = box.high[node.feature];
        const Sides sides = trees_.sides(node, low, high);
        if (sides != kBoth) {
            number = sides == kLeft ? node.left : node.right;
            continue;
        }
        const std::int32_t left = follow(box, node.left, tables);
        const std::int32_t right = follow(box, node.right, tables);
        return cuts_.add_branch(node.feature, trees_.parting(node, low, high), left, right, tables);
    }
}

void BoxRanges::bound_plain(const ChoiceTree& tree, const RangeBox& box) {
    cuts_.begin_tree();
    const std::int32_t root = follow(box, tree.root, tree.tables);
    cuts_.end_tree(root, tree.tables, false);
    for (const std::int32_t t : tree.tables) {
        result_.upper[at(t)] += cuts_.high(root, t);
        result_.lower[at(t)] += cuts_.low(root, t);
    }
}

// What one leaf is worth on one side and on the other, for a tree that no choice changes.
void BoxRanges::compare_plain(const ChoiceTree& tree, const RangeBox& box) {
    Wide most = kLeast;
    Wide least = kMost;
    std::vector<std::int32_t> open{tree.root};
    while (!open.empty()) {
        const ChoiceNode& node = trees_.node(open.back());
        open.pop_back();
        if (node.feature < 0) {
            const Wide v = trees_.value(node.leaf, compared_.high) - trees_.value(node.leaf, compared_.low);
            most = std::max(most, v);
            least = std::min(least, v);
            continue;
        }
        const Sides sides = trees_.sides(node, box.low[node.feature], box.high[node.feature]);
        if ((sides & kLeft) != 0) open.push_back(node.left);
        if ((sides & kRight) != 0) open.push_back(node.right);
    }
    for (Wide& v : result_.apart_upper) v += most;
    for (Wide& v : result_.apart_lower) v += least;
}

void BoxRanges::bound_varied(const ChoiceTree& tree, RangeBox& box) {
    std::fill(class_upper_.begin(), class_upper_.end(), kLeast);
    std::fill(class_lower_.begin(), class_lower_.end(), kMost);
    std::fill(tree_apart_upper_.begin(), tree_apart_upper_.end(), kLeast);
    std::fill(tree_apart_lower_.begin(), tree_apart_lower_.end(), kMost);
    arrivals_ = 0;
    items_.clear();
    classes_.clear();
    for (std::int32_t k = 0; k < tree.classes; ++k) classes_.push_back(k);
    items_.push_back({tree.root, 0, tree.classes});
    cuts_.begin_tree();
    const std::int32_t root = together(tree, box, 0);
    cuts_.end_tree(root, tree.tables, true);
    if (arrivals_ > kMostArrivals) {
        std::fill(class_upper_.begin(), class_upper_.end(), kLeast);
        std::fill(class_lower_.begin(), class_lower_.end(), kMost);
        classes_.resize(tree.classes);
        for (std::int32_t k = 0; k < tree.classes; ++k) classes_[k] = k;
        each_alone(tree, box, tree.root, 0, tree.classes);
        // What one side reaches is no longer tied to what the other one does.
        std::fill(tree_apart_upper_.begin(), tree_apart_upper_.end(), kLeast);
        std::fill(tree_apart_lower_.begin(), tree_apart_lower_.end(), kMost);
        set_blocks(tree, class_upper_, class_lower_);
    }
    add_tree(tree);
}

// Splits the classes of an item at a node about a varied feature; the second half becomes an item of its own.
void BoxRanges::part_classes(std::size_t place) {
    const Item item = items_[place];
    const ChoiceNode& node = trees_.node(item.node);
    const std::int32_t start = static_cast<std::int32_t>(classes_.size());
    for (const bool left : {true, false}) {
        const std::int32_t from = static_cast<std::int32_t>(classes_.size());
        for (std::int32_t i = 0; i < item.count; ++i) {
            const std::int32_t k = classes_[item.first + i];
            if (trees_.goes_left(node, k) == left) classes_.push_back(k);
        }
        const std::int32_t count = static_cast<std::int32_t>(classes_.size()) - from;
        if (count == 0) continue;
        const Item part{left ? node.left : node.right, from, count};
        if (from == start)
            items_[place] = part;
        else
            items_.push_back(part);
    }
}

// Takes every item from `first` on down to a leaf or to a split with two sides; the first of those, or the end.
std::size_t BoxRanges::resolve(const RangeBox& box, std::size_t first) {
    std::size_t open = SIZE_MAX;
    for (std::size_t i = first; i < items_.size(); ++i) {
        while (true) {
            const ChoiceNode& node = trees_.node(items_[i].node);
            if (node.feature < 0) break;
            if (node.sides >= 0) {
                part_classes(i);
                continue;
            }
            const Sides sides = trees_.sides(node, box.low[node.feature], box.high[node.feature]);
            if (sides == kBoth) {
                open = std::min(open, i);
                break;
            }
            items_[i].node = sides == kLeft ? node.left : node.right;
        }
    }
    return open;
}

// All classes of a tree at one input: splits on features of the box are followed for all of them at once.
std::int32_t BoxRanges::together(const ChoiceTree& tree, RangeBox& box, std::size_t first) {
    const std::size_t open = resolve(box, first);
    if (open == SIZE_MAX) return arrive(tree, first);
    const std::size_t end = items_.size();
    const std::size_t used = classes_.size();
    const ChoiceNode& node = trees_.node(items_[open].node);
    const Cell low = box.low[node.feature];
    const Cell high = box.high[node.feature];
    std::int32_t sides[2];
    for (const Sides side : {kLeft, kRight}) {
        for (std::size_t i = first; i < end; ++i) {
            const Item item = items_[i];
            items_.push_back(item);
        }
        items_[end + (open - first)].node = side == kLeft ? node.left : node.right;
        trees_.split(node).narrow(side, box.low[node.feature], box.high[node.feature]);
        sides[side == kRight] = together(tree, box, end);
        box.low[node.feature] = low;
        box.high[node.feature] = high;
        items_.resize(end);
        classes_.resize(used);
        // Too much for one tree: the ranges are made in another way, what is known serves the choice of cuts.
        if (arrivals_ > kMostArrivals) return sides[side == kRight];
    }
    return cuts_.add_branch(node.feature, trees_.parting(node, low, high), sides[0], sides[1], tree.tables);
}

std::int32_t BoxRanges::arrive(const ChoiceTree& tree, std::size_t first) {
    ++arrivals_;
    const std::int32_t leaf = cuts_.add_leaf();
    for (const std::int32_t t : tree.tables) {
        Wide* values = class_value_.data() + of_class(t);
        Wide* upper = class_upper_.data() + of_class(t);
        Wide* lower = class_lower_.data() + of_class(t);
        Wide least = kMost;
        Wide most = kLeast;
        for (std::size_t i = first; i < items_.size(); ++i) {
            const Wide v = trees_.value(trees_.node(items_[i].node).leaf, t);
            least = std::min(least, v);
            most = std::max(most, v);
            for (std::int32_t j = 0; j < items_[i].count; ++j) {
                const std::int32_t k = classes_[items_[i].first + j];
                values[k] = v;
                upper[k] = std::max(upper[k], v);
                lower[k] = std::min(lower[k], v);
            }
        }
        cuts_.low(leaf, t) = least;
        cuts_.high(leaf, t) = most;
    }
    set_blocks(tree, class_value_, class_value_);
    const auto blocks = static_cast<std::ptrdiff_t>(blocks_);
    cuts_.apart(leaf) = *std::max_element(block_most_.begin(), block_most_.begin() + blocks) -
                        *std::min_element(block_least_.begin() + blocks, block_least_.end());
    return leaf;
}

// What blocks of choices are apart if classes lie between `least` and `most` [tables][classes].
void BoxRanges::set_blocks(const ChoiceTree& tree, const std::vector<Wide>& most, const std::vector<Wide>& least) {
    for (int which = 0; which < 2; ++which) {
        const std::int32_t t = which == 0 ? compared_.high : compared_.low;
        const bool has = std::find(tree.tables.begin(), tree.tables.end(), t) != tree.tables.end();
        for (std::int32_t b = 0; b < blocks_; ++b) {
            Wide& high = block_most_[which * blocks_ + b];
            Wide& low = block_least_[which * blocks_ + b];
            high = has ? kLeast : 0;
            low = has ? kMost : 0;
            if (!has) continue;
            for (const std::int32_t k : tree.block_classes[b]) {
                high = std::max(high, most[of_class(t) + k]);
                low = std::min(low, least[of_class(t) + k]);
            }
        }
    }
    for (std::int32_t g = 0; g < blocks_; ++g) {
        for (std::int32_t h = 0; h < blocks_; ++h) {
            Wide& upper = tree_apart_upper_[g * blocks_ + h];
            Wide& lower = tree_apart_lower_[g * blocks_ + h];
            upper = std::max(upper, block_most_[g] - block_least_[blocks_ + h]);
            lower = std::min(lower, block_least_[g] - block_most_[blocks_ + h]);
        }
    }
}

void BoxRanges::each_alone(const ChoiceTree& tree, const RangeBox& box, std::int32_t number, std::size_t first,
                           std::size_t count) {
    const ChoiceNode& node = trees_.node(number);
    if (node.feature < 0) {
        for (const std::int32_t t : tree.tables) {
            const Wide v = trees_.value(node.leaf, t);
            for (std::size_t i = first; i < first + count; ++i) {
                const std::size_t k = of_class(t) + classes_[i];
                class_upper_[k] = std::max(class_upper_[k], v);
                class_lower_[k] = std::min(class_lower_[k], v);
            }
        }
        return;
    }
    if (node.sides < 0) {
        const Sides sides = trees_.sides(node, box.low[node.feature], box.high[node.feature]);
        if ((sides & kLeft) != 0) each_alone(tree, box, node.left, first, count);
        if ((sides & kRight) != 0) each_alone(tree, box, node.right, first, count);
        return;
    }
    for (const bool left : {true, false}) {
        const std::size_t from = classes_.size();
        for (std::size_t i = first; i < first + count; ++i) {
            const std::int32_t k = classes_[i];
            if (trees_.goes_left(node, k) == left) classes_.push_back(k);
        }
        const std::size_t part = classes_.size() - from;
        if (part > 0) each_alone(tree, box, left ? node.left : node.right, from, part);
        classes_.resize(from);
    }
}

void BoxRanges::add_tree(const ChoiceTree& tree) {
    for (const std::int32_t t : tree.tables) {
        const Wide* class_upper = class_upper_.data() + of_class(t);
        const Wide* class_lower = class_lower_.data() + of_class(t);
        Wide* upper = result_.upper.data() + at(t);
        Wide* lower = result_.lower.data() + at(t);
        Wide before_upper = 0;
        Wide before_lower = 0;
        for (const ClassRun& run : tree.runs) {
            upper[run.start] += class_upper[run.of_class] - before_upper;
            lower[run.start] += class_lower[run.of_class] - before_lower;
            before_upper = class_upper[run.of_class];
            before_lower = class_lower[run.of_class];
        }
    }
    for (std::size_t i = 0; i < tree_apart_upper_.size(); ++i) {
        result_.apart_upper[i] += tree_apart_upper_[i];
        result_.apart_lower[i] += tree_apart_lower_[i];
    }
}

}  // namespace treesens
