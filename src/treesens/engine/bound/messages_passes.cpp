// The update of a factor: it collects its variables' values, and distributes as much as possible back to them.
//
// In terms of r: without its own r a factor sees B_v = A_v - r_{T,v} of each of its variables, and an entry is worth
// value(e) + sum_v max B_v over its cells. The variables get the max-marginals of this, one after the other: of those
// that are left each gets an equal part, and on the way back all that the later ones could not use. Then every
// max-marginal of the factor is 0, and all that it knows lies with its variables (MPLP++: Tourani, Shekhovtsov, Rother,
// Savchynskyy, ECCV 2018). The star update, which evens out, stands still where this still finds its way.
//
// Nothing here has to be exact: any whole r in range gives a bound, which evaluate() computes from r alone.
#include <algorithm>
#include <cmath>

#include "bound/messages.hpp"
#include "bound/messages_numbers.hpp"

namespace treesens {

namespace {

// Number of factors between two time checks of a pass.
constexpr std::int32_t kFactorsPerLook = 64;

// The integer next to x (see round_up_quotient); above 2^52 all floats are integers.
double to_whole(double x) {
    constexpr double kShift = 6755399441055744.0;
    return (x + kShift) - kShift;
}

}  // namespace

Sweep Messages::pass(Control& control) {
    if (empty_) return Sweep::pruned;
    hide_cells();
    const std::int32_t n = set_.factors();
    bool in_time = true;
    for (std::int32_t i = 0; i < 2 * n && in_time; ++i) {
        update_factor(i < n ? i : 2 * n - 1 - i);
        if (i % kFactorsPerLook == 0) in_time = !control.expired();
    }
    double largest = 0;
    for (const double r : reduced_) largest = std::max(largest, std::fabs(r));
    double most_uses = 1;
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        most_uses = std::max<double>(most_uses, set_.use_offset[v + 1] - set_.use_offset[v]);
    }
    if (largest * most_uses >= kRange) std::fill(reduced_.begin(), reduced_.end(), 0);
    evaluate();
    if (!in_time) return Sweep::stopped;
    return bound() < 0 ? Sweep::pruned : Sweep::open;
}

// Cells outside the domains are ignored as maxima of A until evaluate() recomputes it.
void Messages::hide_cells() {
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        double* sum = sum_.data() + problem_.cell_offset[v];
        for (Cell k = 0; k < problem_.size[v]; ++k) {
            if (!domains_.has(v, k)) sum[k] = kNone;
        }
    }
    work_ += problem_.cells();
}

void Messages::update_factor(std::int32_t t) {
    const std::int32_t first = set_.slot_offset[t];
    const std::int32_t last = set_.slot_offset[t + 1];
    if (alive_[t] > 1) {
        take(t);
        for (std::int32_t s = first; s < last; ++s) give(s, 1.0 / (last - s));
        for (std::int32_t s = last - 2; s >= first; --s) give(s, 1);
    } else {
        // A single entry gives no information about cells.
        std::fill_n(given_.begin(), set_.slot_segment[last] - set_.slot_segment[first], 0);
    }
    for (std::int32_t s = first; s < last; ++s) write_reduced(s);
    work_ += set_.slot_segment[last] - set_.slot_segment[first];
}

void Messages::take(std::int32_t t) {
    const std::int32_t n = alive_[t];
    std::copy_n(value_.begin() + set_.entry_offset[t], n, taken_entry_.begin());
    for (std::int32_t s = set_.slot_offset[t]; s < set_.slot_offset[t + 1]; ++s) {
        take_slot(s);
        const double* held = held_.data() + literal_in_factor(s);
        const std::uint16_t* column = column_.data() + set_.slot_column[s];
        for (std::int32_t i = 0; i < n; ++i) taken_entry_[i] += held[column[i]];
        work_ += n;
    }
}

