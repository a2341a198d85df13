// Local search for witnesses: restarts, perturbations and exact block moves (docs/engine.md).
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "local/block_moves.hpp"
#include "problem/clauses.hpp"
#include "problem/goal.hpp"
#include "problem/limits.hpp"

namespace treesens {

class LocalSearch {
public:
    LocalSearch(const Problem& problem, const Forest& forest, const Clauses& clauses, std::uint64_t seed);

    void set_goal(const Goal& goal);
    // Works until `work` is used up, the control expires, or (in decide mode) a witness is found.
    void run(std::int64_t work, const Goal& goal, Incumbent& incumbent, Control& control);
    // Coordinate descent from a given point (e.g. decoded by the prover); repairs its clauses first.
    void polish(std::vector<Cell> x, const Goal& goal, Incumbent& incumbent, Control& control);

    // From now on `run` searches only a region's cells, or everywhere.
    void stay_within(std::optional<Domains> region);

    // True if moves raise the sum of many rows' deficits.
    bool sums() const { return moves_.sums(); }
    std::int64_t restarts() const { return restarts_; }
    std::int64_t work() const { return moves_.work(); }

private:
    // If moves raise a sum, the search walks: it continues from the current point, even if that is slightly worse than
    // the walk's best, and starts another walk if nothing better turns up.
    struct Walk {
        std::vector<Cell> x;  // empty: it is still to begin
        Score best;
        std::int64_t since = 0;  // descents since the best one
    };

    bool next_start(const Incumbent& incumbent);
    bool new_start();
    void step(Walk& walk);
    void random_cells();
    bool perturb(const std::vector<Cell>& x);
    void offer(Incumbent& incumbent);
    // True when the goal is reached.
    bool descend(const Goal& goal, Incumbent& incumbent, Control& control, bool pairs);
    std::uint64_t below(std::uint64_t n) { return random_() % n; }

    const Problem& problem_;
    const Clauses& clauses_;
    Moves moves_;
    std::mt19937_64 random_;
    std::vector<Cell> start_;
    std::vector<std::int32_t> order_;
    std::vector<std::uint8_t> mask_;
    std::vector<std::uint8_t> closed_;  // all zero: no variable is left open when clauses restrict a perturbation
    std::int64_t restarts_ = 0;
    std::int64_t next_hint_ = 0;
    std::optional<Domains> region_;
    Incumbent inside_;  // the best point that was met in it
    Walk walk_;         // anywhere
    Walk walk_inside_;
};

}  // namespace treesens
