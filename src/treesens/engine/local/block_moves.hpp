// Exact block moves: the best cells of one or two variables, with all others fixed, together with the best cell of one
// private variable per point.
//
// docs/engine.md: keep the profile of every row over the private variable; traverse only the trees that ask
// for the block with block and private variable left open, add every leaf to its rectangle in a difference array,
// prefix-sum, read off the best cell. All in exact integers.
//
// Moves raise the least slack or, if many rows have to hold together, the sum of their deficits: a move that brings one
// row nearer counts even if another one moves away (ADR 0035).
//
// The private variables follow from the problem: rows fall into clusters (those of point a, those of point b) such that
// a copied variable of F affects only one cluster. The clusters then choose their private cells independently.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/box_trees.hpp"
#include "problem/checked.hpp"
#include "problem/clauses.hpp"
#include "problem/domains.hpp"
#include "problem/goal.hpp"
#include "problem/problem.hpp"

namespace treesens {

inline constexpr std::int64_t kLargestGrid = 300'000;
// Above this many cells of a block and the open variable together, a move uses the few places between the cuts of its
// trees: below, finding them takes longer than adding over all cells.
inline constexpr std::int64_t kMostDense = 50'000;
// The same if moves raise a sum over many rows, each with its own tables. Measured.
inline constexpr std::int64_t kMostDenseOfMany = 1'000;
// Maximum places of a single variable times those of the open one that a move examines, and a minimum number of places.
inline constexpr std::int64_t kLargestLine = 1'000'000;
inline constexpr std::int64_t kLeastWindow = 16;

class Moves {
public:
    Moves(const Problem& problem, const Forest& forest, const Clauses& clauses);

    void set_goal(const Goal& goal);
    // The cells of a variable that moves may choose, one byte each.
    const std::uint8_t* allowed(std::int32_t v) const { return allowed_.data() + problem_.cell_offset[v]; }
    // From now on these are the cells of `region`, or without one all that the problem allows.
    void stay_within(const Domains* region);
    // Moves to x (which must satisfy the clauses) and picks the private variables with the indices in `pick`.
    void place(const std::vector<Cell>& x, std::uint64_t pick);
    // The best move over the block; `second` may be -1. True if the score improved.
    bool improve(std::int32_t first, std::int32_t second);
    // Number of cells that the block move over these variables would compute.
    std::int64_t grid(std::int32_t first, std::int32_t second) const;

    const std::vector<Cell>& x() const { return x_; }
    const Score& score() const { return score_; }
    // What moves raise: the score, or with its `soft` as the sum of what soft rows miss, 0 if they miss nothing.
    const Score& worth() const { return worth_; }
    bool sums() const { return sums_; }
    std::int64_t work() const { return work_; }
    // Variables that can change something: they occur in a tree, a unary term or a clause, and have two cells.
    const std::vector<std::int32_t>& movable() const { return movable_; }

private:
    // Cells of a variable that a move does not distinguish are one place, represented by one allowed cell.
    struct Places {
        std::vector<std::uint8_t> cut;     // [cells]: another place begins
        std::vector<std::int32_t> number;  // [cells]: the place
        std::vector<Cell> cell;            // [places]: who stands for it; -1 if no cell is allowed
        void start(std::int32_t cells) {
            cut.assign(cells, 0);
            cell.clear();
        }
        // Numbers the places. `now` stands for its own, any allowed cell for another one.
        void close(const std::uint8_t* allowed, Cell now, std::uint64_t& random);
    };
    struct Cluster {
        std::vector<std::int32_t> rows;
        std::vector<std::int32_t> privates;
        std::int32_t open = -1;               // the private variable in use
        std::vector<std::int64_t> profile;    // [rows][cells of open]: slack with everything else as in x
        std::vector<std::int64_t> rectangle;  // [rows][first][second][open] difference array, then its sums
        std::vector<std::int64_t> plane;      // [rows][first][second]: leaves that do not depend on `open`
        std::int32_t width = 1;               // cells of open, or 1
        std::int32_t places = 1;              // of open that the move tells apart
        bool split = false;                   // the block leaves `open` open (it is not itself in the block)
        Places between;                       // of open, where the move stands on places
        std::vector<std::int64_t> line;       // [rows][places]: the profile there
    };
    struct Range {
        Cell low[3];
        Cell high[3];
    };
    // A leaf that holds for some of the cells that are open.
    struct Piece {
        std::int32_t group;
        std::int32_t leaf;
        Range range;
    };

