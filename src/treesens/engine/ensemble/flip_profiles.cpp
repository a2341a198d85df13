#include "ensemble/flip_profiles.hpp"

#include <algorithm>
#include <vector>

namespace treesens {

namespace {

// Rows processed together by all trees: their profiles stay in the cache.
constexpr std::int64_t kRowBlock = 256;

bool asks_for(const CellTrees& trees, std::int32_t node, std::int32_t feature) {
    if (trees.feature[node] < 0) return false;
    return trees.feature[node] == feature || asks_for(trees, trees.left[node], feature) ||
           asks_for(trees, trees.right[node], feature);
}

}  // namespace

void flip_profiles(const CellTrees& trees, const std::int64_t* leaf_value, std::int32_t feature,
                   std::int32_t feature_cells, const std::uint8_t* allowed, const std::int32_t* cells,
                   std::int64_t rows, std::int64_t features, const FlipProfiles& out) {
    const WholeTrees whole{trees, leaf_value};
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
                // A tree without splits on the feature shifts the whole profile.
                std::int64_t* mine = profile.data() + r * width;
                if (affected[t])
                    add_profile(trees, whole, trees.root[t], row, feature, 0, feature_cells - 1, mine);
                else
                    mine[0] += leaf_value[reach_leaf(trees, t, row)];
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
