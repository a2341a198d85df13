#include "ensemble/cell_trees.hpp"

namespace treesens {

void reach_leaves(const CellTrees& trees, const std::int32_t* cells, std::int64_t rows, std::int64_t features,
                  std::int32_t* out) {
    // Trees outside, rows inside: a tree stays in the cache while all rows pass through it.
    for (std::int64_t t = 0; t < trees.trees; ++t) {
        for (std::int64_t r = 0; r < rows; ++r) {
            out[r * trees.trees + t] = reach_leaf(trees, t, cells + r * features);
        }
    }
}

}  // namespace treesens
