// Which rows belong together and which variables are private to them, read off the problem.
#include <algorithm>
#include <numeric>

#include "local/block_moves.hpp"
#include "problem/checked.hpp"

namespace treesens {

Moves::Moves(const Problem& problem, const Forest& forest, const Clauses& clauses)
    : problem_(problem),
      forest_(forest),
      clauses_(clauses),
      allowed_(problem.allowed),
      is_open_(problem.variables(), 0) {
    find_clusters();
    for (std::int32_t v = 0; v < problem.variables(); ++v) {
        bool matters = forest.use_offset[v] < forest.use_offset[v + 1] || clauses.involves(v);
        for (std::int32_t r = 0; r < problem.rows && problem.has_unary && !matters; ++r) {
            for (Cell k = 0; k < problem.size[v] && !matters; ++k) matters = problem.unary_at(r, v, k) != 0;
        }
        if (matters && problem.size[v] > 1) movable_.push_back(v);
    }
}

void Moves::find_clusters() {
    const std::int32_t rows = problem_.rows;
    const std::int32_t variables = problem_.variables();
    std::vector<std::uint8_t> depends(static_cast<std::size_t>(rows) * variables, 0);
    for (std::int32_t v = 0; v < variables; ++v) {
        for (std::int32_t i = forest_.use_offset[v]; i < forest_.use_offset[v + 1]; ++i) {
            const std::int32_t g = forest_.use_group[i];
            for (std::int32_t j = forest_.row_offset[g]; j < forest_.row_offset[g + 1]; ++j) {
                depends[forest_.group_rows[j] * variables + v] = 1;
            }
        }
        for (std::int32_t r = 0; r < rows && problem_.has_unary; ++r) {
            for (Cell k = 0; k < problem_.size[v]; ++k) {
                if (problem_.unary_at(r, v, k) != 0) depends[r * variables + v] = 1;
            }
        }
    }
    std::vector<std::int32_t> copies(*std::max_element(problem_.feature.begin(), problem_.feature.end()) + 1, 0);
    for (std::int32_t f : problem_.feature) ++copies[f];
    std::vector<std::int32_t> parent(rows);
    std::iota(parent.begin(), parent.end(), 0);
    const auto find = [&](std::int32_t r) {
        while (parent[r] != r) r = parent[r];
        return r;
    };
    std::vector<std::int32_t> owner(variables, -1);  // a row that depends on the copied variable
    for (std::int32_t v = 0; v < variables; ++v) {
        if (copies[problem_.feature[v]] < 2) continue;
        for (std::int32_t r = 0; r < rows; ++r) {
            if (!depends[r * variables + v]) continue;
            if (owner[v] >= 0)
                parent[find(r)] = find(owner[v]);
            else
                owner[v] = r;
        }
    }
    cluster_of_.assign(rows, -1);
    row_place_.assign(rows, 0);
    std::vector<std::int32_t> cluster_of_root(rows, -1);
    for (std::int32_t r = 0; r < rows; ++r) {
        std::int32_t& c = cluster_of_root[find(r)];
        if (c < 0) {
            c = narrow<std::int32_t>(clusters_.size());
            clusters_.emplace_back();
        }
        cluster_of_[r] = c;
        row_place_[r] = narrow<std::int32_t>(clusters_[c].rows.size());
        clusters_[c].rows.push_back(r);
    }
    // With one cluster every private variable is as good as shared: the pair moves treat it.
    for (std::int32_t v = 0; v < variables && clusters_.size() > 1; ++v) {
        if (owner[v] >= 0 && problem_.size[v] > 1) clusters_[cluster_of_[owner[v]]].privates.push_back(v);
    }
    chosen_open_.assign(clusters_.size(), -1);
}

}  // namespace treesens