void Messages::take_slot(std::int32_t s) {
    const std::int32_t v = set_.slot_variable[s];
    const double* sum = sum_.data() + problem_.cell_offset[v];
    double* taken = taken_.data() + segment_in_factor(s);
    for (std::int64_t g = set_.slot_segment[s], i = 0; g < set_.slot_segment[s + 1]; ++g, ++i) {
        taken[i] = *std::max_element(sum + set_.segment_start[g], sum + set_.segment_end[g] + 1) - reduced_[g];
    }
    const std::int64_t segments = set_.slot_segment[s + 1] - set_.slot_segment[s];
    std::copy_n(taken, segments, over_segments_.begin());
    gather_runs(over_segments_.data(), segments);
    double* held = held_.data() + literal_in_factor(s);
    for (std::int64_t d = set_.slot_literal[s], i = 0; d < set_.slot_literal[s + 1]; ++d, ++i) {
        const double most = over_literal(d);
        held[i] = most == kNone ? 0 : most;  // a dead range belongs to dead entries only
    }
    work_ += problem_.size[v] / 4;
}

void Messages::give(std::int32_t s, double share) {
    find_best(s, taken_entry_.data());
    share_out(s, share);
    const double* taken = taken_.data() + segment_in_factor(s);
    const double* given = given_.data() + segment_in_factor(s);
    double* held = held_.data() + literal_in_factor(s);
    const std::int64_t segments = set_.slot_segment[s + 1] - set_.slot_segment[s];
    for (std::int64_t g = 0; g < segments; ++g) over_segments_[g] = taken[g] == kNone ? kNone : -given[g];
    gather_runs(over_segments_.data(), segments);
    for (std::int64_t d = set_.slot_literal[s], i = 0; d < set_.slot_literal[s + 1]; ++d, ++i) {
        const double most = over_literal(d);
        const double message = most == kNone ? held[i] : most;
        change_[i] = message - held[i];
        held[i] = message;
    }
    const std::uint16_t* column = column_.data() + set_.slot_column[s];
    const std::int32_t n = alive_[set_.slot_factor[s]];
    for (std::int32_t i = 0; i < n; ++i) taken_entry_[i] += change_[column[i]];
    work_ += 2 * (n + set_.slot_literal[s + 1] - set_.slot_literal[s]);
}

// Sets r of a slot such that A_v becomes this share of the max-marginals. A constant in r is irrelevant: the maximum is
// 0.
void Messages::share_out(std::int32_t s, double share) {
    const std::int64_t segments = set_.slot_segment[s + 1] - set_.slot_segment[s];
    const double* taken = taken_.data() + segment_in_factor(s);
    const double* held = held_.data() + literal_in_factor(s);
    double* given = given_.data() + segment_in_factor(s);
    std::fill_n(over_segments_.begin(), run_lines(segments) * segments, kNone);
    for (std::int64_t d = set_.slot_literal[s], i = 0; d < set_.slot_literal[s + 1]; ++d, ++i) {
        offer(d, literal_best_[i] - held[i]);
    }
    spread_runs(over_segments_.data(), segments);
    double most = kNone;
    for (std::int64_t g = 0; g < segments; ++g) {
        given[g] = taken[g] == kNone ? kNone : over_segments_[g];
        if (given[g] == kNone) continue;
        if (share < 1) given[g] = share * given[g] - (1 - share) * taken[g];
        most = std::max(most, given[g]);
    }
    double least = 0;
    for (std::int64_t g = 0; g < segments; ++g) {
        if (given[g] == kNone) continue;
        given[g] = to_whole(given[g] - most);
        least = std::min(least, given[g]);
    }
    // A segment without an entry must not be worse than the others.
    std::replace(given, given + segments, kNone, least);
}

void Messages::write_reduced(std::int32_t s) {
    double* sum = sum_.data() + problem_.cell_offset[set_.slot_variable[s]];
    const double* given = given_.data() + segment_in_factor(s);
    for (std::int64_t g = set_.slot_segment[s], i = 0; g < set_.slot_segment[s + 1]; ++g, ++i) {
        const double change = given[i] - reduced_[g];
        if (change == 0) continue;
        reduced_[g] = given[i];
        for (Cell k = set_.segment_start[g]; k <= set_.segment_end[g]; ++k) sum[k] += change;
    }
}

}  // namespace treesens
