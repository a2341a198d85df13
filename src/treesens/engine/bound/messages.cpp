#include "bound/messages.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "bound/messages_numbers.hpp"
#include "problem/checked.hpp"

namespace treesens {

Messages::Messages(const Problem& problem, const FactorSet& set, MemoryBudget& budget) : problem_(problem), set_(set) {
    const std::int64_t segments = static_cast<std::int64_t>(set.segment_start.size());
    const std::int64_t literals = static_cast<std::int64_t>(set.literal_low.size());
    std::int64_t largest_slot = 1;
    std::int64_t largest_over_segments = 1;
    for (std::int32_t s = 0; s < set.slots(); ++s) {
        const std::int64_t n = set.slot_segment[s + 1] - set.slot_segment[s];
        largest_slot = std::max({largest_slot, set.slot_literal[s + 1] - set.slot_literal[s], n});
        largest_over_segments = std::max(largest_over_segments, n * run_lines(n));
    }
    std::int64_t most_entries = 0;
    std::int64_t most_segments = 0;
    std::int64_t most_literals = 0;
    for (std::int32_t t = 0; t < set.factors(); ++t) {
        const std::int32_t first = set.slot_offset[t];
        const std::int32_t last = set.slot_offset[t + 1];
        const std::int64_t entries = set.entry_offset[t + 1] - set.entry_offset[t];
        most_entries = std::max(most_entries, entries);
        most_segments = std::max(most_segments, set.slot_segment[last] - set.slot_segment[first]);
        most_literals = std::max(most_literals, set.slot_literal[last] - set.slot_literal[first]);
    }
    std::int64_t largest_table = 1;
    for (std::int32_t n : problem.size) {
        largest_table = std::max(largest_table, n * run_lines(n));
    }
    budget.charge(20 * set.entries() + 8 * (segments + literals + 2 * problem.cells() + largest_table));
    budget.charge(8 * (most_entries + 2 * most_segments + most_literals));
    budget.charge(2 * static_cast<std::int64_t>(set.column.size()));
    value_.assign(set.entries(), 0);
    theta_.assign(set.entries(), 0);
    order_.resize(set.entries());
    column_ = set.column;
    alive_.assign(set.factors(), 0);
    best_.assign(set.factors(), 0);
    reduced_.assign(segments, 0);
    literal_.assign(literals, 0);
    sum_.assign(problem.cells(), 0);
    unary_.assign(problem.cells(), 0);
    literal_best_.assign(largest_slot, 0);
    literal_other_.assign(largest_slot, 0);
    change_.assign(largest_slot, 0);
    dead_.assign(largest_slot, 0);
    over_segments_.assign(largest_over_segments, 0);
    maxima_.assign(largest_table, 0);
    taken_entry_.assign(most_entries, 0);
    taken_.assign(most_segments, 0);
    given_.assign(most_segments, 0);
    held_.assign(most_literals, 0);
    row_constant_.assign(set.rows.size(), 0);
    multiplier_.assign(set.rows.size(), 0);
    for (std::int32_t t = 0; t < set.factors(); ++t) {
        std::iota(order_.begin() + set.entry_offset[t], order_.begin() + set.entry_offset[t + 1],
                  narrow<std::int32_t>(set.entry_offset[t]));
        largest_scope_ = std::max<double>(largest_scope_, set.slot_offset[t + 1] - set.slot_offset[t]);
    }
    if (!problem.has_unary) return;
    row_unary_.assign(set.rows.size(), std::vector<double>(problem.cells(), 0));
    for (std::size_t m = 0; m < set.rows.size(); ++m) {
        for (std::int32_t v = 0; v < problem.variables(); ++v) {
            for (Cell k = 0; k < problem.size[v]; ++k) {
                std::int64_t sum = 0;
                for (std::int32_t r : set.rows[m]) sum += problem.unary_at(r, v, k);
                row_unary_[m][problem.cell_offset[v] + k] = static_cast<double>(to_grid(sum, set.shift[m]));
            }
        }
    }
}

void Messages::set_multipliers(const std::vector<std::int32_t>& multiplier) {
    ensure(multiplier.size() == set_.rows.size(), "there must be one multiplier per row");
    std::int64_t sum = 0;
    for (std::size_t m = 0; m < multiplier.size(); ++m) {
        ensure(0 <= multiplier[m] && multiplier[m] <= kMultiplierUnit, "a multiplier lies outside [0, unit]");
        sum += multiplier[m] * static_cast<std::int64_t>(set_.rows[m].size());
    }
    ensure(sum == kMultiplierUnit, "the multipliers do not sum to the unit");
    multiplier_ = multiplier;
}

void Messages::set_constants(const std::vector<std::int64_t>& constant) {
    row_constant_ = constant;
    constant_ = 0;
    for (std::size_t m = 0; m < set_.rows.size(); ++m) {
        if (multiplier_[m] != 0) constant_ += multiplier_[m] * (row_constant_[m] + set_.constant[m]);
    }
}

void Messages::reset(const Domains& domains, bool keep) {
    for (std::int32_t t = 0; t < set_.factors(); ++t) {
        alive_[t] = narrow<std::int32_t>(set_.entry_offset[t + 1] - set_.entry_offset[t]);
        write_columns(t, alive_[t]);
    }
    if (!keep) std::fill(reduced_.begin(), reduced_.end(), 0);
    domains_ = domains;
    empty_ = false;
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (!drop_entries(v)) empty_ = true;
    }
    refresh();
}

