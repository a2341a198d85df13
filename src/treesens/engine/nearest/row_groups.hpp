// Rows of a table in nested groups, so that what is refuted for a whole group is refuted once.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "nearest/pair_search.hpp"

namespace treesens {

struct Table {
    std::int64_t rows = 0;
    const double* values = nullptr;       // [rows, features], NaN is missing
    const std::int32_t* cells = nullptr;  // [rows, features], -1 where a value lies in none
};

class RowGroups {
public:
    struct Found {
        std::int64_t next = 0;  // place in order() where the pass ended
        std::int64_t row = -1;  // the row of a pair that was found, -1 without
        double cost = 0.0;
        bool closed = false;  // no pair is nearer to that row
    };

    RowGroups(const Table& table, const CellCosts& costs, const std::uint8_t* varied);

    // The rows, those of a group side by side. A pass does not move rows before the place where it ends.
    const std::vector<std::int64_t>& order() const { return order_; }
    // Searches around the rows flagged in `active` [rows] from place `first` of the order on, until a pair is found.
    // Rows without a pair below the cutoff are flagged in `closed` [rows].
    Found pass(PairSearch& search, const std::uint8_t* active, std::int64_t first, double cutoff, std::int64_t boxes,
               const std::function<bool()>& over, std::uint8_t* closed);
    std::vector<ValueRange> values_of(std::int64_t row) const;
    // The same around one row.
    Found around(PairSearch& search, std::int64_t row, double cutoff, std::int64_t boxes,
                 const std::function<bool()>& over) const;

private:
    struct Group {
        std::int64_t begin;  // in order_
        std::int64_t end;
        std::int32_t left;  // kUnsplit at first, kEqual if all rows are equal
        std::int32_t right;
    };
    struct Pass {
        PairSearch& search;
        const std::uint8_t* active;
        std::int64_t first;
        double cutoff;
        std::int64_t boxes;
        const std::function<bool()>& over;
        std::uint8_t* closed;
        Found found;
        bool ended;
    };

    static constexpr std::int32_t kUnsplit = -2;
    static constexpr std::int32_t kEqual = -1;

    void find_ranges(const Group& group, std::vector<ValueRange>& ranges) const;
    double spread(const ValueRange& range, std::int64_t feature) const;  // in units
    double spread(const std::vector<ValueRange>& ranges) const;          // what the ends of the ranges cost each other
    void split(std::int32_t group);                                      // after find_ranges
    void visit(std::int32_t group, std::size_t depth, const PairLevel& from, Pass& pass);

    const Table table_;
    const CellCosts costs_;
    const std::uint8_t* varied_;
    std::vector<std::int64_t> order_;
    std::vector<Group> groups_;       // split when they are first looked into
    std::vector<ValueRange> ranges_;  // of the group that is looked at
    std::deque<PairLevel> levels_;
};

}  // namespace treesens
