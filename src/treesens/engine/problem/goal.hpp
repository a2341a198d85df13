// The value of a point, and the best values reached so far.
//
// All three questions (decide, maximise the objective, maximise the minimum slack) have one form:
//     maximise t  subject to  slack_r(x) >= 0 for hard rows,  slack_r(x) >= t for soft rows,  and all clauses.
// Deciding means: soft rows are the constraints that count in the near-miss, and t = 0 is enough.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "problem/problem.hpp"

namespace treesens {

enum class Mode { decide = 0, objective = 1, slack = 2 };

// Lexicographic: first how far the hard rows are violated (0 when they hold), then the minimum of the soft rows.
struct Score {
    std::int64_t hard = INT64_MIN;
    std::int64_t soft = INT64_MIN;
    bool operator<(const Score& o) const { return hard != o.hard ? hard < o.hard : soft < o.soft; }
    bool operator==(const Score& o) const { return hard == o.hard && soft == o.soft; }
    void add(bool is_soft, std::int64_t slack) {
        if (is_soft)
            soft = std::min(soft, slack);
        else
            hard = std::min(hard, slack);
    }
    static Score top() { return {0, INT64_MAX}; }
};

struct Goal {
    Mode mode = Mode::decide;
    std::vector<std::int64_t> bound;  // [rows]
    std::vector<std::uint8_t> soft;   // [rows]

    Goal() = default;
    Goal(const Problem& p, Mode m, std::vector<std::int64_t> b) : mode(m), bound(std::move(b)), soft(p.rows, 0) {
        for (std::int32_t r = 0; r < p.rows; ++r) {
            const bool is_objective = r == p.constraints;
            soft[r] = mode == Mode::objective ? is_objective : (!is_objective && p.slack_weight[r]);
        }
    }
    // In the modes without objective, the objective row is ignored.
    bool counts(const Problem& p, std::int32_t row) const { return row < p.constraints || mode == Mode::objective; }

    Score score(const Problem& p, const std::int64_t* slack) const {
        Score s = Score::top();
        for (std::int32_t r = 0; r < p.rows; ++r) {
            if (counts(p, r)) s.add(soft[r], slack[r]);
        }
        return s;
    }
    bool is_witness(const Score& s) const { return s.hard >= 0 && (mode == Mode::objective || s.soft >= 0); }
};

// The best point so far. Scores are exact, so a witness is a witness.
struct Incumbent {
    std::vector<Cell> x;
    Score score;
    bool present() const { return !x.empty(); }
    // Whether the question is whether there is a solution, and this is one.
    bool decides(const Goal& goal) const { return goal.mode == Mode::decide && present() && goal.is_witness(score); }
    bool offer(const Score& s, const std::vector<Cell>& point) {
        if (present() && !(score < s)) return false;
        x = point;
        score = s;
        return true;
    }
};

}  // namespace treesens