void Messages::save(Saved& out) const {
    out.reduced = reduced_;
    out.alive = alive_;
    out.multiplier = multiplier_;
    out.domains = domains_;
}

void Messages::restore(const Saved& saved) {
    reduced_ = saved.reduced;
    alive_ = saved.alive;
    set_multipliers(saved.multiplier);
    domains_ = saved.domains;
    empty_ = false;
    refresh();
}

SavedMessages Messages::saved_messages() const {
    std::vector<std::uint64_t> alive(order_.size() / 64 + 1, 0);
    for (std::int32_t t = 0; t < set_.factors(); ++t) {
        const std::int32_t* entry = order_.data() + set_.entry_offset[t];
        for (std::int32_t i = 0; i < alive_[t]; ++i) alive[entry[i] / 64] |= std::uint64_t{1} << (entry[i] % 64);
    }
    return {std::vector<float>(reduced_.begin(), reduced_.end()), multiplier_, std::move(alive), domains_};
}

// The remaining entries are moved to the front again.
void Messages::bring_back(const std::vector<std::uint64_t>& alive) {
    const auto is_alive = [&](std::int32_t e) { return (alive[e / 64] >> (e % 64)) & 1; };
    for (std::int32_t t = 0; t < set_.factors(); ++t) {
        const auto begin = order_.begin() + set_.entry_offset[t];
        const auto end = order_.begin() + set_.entry_offset[t + 1];
        alive_[t] = narrow<std::int32_t>(std::partition(begin, end, is_alive) - begin);
        write_columns(t, alive_[t]);
    }
}

void Messages::write_columns(std::int32_t t, std::int32_t n) {
    const std::int64_t first = set_.entry_offset[t];
    const std::int32_t* order = order_.data() + first;
    for (std::int32_t s = set_.slot_offset[t]; s < set_.slot_offset[t + 1]; ++s) {
        const std::uint16_t* from = set_.column.data() + set_.slot_column[s] - first;
        std::uint16_t* column = column_.data() + set_.slot_column[s];
        for (std::int32_t i = 0; i < n; ++i) column[i] = from[order[i]];
    }
}

void Messages::exchange(std::int32_t t, std::int32_t i, std::int32_t other) {
    const std::int64_t first = set_.entry_offset[t];
    std::swap(order_[first + i], order_[first + other]);
    std::swap(value_[first + i], value_[first + other]);
    std::swap(theta_[first + i], theta_[first + other]);
    for (std::int32_t s = set_.slot_offset[t]; s < set_.slot_offset[t + 1]; ++s) {
        std::swap(column_[set_.slot_column[s] + i], column_[set_.slot_column[s] + other]);
    }
}

