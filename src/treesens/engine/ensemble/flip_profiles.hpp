// For every row of data, the highest and the lowest score that changing one feature alone can reach.
#pragma once

#include <cstdint>

#include "ensemble/cell_trees.hpp"

namespace treesens {

// leaf_value[leaf] is the exact contribution of a leaf; sums must fit int64 (the binding checks). `allowed` marks the
// cells of `feature` to be tried. Outputs have one entry per row; cells are the first that reach the extreme.
struct FlipProfiles {
    std::int64_t* highest;
    std::int64_t* lowest;
    std::int32_t* highest_cell;
    std::int32_t* lowest_cell;
};

void flip_profiles(const CellTrees& trees, const std::int64_t* leaf_value, std::int32_t feature,
                   std::int32_t feature_cells, const std::uint8_t* allowed, const std::int32_t* cells,
                   std::int64_t rows, std::int64_t features, const FlipProfiles& out);

}  // namespace treesens
