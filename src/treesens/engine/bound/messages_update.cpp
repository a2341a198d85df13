// The star update of a variable: what its factors say of each cell, and what it tells them.
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
    double* previous = maxima_.data();
    for (std::int32_t half = 1; 2 * half <= line_; half *= 2) {
        double* level = previous + line_;
        for (Cell k = 0; k + 2 * half <= line_; ++k) level[k] = std::max(previous[k], previous[k + half]);
        previous = level;
    }
    work_ += 4 * line_;
}

double Messages::segment_maximum(std::int64_t segment) const {
    const std::int32_t level = set_.segment_level[segment];
    const double* table = maxima_.data() + static_cast<std::int64_t>(level) * line_;
    return std::max(table[set_.segment_start[segment]], table[set_.segment_end[segment] - (1 << level) + 1]);
}

double Messages::segment_message(std::int64_t segment, double inverse) const {
    const double most = segment_maximum(segment);
    return most == kNone ? kNone : round_up_quotient(most, inverse) - reduced_[segment];
}

bool Messages::out_of_range(std::int32_t v) const {
    const double n = std::max(1, set_.use_offset[v + 1] - set_.use_offset[v]);
    return largest_reduced_ * n >= kRange || largest_literal_ * largest_scope_ >= kRange;
}

// A factor with one entry left only needs the message of the range of that entry (deep in the search most are such).
void Messages::hand_out_to_single(std::int32_t slot, double inverse, bool apply) {
    const std::int32_t t = set_.slot_factor[slot];
    const std::int32_t e = order_[set_.entry_offset[t]];
    const std::int64_t d = set_.slot_literal[slot] + set_.column[set_.slot_column[slot] + e - set_.entry_offset[t]];
    const std::int64_t first = set_.slot_segment[slot];
    double message = kNone;
    for (std::int32_t g = set_.literal_low[d]; g <= set_.literal_high[d]; ++g) {
        message = std::max(message, segment_message(first + g, inverse));
    }
    if (message == kNone) return;
    const double change = message - literal_[d];
    literal_[d] = message;
    largest_literal_ = std::max(largest_literal_, std::fabs(message));
    work_ += 4;
    if (!apply) return;
    theta_[e] += change;
    total_ += whole(theta_[e]) - whole(best_[t]);
    best_[t] = theta_[e];
}

void Messages::hand_out(std::int32_t v, bool apply) {
    const std::int32_t n = set_.use_offset[v + 1] - set_.use_offset[v];
    if (n == 0) return;
    const double inverse = 1.0 / n;
    fill_maxima(v);
    for (std::int32_t u = set_.use_offset[v]; u < set_.use_offset[v + 1]; ++u) {
        const std::int32_t s = set_.use_slot[u];
        const std::int64_t first = set_.slot_segment[s];
        const std::int64_t segments = set_.slot_segment[s + 1] - first;
        if (alive_[set_.slot_factor[s]] == 1) {
            hand_out_to_single(s, inverse, apply);
            continue;
        }
        for (std::int64_t g = 0; g < segments; ++g) segment_message_[g] = segment_message(first + g, inverse);
        const std::int64_t begin = set_.slot_literal[s];
        const std::int64_t literals = set_.slot_literal[s + 1] - begin;
        double largest = largest_literal_;
        for (std::int64_t d = 0; d < literals; ++d) {
            double message = kNone;
            for (std::int32_t g = set_.literal_low[begin + d]; g <= set_.literal_high[begin + d]; ++g) {
                message = std::max(message, segment_message_[g]);
            }
            // A dead range belongs to dead entries only; its old message is kept as it is never read.
            if (message == kNone) message = literal_[begin + d];
            change_[d] = message - literal_[begin + d];
            literal_[begin + d] = message;
            largest = std::max(largest, std::fabs(message));
        }
        largest_literal_ = largest;
        work_ += 2 * (segments + literals);
        if (!apply) continue;
        const std::int32_t t = set_.slot_factor[s];
        const std::int32_t* e = order_.data() + set_.entry_offset[t];
        const std::int32_t* end = e + alive_[t];
        const std::uint16_t* column = set_.column.data() + set_.slot_column[s] - set_.entry_offset[t];
        double best = kNone;
        double other = kNone;  // one maximum need not wait for the other
        for (; end - e > 1; e += 2) {
            const double theta = theta_[e[0]] + change_[column[e[0]]];
            const double next = theta_[e[1]] + change_[column[e[1]]];
            theta_[e[0]] = theta;
            theta_[e[1]] = next;
            best = std::max(best, theta);
            other = std::max(other, next);
        }
        if (e != end) best = std::max(best, theta_[*e] += change_[column[*e]]);
        best = std::max(best, other);
        work_ += alive_[t];
        if (alive_[t] == 0) best = 0;
        total_ += whole(best) - whole(best_[t]);
        best_[t] = best;
    }
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
        std::int32_t* order = order_.data() + set_.entry_offset[t];
        const std::uint16_t* column = set_.column.data() + set_.slot_column[s] - set_.entry_offset[t];
        std::int32_t left = alive_[t];
        work_ += left;
        for (std::int32_t i = 0; i < left;) {
            if (dead_[column[order[i]]])
                std::swap(order[i], order[--left]);
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
        std::int32_t* order = order_.data() + set_.entry_offset[t];
        const std::int64_t least = whole(best_[t]) - slack;
        work_ += alive_[t];
        // The best entry stays, so that the factor keeps its maximum.
        for (std::int32_t i = 0; i < alive_[t];) {
            if (whole(theta_[order[i]]) < least)
                std::swap(order[i], order[--alive_[t]]);
            else
                ++i;
        }
    }
}