void Messages::go_to(const Domains& domains, const SavedMessages& start) {
    set_multipliers(start.multiplier);
    reduced_.assign(start.reduced.begin(), start.reduced.end());
    bring_back(start.alive);
    work_ += set_.entries() / 4;
    domains_ = start.domains;
    empty_ = false;
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (domains_.same(domains, v)) continue;
        domains_.copy(domains, v);
        if (!drop_entries(v)) empty_ = true;
    }
    refresh();
}

void Messages::start_over() {
    std::fill(reduced_.begin(), reduced_.end(), 0);
    refresh();
}

void Messages::refresh() {
    set_constants(row_constant_);
    for (std::int32_t t = 0; t < set_.factors(); ++t) {
        std::fill_n(value_.begin() + set_.entry_offset[t], alive_[t], 0);
    }
    std::fill(unary_.begin(), unary_.end(), 0);
    for (std::size_t m = 0; m < set_.rows.size(); ++m) {
        if (multiplier_[m] == 0) continue;
        const double k = multiplier_[m];
        const double* value = set_.value[m].data();
        for (std::int32_t t = 0; t < set_.factors(); ++t) {
            const std::int64_t end = set_.entry_offset[t] + alive_[t];
            for (std::int64_t i = set_.entry_offset[t]; i < end; ++i) value_[i] += k * value[order_[i]];
        }
        if (row_unary_.empty()) continue;
        for (std::size_t c = 0; c < unary_.size(); ++c) unary_[c] += k * row_unary_[m][c];
    }
    evaluate();
}

void Messages::evaluate() {
    largest_literal_ = 0;
    largest_reduced_ = 0;
    for (double r : reduced_) largest_reduced_ = std::max(largest_reduced_, std::fabs(r));
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        sum_reduced(v);
        hand_out(v, false);
    }
    total_ = 0;
    for (std::int32_t t = 0; t < set_.factors(); ++t) {
        const std::int32_t n = alive_[t];
        double* theta = theta_.data() + set_.entry_offset[t];
        std::copy_n(value_.begin() + set_.entry_offset[t], n, theta);
        for (std::int32_t s = set_.slot_offset[t]; s < set_.slot_offset[t + 1]; ++s) {
            const std::uint16_t* column = column_.data() + set_.slot_column[s];
            const double* literal = literal_.data() + set_.slot_literal[s];
            for (std::int32_t i = 0; i < n; ++i) theta[i] += literal[column[i]];
        }
        double best = kNone;
        for (std::int32_t i = 0; i < n; ++i) best = std::max(best, theta[i]);
        work_ += alive_[t] * (2 + set_.slot_offset[t + 1] - set_.slot_offset[t]);
        if (alive_[t] == 0) {
            empty_ = true;
            best = 0;
        }
        best_[t] = best;
        total_ += whole(best);
    }
    update_unscoped();
    // Other multipliers may push old messages out of range; zero messages are always in range.
    if (largest_literal_ * largest_scope_ >= kRange && largest_reduced_ > 0) start_over();
}

void Messages::update_unscoped() {
    unscoped_ = empty_ ? kEmpty : 0;
    if (row_unary_.empty() || empty_) return;
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (set_.use_offset[v] < set_.use_offset[v + 1]) continue;
        double best = kNone;
        for (Cell k = 0; k < problem_.size[v]; ++k) {
            if (domains_.has(v, k)) best = std::max(best, unary_[problem_.cell_offset[v] + k]);
        }
        if (best == kNone) {
            unscoped_ = kEmpty;
            return;
        }
        unscoped_ += whole(best);
    }
}

void Messages::sync(const Domains& domains) {
    bool changed = false;
    for (std::int32_t v = 0; v < problem_.variables(); ++v) {
        if (domains_.same(domains, v)) continue;
        changed = true;
        domains_.copy(domains, v);
        if (!drop_entries(v)) {
            empty_ = true;
            break;
        }
        hand_out(v, true);
        if (out_of_range(v)) start_over();
    }
    if (changed) update_unscoped();
}

}  // namespace treesens
