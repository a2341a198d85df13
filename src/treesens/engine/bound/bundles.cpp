#include "bound/bundles.hpp"

#include <algorithm>
#include <utility>

#include "problem/checked.hpp"

namespace treesens {

namespace {

// Number of trees tried for a bundle, those with the most common features first.
constexpr std::size_t kTries = 8;

// Splits per variable, summed over several groups.
std::vector<double> questions(const Problem& p, const Forest& f, const std::vector<std::int32_t>& groups) {
    std::vector<double> count(p.variables(), 0);
    std::vector<std::int32_t> stack;
    for (const std::int32_t g : groups) {
        stack.assign(1, f.root[g]);
        while (!stack.empty()) {
            const std::int32_t at = stack.back();
            stack.pop_back();
            if (at < 0) continue;
            count[f.nodes[at].variable] += 1;
            stack.push_back(f.nodes[at].left);
            stack.push_back(f.nodes[at].right);
        }
    }
    return count;
}

class Bundler {
public:
    Bundler(const Problem& p, const Forest& f, Join& join, std::int64_t most) : join_(join), most_(most), boxes_(p, f) {
        const auto trees = groups_by_tree(p);
        counts_boxes_ = !join.collapses() && static_cast<std::size_t>(p.groups()) == trees.size();
        for (const auto& [tree, groups] : trees) {
            static_cast<void>(tree);
            trees_.push_back({groups, questions(p, f, groups), entries_of(p, groups)});
        }
    }

    std::vector<std::vector<std::int32_t>> run() {
        std::vector<std::vector<std::int32_t>> bundles;
        while (!trees_.empty()) {
            Tree bundle = std::move(trees_.back());
            trees_.pop_back();
            if (bundle.entries < most_) grow(bundle);
            bundles.push_back(std::move(bundle.groups));
        }
        return bundles;
    }

private:
    struct Tree {
        std::vector<std::int32_t> groups;
        std::vector<double> questions;
        std::int64_t entries;
    };

    static double overlap(const Tree& a, const Tree& b) {
        double shared = 0;
        double all = 0;
        for (std::size_t v = 0; v < a.questions.size(); ++v) {
            shared += std::min(a.questions[v], b.questions[v]);
            all += std::max(a.questions[v], b.questions[v]);
        }
        return all > 0 ? shared / all : 0;
    }

    std::int64_t entries_of(const Problem& p, const std::vector<std::int32_t>& groups) const {
        if (counts_boxes_) return p.group_offset[groups[0] + 1] - p.group_offset[groups[0]];
        return join_.count(groups, most_);
    }

    // Number of entries of a bundle with one more tree, or some number above the maximum.
    std::int64_t entries_with(const Tree& bundle, const Tree& tree) {
        if (counts_boxes_) return boxes_.size_with(tree.groups[0], most_);
        std::vector<std::int32_t> together = bundle.groups;
        together.insert(together.end(), tree.groups.begin(), tree.groups.end());
        return join_.count(together, most_);
    }

    void grow(Tree& bundle) {
        boxes_.clear();
        add_boxes(bundle.groups);
        while (bundle.entries < most_ && add_best(bundle)) {
        }
    }

    void add_boxes(const std::vector<std::int32_t>& groups) {
        if (!counts_boxes_) return;
        for (const std::int32_t g : groups) boxes_.add(g);
    }

    // Adds the tree that needs the fewest additional entries, if any fits.
    bool add_best(Tree& bundle) {
        std::vector<std::pair<double, std::size_t>> order;
        for (std::size_t i = 0; i < trees_.size(); ++i) {
            if (trees_[i].entries <= most_ / 2) order.emplace_back(-overlap(bundle, trees_[i]), i);
        }
        const std::size_t tries = std::min(kTries, order.size());
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(tries), order.end());
        std::size_t best = trees_.size();
        double least = 0;
        std::int64_t entries = 0;
        for (std::size_t i = 0; i < tries; ++i) {
            const Tree& tree = trees_[order[i].second];
            const std::int64_t n = entries_with(bundle, tree);
            if (n > most_) continue;
            const double share = static_cast<double>(n) / static_cast<double>(bundle.entries * tree.entries);
            if (best < trees_.size() && share >= least) continue;
            best = order[i].second;
            least = share;
            entries = n;
        }
        if (best == trees_.size()) return false;
        const Tree& tree = trees_[best];
        add_boxes(tree.groups);
        bundle.groups.insert(bundle.groups.end(), tree.groups.begin(), tree.groups.end());
        for (std::size_t v = 0; v < bundle.questions.size(); ++v) bundle.questions[v] += tree.questions[v];
        bundle.entries = std::max<std::int64_t>(entries, 1);
        trees_.erase(trees_.begin() + static_cast<std::ptrdiff_t>(best));
        return true;
    }

    Join& join_;
    const std::int64_t most_;
    BundleBoxes boxes_;  // of the current bundle
    // Without copies of trees, entries are counted by their boxes, which is many times cheaper. With copies, equal
    // values become one entry, and clauses relate copies: only a Join can count the rest.
    bool counts_boxes_ = false;
    std::vector<Tree> trees_;
};

}  // namespace

std::vector<std::vector<std::int32_t>> bundle_trees(const Problem& p, const Forest& f, Join& join, std::int64_t most) {
    if (most > 0) return Bundler(p, f, join, most).run();
    std::vector<std::vector<std::int32_t>> bundles;
    for (const auto& [tree, groups] : groups_by_tree(p)) {
        static_cast<void>(tree);
        bundles.push_back(groups);
    }
    return bundles;
}

}  // namespace treesens