// r of all factors of v; cells of segments without an entry are removed.
bool Messages::reduce(std::int32_t v, Domains& domains) {
    bool removed = false;
    for (std::int32_t u = set_.use_offset[v]; u < set_.use_offset[v + 1]; ++u) {
        const std::int32_t s = set_.use_slot[u];
        const std::int32_t t = set_.slot_factor[s];
        const std::int64_t begin = set_.slot_literal[s];
        const std::int64_t literals = set_.slot_literal[s + 1] - begin;
        std::fill(literal_best_.begin(), literal_best_.begin() + literals, kNone);
        const std::int32_t* e = order_.data() + set_.entry_offset[t];
        const std::int32_t* end = e + alive_[t];
        const std::uint16_t* column = set_.column.data() + set_.slot_column[s] - set_.entry_offset[t];
        // Two tables, because neighbours often have the same range: the one need not wait for what the other one wrote.
        std::fill(literal_other_.begin(), literal_other_.begin() + literals, kNone);
        for (; end - e > 1; e += 2) {
            double& best = literal_best_[column[e[0]]];
            double& other = literal_other_[column[e[1]]];
            best = std::max(best, theta_[e[0]]);
            other = std::max(other, theta_[e[1]]);
        }
        if (e != end) literal_best_[column[*e]] = std::max(literal_best_[column[*e]], theta_[*e]);
        for (std::int64_t d = 0; d < literals; ++d) literal_best_[d] = std::max(literal_best_[d], literal_other_[d]);
        const std::int64_t first = set_.slot_segment[s];
        const std::int64_t segments = set_.slot_segment[s + 1] - first;
        double* r = reduced_.data() + first;
        std::fill(r, r + segments, kNone);
        for (std::int64_t d = 0; d < literals; ++d) {
            if (literal_best_[d] == kNone) continue;
            const double without = literal_best_[d] - literal_[begin + d];
            for (std::int32_t g = set_.literal_low[begin + d]; g <= set_.literal_high[begin + d]; ++g) {
                r[g] = std::max(r[g], without);
            }
        }
        double largest = largest_reduced_;
        for (std::int64_t g = 0; g < segments; ++g) {
            if (r[g] == kNone) {
                r[g] = 0;
                if (keeps_cells_ || !domains.any(v, set_.segment_start[first + g], set_.segment_end[first + g]))
                    continue;
                for (Cell k = set_.segment_start[first + g]; k <= set_.segment_end[first + g]; ++k) {
                    if (domains.has(v, k)) domains.remove(v, k), removed = true, ++removed_;
                }
            }
            largest = std::max(largest, std::fabs(r[g]));
        }
        largest_reduced_ = largest;
        work_ += alive_[t] + 2 * (literals + segments);
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
        if (domains.has(v, k) && rest + whole(sum[k]) < 0) domains.remove(v, k), removed = true, ++removed_;
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
