// Chooses the trees that are joined into one factor.
//
// A factor of several trees has an entry for every combination of leaves that can be reached together. The bound then
// adds fewer maxima, each over the joint values of its trees, and is tighter; a sweep touches more entries. Trees that
// split on the same features have few combinations.
#pragma once

#include <cstdint>
#include <vector>

#include "bound/join.hpp"

namespace treesens {

// The groups of every factor: all copies of a tree, or with `most` above 0 several trees with at most `most` entries
// together.
std::vector<std::vector<std::int32_t>> bundle_trees(const Problem& p, const Forest& f, Join& join, std::int64_t most);

}  // namespace treesens