    void find_clusters();
    void choose_privates(std::uint64_t pick);
    void build_profiles();
    void start_block(std::int32_t first, std::int32_t second);
    void find_places();
    void start_tables();
    void cut_at_changes();
    void choose_window(std::int64_t width);
    void add_pieces();
    void visit_groups(std::int32_t variable, std::int32_t also);
    void traverse(std::int32_t group, std::int32_t node, Range range);
    bool covers_block(const Range& range) const;
    void add_leaf(std::int32_t group, std::int32_t leaf, const Range& range);
    void keep_piece(std::int32_t group, std::int32_t leaf, const Range& range);
    void sum_tables();
    Score of_no_row() const { return sums_ ? Score{0, 0} : Score::top(); }
    void add_row(Score& s, std::int32_t row, std::int64_t slack) const;
    void add_cluster(Score& s, const Score& part) const;
    void measure();
    Score cluster_best(Cluster& c, std::int64_t cell, std::int64_t here, std::int32_t* best_open) const;
    Score single_row_best(const Cluster& c, std::int64_t cell, std::int64_t here, std::int32_t* best_open) const;
    void read_block_cell(Cluster& c, std::int64_t cell, std::int64_t here, std::int64_t* out) const;
    void adopt(std::int64_t cell, std::int64_t here);
    bool adopt_with_clauses(std::int64_t cell, std::int64_t here);
    std::int64_t unary_difference(std::int32_t row, std::int64_t cell) const;
    void mask_cells(std::int32_t variable, std::vector<std::uint8_t>& mask);
    // Where a cell of the block stands in the tables, and who stands for a place there.
    std::int32_t place_of(int axis, Cell cell) const {
        return sparse_ ? places_[axis].number[cell] - (axis == 0 ? from_ : 0) : cell;
    }
    Cell cell_of(int axis, std::int64_t place) const {
        return sparse_ ? places_[axis].cell[place + (axis == 0 ? from_ : 0)] : narrow<Cell>(place);
    }
    bool is_free(int axis, std::int32_t place) const {
        return sparse_ ? cell_of(axis, place) >= 0 : mask_[axis][place] != 0;
    }
    // The same of the open variable of a cluster, and its profile.
    std::int32_t open_place(const Cluster& c) const { return sparse_ ? c.between.number[x_[c.open]] : x_[c.open]; }
    bool is_usable(const Cluster& c, std::int32_t place) const {
        return sparse_ ? c.between.cell[place] >= 0 : allowed(c.open)[place] != 0;
    }
    const std::int64_t* line_of(const Cluster& c) const { return sparse_ ? c.line.data() : c.profile.data(); }

    const Problem& problem_;
    const Forest& forest_;
    const Clauses& clauses_;
    const Goal* goal_ = nullptr;
    std::vector<std::uint8_t> allowed_;  // [cells]
    bool in_region_ = false;
    std::vector<Cluster> clusters_;
    std::vector<std::int32_t> cluster_of_;  // [rows]
    std::vector<std::int32_t> row_place_;   // [rows], index within its cluster
    std::vector<std::int32_t> movable_;
    std::vector<Cell> x_;
    Score score_;
    Score worth_;
    bool sums_ = false;
    std::int64_t most_missed_ = 0;  // by one row, as it is counted: the sum stays far from the ends of its range
    std::int64_t work_ = 0;

    // State of one block move.
    std::int32_t block_[2] = {-1, -1};
    std::int32_t size_[2] = {1, 1};
    bool sparse_ = false;  // the move stands on places
    bool keeps_ = false;   // leaves that are met are kept, as places are not known yet
    Places places_[2];
    std::vector<Piece> pieces_;
    std::int32_t from_ = 0;      // the first place of the first variable that the move looks at
    std::uint64_t windows_ = 1;  // where the next one begins
    std::int32_t open_ = -1;     // private variable of the group being traversed
    std::vector<std::uint8_t> mask_[2];
    std::vector<std::uint8_t> open_mask_;
    mutable std::vector<std::int64_t> scratch_;
    std::vector<std::uint8_t> is_open_;      // [variables]
    std::vector<std::int32_t> chosen_open_;  // [clusters]: a place
};

}  // namespace treesens
