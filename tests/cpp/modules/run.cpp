// Problems that write.py has compiled from random questions, against brute force: run_modules FILE. Meant for the
// builds with sanitizers. Every mode, one prover and three, every pruned node looked at again; facts of `fix`; kernels
// for rows.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "../sample.hpp"
#include "check.hpp"
#include "ensemble/flip_profiles.hpp"
#include "problem/box_trees.hpp"
#include "problem/checked.hpp"
#include "problem/schedule.hpp"
#include "read.hpp"
#include "search.hpp"

using namespace treesens;
using namespace treesens::modules;

namespace {

constexpr double kMostPoints = 20'000;
constexpr std::int64_t kTogether = 30;
constexpr int kLargeBits = 57;
constexpr std::int64_t kPausesByNodes = 24;
constexpr std::int64_t kPausesByClock = 30;

// Numbers of the schedule that bring the code of long and shared searches to small problems, with who proves there.
struct Forced {
    const char* schedule;
    Method method;
    int threads;
};
const std::string kShort =
    "local_turn=1,local_turn_2=1,local_turn_3=1,optimum_local_turn=1,optimum_local_turn_2=1,optimum_local_turn_3=1,"
    "prove_turn=1,optimum_prove_turn=1,prove_turn_2=3000,optimum_prove_turn_2=3000,sum_local_turn_2=1,"
    "sum_prove_turn_2=3000,sum_local_turn_3=1,";
const std::string kWeak =
    kShort + "root_sweeps=1,node_sweeps=0,root_steps=1,node_steps=0,root_passes=0,node_passes=0,polish=0,";
const Forced kForced[] = {
    {"part_early=1,part_late=2,part_long=0,part_turn=300", Method::messages, 1},
    {"share_from_turn=1,share_unsettled=1,share_quantum=20", Method::messages, 3},
    {"open_node_megabytes=0", Method::messages, 1},
    {"overlap_idle=1,overlap_point=3", Method::overlap, 1},
    {"overlap_pairs=4,messages_every=2,deep_tree=1", Method::both, 1},
    {"sum_rows=1,sum_local_turn_2=5000,sum_local_turn_3=5000,overlap_point=3", Method::both, 1},
};

bool allowed(const Problem& p, const std::vector<Cell>& x) {
    for (std::int32_t v = 0; v < p.variables(); ++v) {
        if (!p.allowed[static_cast<std::size_t>(p.cell_offset[v] + x[v])]) return false;
    }
    for (std::int64_t c = 0; c < p.clauses(); ++c) {
        bool holds = false;
        for (std::int64_t i = p.clause_offset[c]; i < p.clause_offset[c + 1]; ++i) {
            const Literal& l = p.clause_literals[i];
            holds = holds || (l.low <= x[l.variable] && x[l.variable] <= l.high);
        }
        if (!holds) return false;
    }
    return true;
}

// The same problem with soft rows raised by what the best point has to spare, and by `more`: its best points alone are
// solutions, and with more than that none is. Local search meets such points rarely, so the provers have to. The best
// of nothing changes nothing.
Problem tightened(Problem p, const Forest& forest, std::int64_t more) {
    const Goal goal(p, Mode::decide, p.bound);
    Score best;
    std::vector<std::int64_t> slack(static_cast<std::size_t>(p.rows));
    sample::for_all(p, [&](const std::vector<Cell>& x) {
        if (!allowed(p, x)) return;
        evaluate(p, forest, p.bound, x.data(), slack.data());
        best = std::max(best, goal.score(p, slack.data()));
    });
    if (best.hard < 0 || best.soft == INT64_MAX) return p;
    for (std::int32_t r = 0; r < p.constraints; ++r) {
        if (goal.soft[r]) p.bound[r] += best.soft + more;
    }
    return p;
}

// The same problem in units so small that the provers have to round its rows.
Problem enlarged(Problem p) {
    std::int64_t largest = 1;
    for (std::int32_t r = 0; r < p.rows; ++r) largest = std::max(largest, p.magnitude(r) + std::abs(p.bound[r]));
    const std::int64_t factor = (std::int64_t{1} << kLargeBits) / largest | 1;
    for (std::int64_t& value : p.coefficient_value) value *= factor;
    for (std::int64_t& value : p.unary) value *= factor;
    for (std::int64_t& value : p.bound) value *= factor;
    return p;
}

// The objective without rows to meet: the searches that begin again in parts.
Problem without_rows(Problem p) {
    for (std::size_t i = 0; i < p.coefficient_row.size(); ++i) {
        if (p.coefficient_row[i] < p.constraints) p.coefficient_value[i] = 0;
    }
    if (p.has_unary) std::fill_n(p.unary.begin(), static_cast<std::size_t>(p.constraints) * p.cells(), 0);
    std::fill_n(p.bound.begin(), static_cast<std::size_t>(p.constraints), 0);
    validate(p);
    return p;
}

// The best score of a mode over all points, and what the answer says of it. With `parts` nodes so deep become problems
// of their own; a search that pauses `often` shows its bounds on the way.
void run_mode(const Problem& p, const Forest& forest, Mode mode, Method method, int threads, std::uint64_t seed,
              bool small, std::int32_t parts = 0, bool often = false) {
    Score best;
    const Goal goal(p, mode, p.bound);
    std::vector<std::int64_t> slack(static_cast<std::size_t>(p.rows));
    if (small) {
        sample::for_all(p, [&](const std::vector<Cell>& x) {
            if (!allowed(p, x)) return;
            evaluate(p, forest, p.bound, x.data(), slack.data());
            best = std::max(best, goal.score(p, slack.data()));
        });
    }
    Search search(p, mode, seed, -1);
    search.set_threads(threads);
    search.set_method(method);
    if (parts > 0) search.set_together(kTogether);
    search.set_parts(parts);
    search.set_audit(1);
    const bool possible = best.hard >= 0 && (mode != Mode::decide || best.soft >= 0);
    // It pauses, by the clock or after so many nodes, and goes on: what is proved then has to hold for the best point.
    const std::int64_t pauses = !often ? 3 : threads == 1 ? kPausesByNodes : kPausesByClock;
    for (std::int64_t i = 1; i <= pauses && search.status() == Status::open; ++i) {
        if (often && threads == 1)
            search.run(-1, 20, 1);
        else
            search.run(often ? 0.00002 : 0.0002, -1, -1);
        if (small && possible && mode != Mode::decide) CHECK(search.upper() >= best.soft);
    }
    search.run(-1, 20, -1);
    CHECK(search.fault().empty());
    if (!small || search.status() == Status::open) return;
    CHECK((search.status() != Status::infeasible) == possible);
    if (search.status() == Status::optimal) {
        CHECK(search.incumbent().score == best && search.upper() == best.soft);
    }
}

void fix(const Problem& p, const Forest& forest, bool small) {
    const Fixing facts = Search(p, Mode::decide, 1, -1).fix(1'000'000, true);
    if (!small) return;
    std::vector<std::int64_t> slack(static_cast<std::size_t>(p.rows));
    sample::for_all(p, [&](const std::vector<Cell>& x) {
        if (!allowed(p, x)) return;
        evaluate(p, forest, p.bound, x.data(), slack.data());
        for (std::int32_t r = 0; r < p.constraints; ++r) {
            if (slack[r] < 0) return;
        }
        CHECK(!facts.infeasible);
        for (std::int32_t v = 0; v < p.variables(); ++v) CHECK(facts.cells[p.cell_offset[v] + x[v]]);
    });
}

// Rows of random cells: what a profile says is what the trees say of every cell.
void run_kernels(const Arrays& a, std::uint64_t seed) {
    const auto root = as<std::int32_t>(a, "tree_root"), feature = as<std::int32_t>(a, "tree_feature"),
               cut = as<std::int32_t>(a, "tree_cut"), left = as<std::int32_t>(a, "tree_left"),
               right = as<std::int32_t>(a, "tree_right"), leaf = as<std::int32_t>(a, "tree_leaf"),
               set = as<std::int32_t>(a, "tree_category_set"), missing = as<std::int32_t>(a, "tree_missing_cell"),
               count = as<std::int32_t>(a, "tree_cell_count");
    const auto default_left = as<std::uint8_t>(a, "tree_default_left"), member = as<std::uint8_t>(a, "tree_set_member");
    const auto& set_offset = a.at("tree_set_offset");
    const auto& value = a.at("tree_leaf_value");
    CellTrees trees;
    trees.trees = static_cast<std::int64_t>(root.size());
    trees.root = root.data(), trees.feature = feature.data(), trees.cut = cut.data(), trees.left = left.data();
    trees.right = right.data(), trees.leaf = leaf.data(), trees.default_left = default_left.data();
    trees.category_set = set.data(), trees.set_offset = set_offset.data(), trees.set_member = member.data();
    trees.missing_cell = missing.data();
    std::mt19937_64 random(seed);
    const std::size_t rows = 20, features = count.size();
    std::vector<std::int32_t> cells;
    for (std::size_t i = 0; i < rows * features; ++i) {
        cells.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(count[i % features])));
    }
    const auto score = [&](const std::vector<std::int32_t>& row) {
        std::vector<std::int32_t> reached(root.size());
        reach_leaves(trees, row.data(), 1, static_cast<std::int64_t>(features), reached.data());
        std::int64_t sum = 0;
        for (const std::int32_t l : reached) sum += value[static_cast<std::size_t>(l)];
        return sum;
    };
    for (std::size_t f = 0; f < features; ++f) {
        const std::vector<std::uint8_t> every(static_cast<std::size_t>(count[f]), 1);
        std::vector<std::int64_t> highest(rows), lowest(rows);
        std::vector<std::int32_t> high_cell(rows), low_cell(rows);
        flip_profiles(trees, value.data(), static_cast<std::int32_t>(f), count[f], every.data(), cells.data(),
                      static_cast<std::int64_t>(rows), static_cast<std::int64_t>(features),
                      {highest.data(), lowest.data(), high_cell.data(), low_cell.data()});
        for (std::size_t r = 0; r < rows; ++r) {
            const auto start = cells.begin() + static_cast<std::ptrdiff_t>(r * features);
            std::vector<std::int32_t> row(start, start + static_cast<std::ptrdiff_t>(features));
            std::int64_t high = INT64_MIN, low = INT64_MAX;
            for (row[f] = 0; row[f] < count[f]; ++row[f]) {
                high = std::max(high, score(row));
                low = std::min(low, score(row));
            }
            CHECK(high == highest[r] && low == lowest[r]);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    std::ifstream in(argv[1]);
    Arrays arrays;
    std::uint64_t number = 0, enumerated = 0, refused = 0;
    for (; read(in, arrays); ++number) {
        const int before = check::failures();
        Problem p;
        Forest forest;
        try {
            p = problem_of(arrays);
            forest = build_forest(p);
        } catch (const std::invalid_argument&) {
            // A pipeline for solvers may drop leaves; the engine says so, and treesens answers `unknown`.
            ++refused;
            continue;
        }
        double points = 1;
        for (const std::int32_t n : p.size) points *= n;
        const bool small = points <= kMostPoints;
        enumerated += small;
        for (const int threads : {1, 3}) {
            const Method method = threads == 1 ? Method::automatic : Method::both;
            for (const Method by : {method, Method::overlap}) {
                run_mode(p, forest, Mode::decide, by, threads, number, small);
                run_mode(p, forest, Mode::slack, by, threads, number, small);
                if (p.has_objective) run_mode(p, forest, Mode::objective, by, threads, number, small);
            }
            for (const std::int32_t depth : {1, 2}) {
                if (p.has_objective)
                    run_mode(p, forest, Mode::objective, Method::messages, threads, number, small, depth);
            }
        }
        const Schedule standard = schedule;
        std::vector<Problem> problems(1, p);
        if (small) {
            const Problem large = enlarged(p);
            const Forest large_forest = build_forest(large);
            problems.insert(problems.end(), {tightened(p, forest, 0), tightened(p, forest, 1), large,
                                             tightened(large, large_forest, 0), tightened(large, large_forest, 1)});
        }
        if (small && p.has_objective) problems.push_back(without_rows(p));
        for (const Forced& forced : kForced) {
            set_schedule(kWeak + forced.schedule);
            for (const Problem& q : problems) {
                const Forest of_q = build_forest(q);
                for (const Mode mode : {Mode::decide, Mode::slack, Mode::objective}) {
                    if (mode != Mode::objective || q.has_objective)
                        run_mode(q, of_q, mode, forced.method, forced.threads, number, small, 0, true);
                }
            }
            schedule = standard;
        }
        fix(p, forest, small);
        run_kernels(arrays, number);
        if (check::failures() != before)
            std::printf("problem %llu of the file\n", static_cast<unsigned long long>(number));
    }
    std::printf("%llu problems, %llu of them by brute force too, %llu refused\n",
                static_cast<unsigned long long>(number), static_cast<unsigned long long>(enumerated),
                static_cast<unsigned long long>(refused));
    return enumerated > 0 && check::failures() == 0 ? 0 : 1;
}
