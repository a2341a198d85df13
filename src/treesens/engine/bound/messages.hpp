// Messages between factors and variables: the upper bound of the prover (docs/engine.md).
//
//     bound = sum_T max_e [ value(e) + sum_v max_{k in box of e} m_{T,v}(k) ] + constant >= max_x L(x)
//
// for any messages with sum_T m_{T,v}(k) >= unary_v(k). The star update of variable v takes from every factor the best
// value r_{T,s} of every segment s without the factor's own message of v, sums them to A_v(k), and hands out
// m_{T,v}(k) = A_v(k)/n_v - r_{T,seg(k)}. Only r and A are stored; m is evaluated per segment with the range maxima of
// A. The other update is that of a factor (messages_passes.cpp): it changes r of one factor after the other and A with
// it, and the bound is evaluated after all of them. Whatever r is, these messages sum to unary_v.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bound/factors.hpp"
#include "problem/domains.hpp"
#include "problem/limits.hpp"
#include "problem/problem.hpp"
#include "problem/rounding.hpp"

namespace treesens {

// The start of a node: messages, multipliers, and the remaining entries of a node above. Any messages give a bound, so
// they are stored rounded to 24 bits; rounded integers remain integers.
struct SavedMessages {
    std::vector<float> reduced;  // r
    std::vector<std::int32_t> multiplier;
    std::vector<std::uint64_t> alive;  // a bit for each entry, as the set numbers them
    Domains domains;
    std::int64_t bytes() const {
        return static_cast<std::int64_t>(4 * (reduced.size() + multiplier.size()) + 8 * alive.size()) + domains.bytes();
    }
};

// A state that is restored exactly when the search returns from below.
struct Saved {
    std::vector<double> reduced;      // r
    std::vector<std::int32_t> alive;  // [factors]
    std::vector<std::int32_t> multiplier;
    Domains domains;
};

enum class Sweep { open, pruned, stopped };

class Messages {
public:
    Messages(const Problem& problem, const FactorSet& set, MemoryBudget& budget);

    const FactorSet& set() const { return set_; }
    // Multipliers, one per row of the set: from 0 to the unit, and their sum over the rows of the problem is the unit;
    // InternalError otherwise. Takes effect with the next refresh(), as does the constant of the rows at the threshold.
    void set_multipliers(const std::vector<std::int32_t>& multiplier);
    void set_constants(const std::vector<std::int64_t>& constant);  // [rows], grid integers
    const std::vector<std::int32_t>& multipliers() const { return multiplier_; }
    std::int64_t row_constant(std::size_t row) const { return row_constant_[row]; }

    // Starts with all entries, from zero messages unless `keep` (those of an earlier run with other bounds).
    void reset(const Domains& domains, bool keep);
    // Takes over domains that are subsets of those of the last reset, restore or sync.
    void sync(const Domains& domains);
    // Recomputes everything that depends on r.
    void refresh();
    void save(Saved& out) const;
    void restore(const Saved& saved);
    SavedMessages saved_messages() const;
    // Moves to a node below the one at which `start` was saved.
    void go_to(const Domains& domains, const SavedMessages& start);
    const std::vector<double>& reduced() const { return reduced_; }
    void set_reduced(const std::vector<double>& r) { reduced_ = r; }

    // From now on no cell is removed: every bound then depends on the domains alone, as in a certificate.
    void keep_cells() { keeps_cells_ = true; }
    // One star update of every variable, forward or backward. Cells whose bound is negative are removed from `domains`
    // (which must be in sync); pruned when the bound is negative or a domain is empty.
    Sweep sweep(bool forward, Domains& domains, Control& control);
    // Updates the factors one by one, forward and backward, and evaluates the bound, which may rise. Often progresses
    // where the star update stalls. If stopped, the result so far is kept.
    Sweep pass(Control& control);
    std::int64_t bound() const { return total_ + unscoped_ + constant_; }
    bool empty() const { return empty_; }
    // The parts of the bound: the constant, the values of entries without messages, the unary terms of all cells.
    std::int64_t constant() const { return constant_; }
    double value(std::int64_t place) const { return value_[place]; }
    double unary(std::int32_t cell) const { return unary_[cell]; }
    // The message of every segment that contains a cell of the domain, as an integer; out[segments].
    void read_messages(std::vector<double>& out);

    // Drops the entries that no solution uses: with any of them chosen, the bound is negative. The bound itself must
    // not be negative.
    void drop_hopeless();

