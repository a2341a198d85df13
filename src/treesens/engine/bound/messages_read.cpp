// Results read from the messages: the decoded point, best entries, row sums.
#include <algorithm>
#include <limits>

#include "bound/messages.hpp"

namespace treesens {

void Messages::decode(std::vector<Cell>& x) const {
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (set_.use_offset[v] == set_.use_offset[v + 1] && row_unary_.empty()) continue;
        const double* sum = sum_.data() + problem_.cell_offset[v];
        double best = -std::numeric_limits<double>::infinity();
        Cell choice = x[v];
        for (Cell k = 0; k < problem_.size[v]; ++k) {
            if (!domains_.has(v, k)) continue;
            // Ties go to the cell the point already has.
            if (sum[k] > best || (sum[k] == best && k == x[v])) best = sum[k], choice = k;
        }
        x[v] = choice;
    }
}

void Messages::read_messages(std::vector<double>& out) {
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        const std::int32_t n = set_.use_offset[v + 1] - set_.use_offset[v];
        if (n == 0) continue;
        fill_maxima(v);
        for (std::int32_t u = set_.use_offset[v]; u < set_.use_offset[v + 1]; ++u) {
            const std::int32_t s = set_.use_slot[u];
            for (std::int64_t g = set_.slot_segment[s]; g < set_.slot_segment[s + 1]; ++g) {
                const double message = segment_message(g, 1.0 / n);
                if (message != -std::numeric_limits<double>::infinity()) out[g] = message;
            }
        }
    }
}

void Messages::best_rows(const std::vector<Cell>& x, std::vector<double>& out) const {
    out.assign(set_.rows.size(), 0);
    for (std::size_t m = 0; m < set_.rows.size(); ++m)
        out[m] = static_cast<double>(row_constant_[m] + set_.constant[m]);
    for (std::int32_t t = 0; t < set_.factors(); ++t) {
        const std::int64_t e = entry(best_place(t));
        for (std::size_t m = 0; m < set_.rows.size(); ++m) out[m] += set_.value[m][e];
    }
    if (row_unary_.empty()) return;
    for (std::size_t m = 0; m < set_.rows.size(); ++m) {
        for (std::int32_t v = 0; v < problem_.variables(); ++v) out[m] += row_unary_[m][problem_.cell_offset[v] + x[v]];
    }
}

std::int64_t Messages::best_place(std::int32_t factor) const {
    const auto begin = theta_.begin() + set_.entry_offset[factor];
    return std::max_element(begin, begin + alive_[factor]) - theta_.begin();
}

Literal Messages::range(std::int32_t slot, std::int64_t entry) const {
    const std::int64_t t = set_.slot_factor[slot];
    const std::int64_t d = set_.slot_literal[slot] + set_.column[set_.slot_column[slot] + entry - set_.entry_offset[t]];
    const std::int64_t first = set_.slot_segment[slot];
    return {set_.slot_variable[slot], set_.segment_start[first + set_.literal_low[d]],
            set_.segment_end[first + set_.literal_high[d]]};
}

std::int64_t Messages::place_at(std::int32_t factor, const std::vector<Cell>& x) const {
    const std::int64_t begin = set_.entry_offset[factor];
    for (std::int64_t place = begin; place < begin + alive_[factor]; ++place) {
        bool holds = true;
        for (std::int32_t s = set_.slot_offset[factor]; s < set_.slot_offset[factor + 1] && holds; ++s) {
            const Literal l = range(s, entry(place));
            holds = l.low <= x[l.variable] && x[l.variable] <= l.high;
        }
        if (holds) return place;
    }
    return -1;
}

}  // namespace treesens
