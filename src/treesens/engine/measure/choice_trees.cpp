#include "measure/choice_trees.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "problem/checked.hpp"

namespace treesens {

ChoiceTrees::ChoiceTrees(const CellTrees& trees, std::int64_t nodes, std::vector<Cell> cells, std::vector<Wide> values,
                         std::int32_t tables, Choices choices)
    : cells_(std::move(cells)),
      values_(std::move(values)),
      tables_(tables),
      choices_(std::move(choices)),
      blocks_(choices_.count <= kBlocks ? choices_.count : kFewBlocks),
      place_(cells_.size(), -1) {
    for (std::size_t i = 0; i < choices_.features.size(); ++i) {
        place_[choices_.features[i]] = static_cast<std::int32_t>(i);
    }
    for (std::int64_t t = 0; t < trees.trees; ++t) {
        trees_.emplace_back();
        trees_.back().root = trees.root[t];
    }
    copy_nodes(trees, nodes);
    for (ChoiceTree& tree : trees_) classify(tree);
}

void ChoiceTrees::copy_nodes(const CellTrees& trees, std::int64_t nodes) {
    nodes_.resize(nodes);
    std::int64_t members = 0;
    std::int32_t sets = 0;
    for (std::int64_t n = 0; n < nodes; ++n) {
        ChoiceNode& node = nodes_[n];
        node.feature = trees.feature[n];
        node.leaf = trees.leaf[n];
        if (node.feature < 0) continue;
        node.cut = trees.cut[n];
        node.left = trees.left[n];
        node.right = trees.right[n];
        node.set = trees.category_set[n];
        node.absent = trees.missing_cell[node.feature];
        node.default_left = trees.default_left[n] != 0;
        if (node.set < 0) continue;
        sets = std::max(sets, node.set + 1);
        members = std::max(members, trees.set_offset[node.set + 1]);
    }
    set_offset_.assign(trees.set_offset, trees.set_offset + sets + 1);
    set_member_.assign(trees.set_member, trees.set_member + members);
    set_before_.assign(members + sets + 1, 0);
    for (std::int32_t s = 0; s < sets; ++s) {
        for (std::int64_t c = set_offset_[s]; c < set_offset_[s + 1]; ++c) {
            set_before_[c + s + 1] = set_before_[c + s] + (set_member_[c] != 0 ? 1 : 0);
        }
    }
}

Sides ChoiceTrees::sides_of_set(const ChoiceNode& node, Cell low, Cell high) const {
    const std::int64_t start = set_offset_[node.set] + node.set;
    const std::int32_t inside = set_before_[start + high + 1] - set_before_[start + low];
    return static_cast<Sides>((inside > 0 ? kLeft : 0) | (inside < high - low + 1 ? kRight : 0));
}

Cell ChoiceTrees::parting(const ChoiceNode& node, Cell low, Cell high) const {
    const Cell end = split(node).run_end(low, high);
    ensure(end < high, "a split with two sides parts no cells");
    return end;
}

std::vector<std::int32_t> ChoiceTrees::nodes_of(std::int32_t root) const {
    std::vector<std::int32_t> found{root};
    for (std::size_t i = 0; i < found.size(); ++i) {
        const ChoiceNode& node = nodes_[found[i]];
        if (node.feature < 0) continue;
        found.push_back(node.left);
        found.push_back(node.right);
    }
    return found;
}

void ChoiceTrees::find_tables(ChoiceTree& tree, const std::vector<std::int32_t>& nodes) const {
    for (std::int32_t table = 0; table < tables_; ++table) {
        const bool some = std::any_of(nodes.begin(), nodes.end(), [&](std::int32_t n) {
            return nodes_[n].feature < 0 && value(nodes_[n].leaf, table) != 0;
        });
        if (some) tree.tables.push_back(table);
    }
}

void ChoiceTrees::classify(ChoiceTree& tree) {
    const std::vector<std::int32_t> nodes = nodes_of(tree.root);
    find_tables(tree, nodes);
    std::vector<std::int32_t> asking;
    for (const std::int32_t n : nodes) {
        if (nodes_[n].feature >= 0 && is_varied(nodes_[n].feature)) asking.push_back(n);
    }
    tree.varied = !asking.empty();
    const std::size_t width = choices_.features.size();
    std::map<std::string, std::int32_t> known;
    std::vector<std::string> answers;
    tree.block_classes.resize(blocks_);
    for (std::int32_t s = 0; s < choices_.count; ++s) {
        std::string answer;
        for (const std::int32_t n : asking) {
            const Cell cell = choices_.cells[s * width + place_[nodes_[n].feature]];
            answer.push_back(split(nodes_[n]).goes_left(cell) ? 1 : 0);
        }
        const auto [entry, fresh] = known.emplace(answer, narrow<std::int32_t>(known.size()));
        if (fresh) answers.push_back(answer);
        if (tree.runs.empty() || tree.runs.back().of_class != entry->second) tree.runs.push_back({s, entry->second});
        std::vector<std::int32_t>& mine = tree.block_classes[block_of(s)];
        if (std::find(mine.begin(), mine.end(), entry->second) == mine.end()) mine.push_back(entry->second);
    }
    tree.classes = narrow<std::int32_t>(known.size());
    for (std::size_t i = 0; i < asking.size(); ++i) {
        nodes_[asking[i]].sides = narrow<std::int32_t>(goes_left_.size());
        for (const std::string& answer : answers) goes_left_.push_back(static_cast<std::uint8_t>(answer[i]));
    }
}

}  // namespace treesens