    // x_v = argmax A_v for the variables of this set; others are left alone.
    void decode(std::vector<Cell>& x) const;
    // Row sums (grid integers, with constants) of the best entry of every factor and the unary terms at x.
    void best_rows(const std::vector<Cell>& x, std::vector<double>& out) const;
    // The remaining entries of a factor start at its first entry's position; this is their number.
    std::int32_t alive(std::int32_t factor) const { return alive_[factor]; }
    // The index of the entry at a position.
    std::int64_t entry(std::int64_t place) const { return order_[place]; }
    double theta(std::int64_t place) const { return theta_[place]; }
    // The position of a factor's best entry, and of the entry that contains x; -1 if none is left.
    std::int64_t best_place(std::int32_t factor) const;
    std::int64_t place_at(std::int32_t factor, const std::vector<Cell>& x) const;
    // The range of cells of an entry in a slot.
    Literal range(std::int32_t slot, std::int64_t entry) const;
    std::int64_t work() const { return work_; }

private:
    bool update(std::int32_t v, Domains& domains);
    bool reduce(std::int32_t v, Domains& domains);
    bool drop_cells(std::int32_t v, Domains& domains);
    bool drop_entries(std::int32_t v);
    void sum_reduced(std::int32_t v);
    void fill_maxima(std::int32_t v);
    // The message of segment `segment` of a variable with 1/n = inverse; -infinity when no cell is left.
    double segment_message(std::int64_t segment, double inverse) const {
        const std::int32_t level = set_.segment_level[segment];
        const double* table = maxima_.data() + static_cast<std::int64_t>(level) * line_;
        const std::int32_t second = set_.segment_end[segment] - (1 << level) + 1;
        return round_up_quotient(std::max(table[set_.segment_start[segment]], table[second]), inverse) -
               reduced_[segment];
    }
    double literal_message(std::int64_t literal) const;
    double tell_entries(std::int32_t slot, bool apply);
    double tell_literals(std::int32_t slot, bool apply);
    void ask_entries(std::int32_t slot);
    void find_best(std::int32_t slot, const double* entries);
    // The maximum over a literal in the current table, and the update of all its segments.
    double over_literal(std::int64_t literal) const {
        return std::max(over_segments_[set_.literal_first[literal]], over_segments_[set_.literal_second[literal]]);
    }
    void offer(std::int64_t literal, double value) {
        double& one = over_segments_[set_.literal_first[literal]];
        one = std::max(one, value);
        double& other = over_segments_[set_.literal_second[literal]];
        other = std::max(other, value);
    }
    // Recomputes the messages of v from r and A; with `apply` also the entries that they change.
    void hand_out(std::int32_t v, bool apply);
    void update_unscoped();
    void start_over();
    void bring_back(const std::vector<std::uint64_t>& alive);
    // Writes the ranges of the first n entries of a factor in the order of their places.
    void write_columns(std::int32_t t, std::int32_t n);
    // Swaps two entries of a factor.
    void exchange(std::int32_t t, std::int32_t i, std::int32_t other);
    bool out_of_range(std::int32_t v) const;
    // Recomputes messages, entries and the bound from r.
    void evaluate();
    void hide_cells();
    void update_factor(std::int32_t t);
    void take(std::int32_t t);
    void take_slot(std::int32_t s);
    void give(std::int32_t s, double share);
    void share_out(std::int32_t s, double share);
    void write_reduced(std::int32_t s);
    // The start of a slot in its factor's workspaces.
    std::int64_t segment_in_factor(std::int32_t s) const {
        return set_.slot_segment[s] - set_.slot_segment[set_.slot_offset[set_.slot_factor[s]]];
    }
    std::int64_t literal_in_factor(std::int32_t s) const {
        return set_.slot_literal[s] - set_.slot_literal[set_.slot_offset[set_.slot_factor[s]]];
    }

    const Problem& problem_;
    const FactorSet& set_;
    std::vector<std::int32_t> multiplier_;
    std::vector<std::int64_t> row_constant_;
    std::int64_t constant_ = 0;
    std::int64_t total_ = 0;     // sum of best_
    std::int64_t unscoped_ = 0;  // best unary terms of variables in no scope
    Domains domains_;
    bool empty_ = false;  // some factor has no entry left
    bool keeps_cells_ = false;

    // Entries have positions: within each factor the remaining ones come first, so that updates read contiguously.
    std::vector<std::int32_t> order_;             // [places]: the entry
    std::vector<std::uint16_t> column_;           // as that of the set, for places
    std::vector<double> value_;                   // [places], combined
    std::vector<double> theta_;                   // [places]: value plus messages
    std::vector<std::int32_t> alive_;             // [factors]
    std::vector<double> best_;                    // [factors]: max theta
    std::vector<double> reduced_;                 // [segments]: r
    std::vector<double> literal_;                 // [literals]: the message of a range of segments
    std::vector<double> sum_;                     // [cells]: A
    std::vector<std::vector<double>> row_unary_;  // [rows][cells], grid integers; empty without unary terms
    std::vector<double> unary_;                   // [cells], combined

    // Workspaces of one update.
    std::vector<double> literal_best_;
    std::vector<double> literal_other_;
    std::vector<double> change_;
    std::vector<std::uint8_t> dead_;
    std::vector<double> over_segments_;  // table of what there is over the segments of one slot
    std::vector<double> maxima_;         // sparse table of A over the cells of one variable
    std::int32_t line_ = 0;              // its line length
    // Workspaces of the factor update, the only place where numbers need not be exact.
    std::vector<double> taken_entry_;  // [alive entries]: value and what the variables hold for it
    std::vector<double> taken_;        // [segments of the factor]: what there was; -infinity: no cell is left
    std::vector<double> given_;        // [segments of the factor]: the r to come
    std::vector<double> held_;         // [literals of the factor]: the part of the entry that lies with a slot
    // Magnitudes, see rounding.hpp.
    double largest_reduced_ = 0;
    double largest_literal_ = 0;
    double largest_scope_ = 1;
    std::int64_t work_ = 0;
};

}  // namespace treesens
