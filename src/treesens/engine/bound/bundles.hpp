// The grouping of trees into factors.
//
// A factor of several trees has an entry for every combination of leaves that can be reached together. The bound then
// adds fewer maxima, each over joint choices of its trees, and is tighter; a sweep touches more entries. Trees that
// split on the same features have few combinations.
#pragma once

#include <cstdint>
#include <vector>

#include "bound/join.hpp"

namespace treesens {

// The groups of every factor: all copies of a tree, or with `most` above 0 those of several trees as long as they have
// no more than `most` entries together.
std::vector<std::vector<std::int32_t>> bundle_trees(const Problem& p, const Forest& f, Join& join, std::int64_t most);

}  // namespace treesens
