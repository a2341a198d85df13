// The star update of a variable: collects its factors' values for each cell, and sends messages back.
#include <algorithm>
#include <cmath>

#include "bound/messages.hpp"
#include "bound/messages_numbers.hpp"

namespace treesens {

// A_v = unary_v + sum of r over the factors, by differences at the segment borders: all exact integers.
void Messages::sum_reduced(std::int32_t v) {
    double* sum = sum_.data() + problem_.cell_offset[v];
    const double* unary = unary_.data() + problem_.cell_offset[v];
    const Cell n = problem_.size[v];
    std::fill(sum, sum + n, 0);
    for (std::int32_t u = set_.use_offset[v]; u < set_.use_offset[v + 1]; ++u) {
        const std::int32_t s = set_.use_slot[u];
        double previous = 0;
        for (std::int64_t g = set_.slot_segment[s]; g < set_.slot_segment[s + 1]; ++g) {
            sum[set_.segment_start[g]] += reduced_[g] - previous;
            previous = reduced_[g];
        }
    }
    for (Cell k = 1; k < n; ++k) sum[k] += sum[k - 1];
    for (Cell k = 0; k < n; ++k) sum[k] += unary[k];
}

void Messages::fill_maxima(std::int32_t v) {
    const double* sum = sum_.data() + problem_.cell_offset[v];
    line_ = problem_.size[v];
    for (Cell k = 0; k < line_; ++k) maxima_[k] = domains_.has(v, k) ? sum[k] : kNone;
    gather_runs(maxima_.data(), line_);
    work_ += 4 * line_;
}

bool Messages::out_of_range(std::int32_t v) const {
    const double n = std::max(1, set_.use_offset[v + 1] - set_.use_offset[v]);
    return largest_reduced_ * n >= kRange || largest_literal_ * largest_scope_ >= kRange;
}

void Messages::hand_out(std::int32_t v, bool apply) {
    const std::int32_t uses = set_.use_offset[v + 1] - set_.use_offset[v];
    if (uses == 0) return;
    const double inverse = 1.0 / uses;
    fill_maxima(v);
    for (std::int32_t u = set_.use_offset[v]; u < set_.use_offset[v + 1]; ++u) {
        const std::int32_t s = set_.use_slot[u];
        const std::int32_t t = set_.slot_factor[s];
        const std::int64_t first = set_.slot_segment[s];
        const std::int64_t segments = set_.slot_segment[s + 1] - first;
        for (std::int64_t g = 0; g < segments; ++g) over_segments_[g] = segment_message(first + g, inverse);
        gather_runs(over_segments_.data(), segments);
        const std::int64_t literals = set_.slot_literal[s + 1] - set_.slot_literal[s];
        const double best = alive_[t] < literals ? tell_entries(s, apply) : tell_literals(s, apply);
        work_ += alive_[t] == 1 ? 4 : 2 * (segments + literals) + (apply ? alive_[t] : 0);
        if (!apply) continue;
        total_ += whole(best) - whole(best_[t]);
        best_[t] = best;
    }
}

// The message of a literal. A dead literal belongs only to dead entries; its old message is kept, and never read.
inline double Messages::literal_message(std::int64_t d) const {
    const double most = over_literal(d);
    return most == kNone ? literal_[d] : most;
}

// Writes the messages of a slot and, with `apply`, changes the entries by them; the best of these then. Entry by entry,
// if fewer remain than there are literals (deep in a search most factors have one), else literal by literal.
double Messages::tell_entries(std::int32_t s, bool apply) {
    const std::int32_t t = set_.slot_factor[s];
    const std::int32_t n = alive_[t];
    double* theta = theta_.data() + set_.entry_offset[t];
    const std::uint16_t* column = column_.data() + set_.slot_column[s];
    const std::int64_t begin = set_.slot_literal[s];
    double largest = largest_literal_;
    double best = n == 0 ? 0 : kNone;
    for (std::int32_t i = 0; i < n; ++i) {
        const double message = literal_message(begin + column[i]);
        largest = std::max(largest, std::fabs(message));
        change_[i] = message;
        if (apply) theta[i] += message - literal_[begin + column[i]];
        best = std::max(best, theta[i]);
    }
    for (std::int32_t i = 0; i < n; ++i) literal_[begin + column[i]] = change_[i];
    largest_literal_ = largest;
    return best;
}

double Messages::tell_literals(std::int32_t s, bool apply) {
    const std::int64_t begin = set_.slot_literal[s];
    const std::int64_t literals = set_.slot_literal[s + 1] - begin;
    double largest = largest_literal_;
    for (std::int64_t d = 0; d < literals; ++d) {
        const double message = literal_message(begin + d);
        change_[d] = message - literal_[begin + d];
        literal_[begin + d] = message;
        largest = std::max(largest, std::fabs(message));
    }
    largest_literal_ = largest;
    if (!apply) return 0;
    const std::int32_t t = set_.slot_factor[s];
    const std::int32_t n = alive_[t];
    double* theta = theta_.data() + set_.entry_offset[t];
    const std::uint16_t* column = column_.data() + set_.slot_column[s];
    double best = kNone;
    double other = kNone;  // independent maxima run in parallel
    std::int32_t i = 0;
    for (; i + 1 < n; i += 2) {
        const double one = theta[i] + change_[column[i]];
        const double next = theta[i + 1] + change_[column[i + 1]];
        theta[i] = one;
        theta[i + 1] = next;
        best = std::max(best, one);
        other = std::max(other, next);
    }
    if (i < n) best = std::max(best, theta[i] += change_[column[i]]);
    return std::max(best, other);
}

bool Messages::drop_entries(std::int32_t v) {
    for (std::int32_t u = set_.use_offset[v]; u < set_.use_offset[v + 1]; ++u) {
        const std::int32_t s = set_.use_slot[u];
        const std::int32_t t = set_.slot_factor[s];
        const std::int64_t begin = set_.slot_literal[s];
        const std::int64_t literals = set_.slot_literal[s + 1] - begin;
        bool any_dead = false;
        for (std::int64_t d = 0; d < literals; ++d) {
            const Cell low = set_.segment_start[set_.slot_segment[s] + set_.literal_low[begin + d]];
            const Cell high = set_.segment_end[set_.slot_segment[s] + set_.literal_high[begin + d]];
            dead_[d] = !domains_.any(v, low, high);
            any_dead = any_dead || dead_[d];
        }
        if (!any_dead) continue;
        const std::uint16_t* column = column_.data() + set_.slot_column[s];
        std::int32_t left = alive_[t];
        work_ += left;
        for (std::int32_t i = 0; i < left;) {
            if (dead_[column[i]])
                exchange(t, i, --left);
            else
                ++i;
        }
        alive_[t] = left;
        if (left == 0) return false;
    }
    return !domains_.empty(v);
}

void Messages::drop_hopeless() {
    const std::int64_t slack = bound();
    if (slack < 0 || empty_) return;
    for (std::int32_t t = 0; t < set_.factors(); ++t) {
        const double* theta = theta_.data() + set_.entry_offset[t];
        const std::int64_t least = whole(best_[t]) - slack;
        work_ += alive_[t];
        // The best entry stays, so that the factor keeps its maximum.
        for (std::int32_t i = 0; i < alive_[t];) {
            if (whole(theta[i]) < least)
                exchange(t, i, --alive_[t]);
            else
                ++i;
        }
    }
}

// The remaining entries' values per run of their literals, without the factor's own message; into over_segments_. One
// by one if they are fewer than the literals.
void Messages::ask_entries(std::int32_t s) {
    const std::int32_t t = set_.slot_factor[s];
    const std::int32_t n = alive_[t];
    const double* theta = theta_.data() + set_.entry_offset[t];
    const std::uint16_t* column = column_.data() + set_.slot_column[s];
    const std::int64_t begin = set_.slot_literal[s];
    const std::int64_t literals = set_.slot_literal[s + 1] - begin;
    if (n < literals) {
        for (std::int32_t i = 0; i < n; ++i) offer(begin + column[i], theta[i] - literal_[begin + column[i]]);
        return;
    }
    find_best(s, theta);
    for (std::int64_t d = 0; d < literals; ++d) offer(begin + d, literal_best_[d] - literal_[begin + d]);
}

// The best entry of every literal of a slot by these numbers, into literal_best_; -infinity without an entry.
void Messages::find_best(std::int32_t s, const double* entries) {
    const std::int64_t literals = set_.slot_literal[s + 1] - set_.slot_literal[s];
    const std::int32_t n = alive_[set_.slot_factor[s]];
    const std::uint16_t* column = column_.data() + set_.slot_column[s];
    std::fill_n(literal_best_.begin(), literals, kNone);
    // Two tables, because neighbours often have the same range: neither waits for the other's write.
    std::fill_n(literal_other_.begin(), literals, kNone);
    std::int32_t i = 0;
    for (; i + 1 < n; i += 2) {
        double& best = literal_best_[column[i]];
        double& other = literal_other_[column[i + 1]];
        best = std::max(best, entries[i]);
        other = std::max(other, entries[i + 1]);
    }
    if (i < n) literal_best_[column[i]] = std::max(literal_best_[column[i]], entries[i]);
    for (std::int64_t d = 0; d < literals; ++d) literal_best_[d] = std::max(literal_best_[d], literal_other_[d]);
}

// r of all factors of v; cells of segments without an entry are removed.
bool Messages::reduce(std::int32_t v, Domains& domains) {
    bool removed = false;
    for (std::int32_t u = set_.use_offset[v]; u < set_.use_offset[v + 1]; ++u) {
        const std::int32_t s = set_.use_slot[u];
        const std::int64_t first = set_.slot_segment[s];
        const std::int64_t segments = set_.slot_segment[s + 1] - first;
        std::fill_n(over_segments_.begin(), run_lines(segments) * segments, kNone);
        ask_entries(s);
        spread_runs(over_segments_.data(), segments);
        double* r = reduced_.data() + first;
        double largest = largest_reduced_;
        for (std::int64_t g = 0; g < segments; ++g) {
            r[g] = over_segments_[g];
            if (r[g] == kNone) {
                r[g] = 0;
                if (keeps_cells_ || !domains.any(v, set_.segment_start[first + g], set_.segment_end[first + g]))
                    continue;
                for (Cell k = set_.segment_start[first + g]; k <= set_.segment_end[first + g]; ++k) {
                    if (domains.has(v, k)) domains.remove(v, k), removed = true;
                }
            }
            largest = std::max(largest, std::fabs(r[g]));
        }
        largest_reduced_ = largest;
        work_ += alive_[set_.slot_factor[s]] + 2 * (segments + set_.slot_literal[s + 1] - set_.slot_literal[s]);
    }
    return removed;
}

bool Messages::drop_cells(std::int32_t v, Domains& domains) {
    std::int64_t rest = total_ + unscoped_ + constant_;
    for (std::int32_t u = set_.use_offset[v]; u < set_.use_offset[v + 1]; ++u) {
        rest -= whole(best_[set_.slot_factor[set_.use_slot[u]]]);
    }
    const double* sum = sum_.data() + problem_.cell_offset[v];
    bool removed = false;
    for (Cell k = 0; k < problem_.size[v]; ++k) {
        if (domains.has(v, k) && rest + whole(sum[k]) < 0) domains.remove(v, k), removed = true;
    }
    return removed;
}

bool Messages::update(std::int32_t v, Domains& domains) {
    bool removed = reduce(v, domains);
    if (out_of_range(v)) {
        start_over();
        return true;
    }
    sum_reduced(v);
    if (!keeps_cells_ && drop_cells(v, domains)) removed = true;
    if (removed) {
        domains_.copy(domains, v);
        if (!drop_entries(v)) return false;
    }
    hand_out(v, true);
    if (out_of_range(v)) start_over();
    return true;
}

Sweep Messages::sweep(bool forward, Domains& domains, Control& control) {
    if (empty_) return Sweep::pruned;
    const std::int32_t n = problem_.variables();
    for (std::int32_t i = 0; i < n; ++i) {
        const std::int32_t v = forward ? i : n - 1 - i;
        if (set_.use_offset[v] == set_.use_offset[v + 1]) continue;
        if (!update(v, domains)) {
            empty_ = true;
            unscoped_ = kEmpty;
            return Sweep::pruned;
        }
        if (control.expired()) return Sweep::stopped;
    }
    return bound() < 0 ? Sweep::pruned : Sweep::open;
}

}  // namespace treesens
