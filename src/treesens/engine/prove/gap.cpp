#include "prove/gap.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "problem/checked.hpp"

namespace treesens {

std::int64_t level_to_reach(const Problem& problem, const Goal& goal, const Gap& gap, const Incumbent& incumbent) {
    if (goal.mode == Mode::decide) return 0;
    if (!incumbent.present() || incumbent.score.hard < 0) {
        // Initial value: the level that every point reaches.
        std::int64_t lowest = 0;
        for (std::int32_t r = 0; r < problem.rows; ++r) {
            if (goal.soft[r]) lowest = std::min(lowest, -problem.magnitude(r) - goal.bound[r]);
        }
        return std::max(lowest, gap.least);
    }
    const std::int64_t best = incumbent.score.soft;
    const double scale = std::abs(static_cast<double>(best) + static_cast<double>(gap.reference));
    const std::int64_t relative = truncated<std::int64_t>(std::min(gap.relative * scale, 4.0e18));
    const std::int64_t step = std::max({std::int64_t{1}, gap.absolute, relative});
    // Without a soft row every slack suffices, and the best one is the largest number.
    const std::int64_t better =
        best > std::numeric_limits<std::int64_t>::max() - step ? std::numeric_limits<std::int64_t>::max() : best + step;
    return std::max(better, gap.least);
}

}  // namespace treesens
