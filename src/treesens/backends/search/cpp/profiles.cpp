#include "profiles.hpp"

#include <algorithm>
#include <vector>

namespace treesens {

namespace {

// Rows that are taken through all trees together: their profiles stay in the cache.
constexpr std::int64_t kRowBlock = 256;

bool asks_for(const CellTrees& trees, std::int32_t node, std::int32_t feature) {
    if (trees.feature[node] < 0) return false;
    return trees.feature[node] == feature || asks_for(trees, trees.left[node], feature) ||
           asks_for(trees, trees.right[node], feature);
}

// Adds the tree with `feature` left open to the difference array `profile` over its cells.
class OpenTraversal {
public:
    OpenTraversal(const CellTrees& trees, const std::int64_t* leaf_value, std::int32_t feature)
        : trees_(trees), leaf_value_(leaf_value), feature_(feature) {}

    // The cells [low, high] of the feature reach `node`. Missing and category cells are followed one run at a time.
    void add(std::int32_t node, const std::int32_t* row, std::int32_t low, std::int32_t high, std::int64_t* profile) const {
        while (trees_.feature[node] >= 0) {
            if (trees_.feature[node] != feature_) {
                node = goes_left(node, row[trees_.feature[node]]) ? trees_.left[node] : trees_.right[node];
                continue;
            }
            std::int32_t start = low;
            bool left = goes_left(node, low);
            for (std::int32_t k = low + 1; k <= high; ++k) {
                const bool next = goes_left(node, k);
                if (next == left) continue;
                add(left ? trees_.left[node] : trees_.right[node], row, start, k - 1, profile);
                start = k;
                left = next;
            }
            low = start;
            node = left ? trees_.left[node] : trees_.right[node];
        }
        const std::int64_t value = leaf_value_[trees_.leaf[node]];
        profile[low] += value;
        profile[high + 1] -= value;
    }

private:
    bool goes_left(std::int32_t node, std::int32_t cell) const {
        if (trees_.category_set[node] >= 0) {
            return trees_.set_member[trees_.set_offset[trees_.category_set[node]] + cell] != 0;
        }
        if (cell == trees_.missing_cell[trees_.feature[node]]) return trees_.default_left[node] != 0;
        return cell <= trees_.cut[node];
    }

    const CellTrees& trees_;
    const std::int64_t* leaf_value_;
    const std::int32_t feature_;
};

}  // namespace

void flip_profiles(const CellTrees& trees, const std::int64_t* leaf_value, std::int32_t feature, std::int32_t feature_cells,
                   const std::uint8_t* allowed, const std::int32_t* cells, std::int64_t rows, std::int64_t features,
                   const FlipProfiles& out) {
    const OpenTraversal open(trees, leaf_value, feature);
    std::vector<std::uint8_t> affected(trees.trees);
    for (std::int64_t t = 0; t < trees.trees; ++t) affected[t] = asks_for(trees, trees.root[t], feature);
    const std::int64_t width = feature_cells + 1;
    std::vector<std::int64_t> profile(width * kRowBlock);
    for (std::int64_t first = 0; first < rows; first += kRowBlock) {
        const std::int64_t count = std::min(kRowBlock, rows - first);
        std::fill(profile.begin(), profile.end(), 0);
        for (std::int64_t t = 0; t < trees.trees; ++t) {
            for (std::int64_t r = 0; r < count; ++r) {
                const std::int32_t* row = cells + (first + r) * features;
                // A tree that does not ask for the feature moves the whole profile.
                if (affected[t]) open.add(trees.root[t], row, 0, feature_cells - 1, profile.data() + r * width);
                else profile[r * width] += leaf_value[reach_leaf(trees, t, row)];
            }
        }
        for (std::int64_t r = 0; r < count; ++r) {
            const std::int64_t* difference = profile.data() + r * width;
            std::int64_t score = 0;
            std::int32_t high = -1;
            std::int32_t low = -1;
            std::int64_t highest = INT64_MIN;
            std::int64_t lowest = INT64_MAX;
            for (std::int32_t k = 0; k < feature_cells; ++k) {
                score += difference[k];
                if (!allowed[k]) continue;
                if (score > highest || high < 0) highest = score, high = k;
                if (score < lowest || low < 0) lowest = score, low = k;
            }
            out.highest[first + r] = highest;
            out.lowest[first + r] = lowest;
            out.highest_cell[first + r] = high;
            out.lowest_cell[first + r] = low;
        }
    }
}

}  // namespace treesens
