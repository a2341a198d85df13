// treesens._engine.SharedProblem, RestrictedSearch, LevelSearch, CostSearch: one problem for many searches.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/proofs.hpp"
#include "bindings/trees.hpp"
#include "levels/cell_problem.hpp"
#include "levels/cost_search.hpp"
#include "levels/level_search.hpp"
#include "levels/restricted_search.hpp"
#include "problem/checked.hpp"
#include "problem/unused_memory.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace treesens {

namespace {

// Number of tree nodes above which unused memory is returned to the system.
constexpr std::size_t kLarge = 200'000;

const char* name(Status status) {
    constexpr const char* kNames[] = {"open", "witness", "infeasible", "optimal"};
    return kNames[static_cast<int>(status)];
}

const char* name(Reason reason) {
    constexpr const char* kNames[] = {"", "time", "nodes", "memory", "stopped", "internal"};
    return kNames[static_cast<int>(reason)];
}

std::vector<std::int64_t> bounds(const Problem& p, const Vector<std::int64_t>& bound) {
    require(static_cast<std::int64_t>(bound.size()) == p.constraints, "one bound per constraint is needed");
    std::vector<std::int64_t> result = copied(bound);
    if (p.has_objective) result.push_back(0);
    validate_bounds(p, result);
    return result;
}

std::vector<std::vector<Cell>> points(const Problem& p, const Matrix<std::int32_t>& hints) {
    std::vector<std::vector<Cell>> result;
    require(hints.shape(0) == 0 || static_cast<std::int64_t>(hints.shape(1)) == p.variables(),
            "hints must have one column per variable");
    for (std::size_t h = 0; h < hints.shape(0); ++h) {
        result.emplace_back();
        for (std::int32_t v = 0; v < p.variables(); ++v) {
            require(hints(h, v) >= 0 && hints(h, v) < p.size[v], "a cell of a hint is out of range");
            result.back().push_back(hints(h, v));
        }
    }
    return result;
}

void construct_restricted(RestrictedSearch* self, const SharedProblem& whole, Vector<std::uint8_t> allowed,
                          Vector<std::int64_t> bound, Matrix<std::int32_t> hints, std::uint64_t seed,
                          std::int64_t max_bytes, std::int64_t first_look, int threads, bool objective) {
    const Problem& p = whole.problem();
    require(threads > 0, "there must be a thread");
    require(!objective || p.has_objective, "the problem has no objective");
    require(static_cast<std::int64_t>(allowed.size()) == p.cells(), "allowed must have one entry per cell");
    const std::vector<std::int64_t> asked = bounds(p, bound);
    const std::vector<std::vector<Cell>> starts = points(p, hints);
    nb::gil_scoped_release release;
    Restrictor restrictor(p, whole.forest());
    new (self) RestrictedSearch(restrictor.restrict(allowed.data(), nullptr, asked, starts),
                                objective ? Mode::objective : Mode::decide, seed, max_bytes, first_look);
    self->set_threads(threads);
}

// The problem and the trees of `CellProblem`.
struct CellProblem {
    Problem problem;
    Forest forest;
    std::vector<TreeCopies> copies;
};

struct PointArrays {
    nb::dict given;
    // Takes the array itself, which the dictionary keeps alive, without a conversion.
    template <typename T>
    T get(const char* name) const {
        return nb::cast<T>(given[name], false);
    }
};

PointTrees point_of(const PointArrays& a, std::int32_t variables, std::int32_t rows) {
    PointTrees point;
    const auto& trees = nb::cast<const CheckedTrees&>(a.given["trees"]);
    point.trees = trees.view();
    point.cells = copied(trees.cell_count());
    point.variable = copied(a.get<Ints>("variable"));
    require(point.variable.size() == point.cells.size(), "every feature needs a variable");
    for (const std::int32_t v : point.variable) require(v >= 0 && v < variables, "a variable is out of range");
    point.first_leaf = copied(a.get<Vector<std::int64_t>>("first_leaf"));
    require(static_cast<std::int64_t>(point.first_leaf.size()) == point.trees.trees + 1 && point.first_leaf[0] == 0,
            "every tree needs its leaves");
    point.first_tree = nb::cast<std::int32_t>(a.given["first_tree"]);
    for (std::size_t t = 0; t + 1 < point.first_leaf.size(); ++t) {
        require(point.first_leaf[t] < point.first_leaf[t + 1], "a tree has no leaf");
    }
    require(point.first_leaf.back() < (std::int64_t{1} << 30), "there are too many leaves");
    require(trees.leaves() <= point.first_leaf.back(), "a leaf is out of range");
    for (nb::handle item : nb::cast<nb::list>(a.given["rows"])) {
        const nb::tuple row = nb::cast<nb::tuple>(item);
        const std::int32_t number = nb::cast<std::int32_t>(row[0]);
        const Vector<std::int64_t> value = nb::cast<Vector<std::int64_t>>(row[1], false);
        require(number >= 0 && number < rows, "a row is out of range");
        require(static_cast<std::int64_t>(value.size()) == point.first_leaf.back(), "every leaf needs a value");
        point.rows.push_back({number, value.data()});
    }
    return point;
}

void construct_problem(CellProblem* self, nb::list points, Ints size, Ints feature, Vector<std::int64_t> bound,
                       Vector<std::int64_t> clause_offset, Ints clause_variable, Ints clause_low, Ints clause_high,
                       bool objective) {
    CellProblem made;
    Problem& p = made.problem;
    p.size = copied(size);
    p.feature = copied(feature);
    p.cell_offset.assign(1, 0);
    for (const std::int32_t n : p.size) {
        require(n > 0 && n < (1 << 24) && p.cell_offset.back() < (1 << 28), "a variable has no cells, or too many");
        p.cell_offset.push_back(p.cell_offset.back() + n);
    }
    p.allowed.assign(p.cells(), 1);
    p.bound = copied(bound);
    p.constraints = narrow<std::int32_t>(p.bound.size());
    require(p.constraints > 0, "there are no constraints");
    p.has_objective = objective;
    p.slack_weight.assign(p.bound.size(), 1);
    if (objective) {
        p.bound.push_back(0);
        p.slack_weight.push_back(0);
    }
    p.rows = narrow<std::int32_t>(p.bound.size());
    p.clause_offset = copied(clause_offset);
    require(clause_variable.size() == clause_low.size() && clause_low.size() == clause_high.size(),
            "clause arrays differ in length");
    for (std::size_t i = 0; i < clause_variable.size(); ++i) {
        p.clause_literals.push_back({clause_variable(i), clause_low(i), clause_high(i)});
    }
    std::vector<PointTrees> seen;
    for (nb::handle item : points) {
        seen.push_back(point_of({nb::cast<nb::dict>(item)}, p.variables(), p.rows));
        const PointTrees& last = seen.back();
        for (std::size_t f = 0; f < last.cells.size(); ++f) {
            require(p.size[last.variable[f]] == last.cells[f], "a variable has other cells than its feature");
        }
    }
    made.forest = add_points(p, seen, made.copies);
    seen.clear();
    if (made.forest.nodes.size() > kLarge) release_unused_memory();
    new (self) CellProblem(std::move(made));
}

// The points and the tree of every group.
std::vector<std::pair<std::vector<std::int32_t>, std::int32_t>> groups_of(const CellProblem& p) {
    std::vector<std::pair<std::vector<std::int32_t>, std::int32_t>> out;
    for (const TreeCopies& group : p.copies) out.emplace_back(group.points, group.tree);
    return out;
}

void construct_levels(LevelSearch* self, const SharedProblem& whole, Vector<std::int32_t> level,
                      Vector<std::int64_t> bound, Matrix<std::int32_t> hints, std::uint64_t seed,
                      std::int64_t max_bytes) {
    const Problem& p = whole.problem();
    require(static_cast<std::int64_t>(level.size()) == p.cells(), "level must have one entry per cell");
    new (self) LevelSearch(whole, copied(level), bounds(p, bound), points(p, hints), seed, max_bytes);
}

void construct_costs(CostSearch* self, const SharedProblem& whole, Vector<std::int64_t> cost,
                     Vector<std::int64_t> bound, Matrix<std::int32_t> hints, std::int64_t most, std::uint64_t seed,
                     std::int64_t max_bytes) {
    const Problem& p = whole.problem();
    require(static_cast<std::int64_t>(cost.size()) == p.cells(), "cost must have one entry per cell");
    require(!p.has_objective, "a problem with costs has no other objective");
    new (self) CostSearch(whole, copied(cost), bounds(p, bound), points(p, hints), most, seed, max_bytes);
}

nb::dict restricted_result(const RestrictedSearch& s) {
    nb::dict out;
    out["status"] = name(s.status());
    out["reason"] = name(s.reason());
    out["fault"] = s.fault();
    out["point"] = s.point();
    out["nodes"] = s.nodes();
    out["seconds_local"] = s.seconds().local;
    out["seconds_prove"] = s.seconds().prove;
    out["level"] = s.level();
    out["upper"] = s.upper();
    return out;
}

// Maps the indices of a proof about a box to those of the whole problem; `failing_row` if nothing of it is left.
nb::dict restricted_left(const RestrictedSearch& s) {
    nb::dict out;
    const Restricted& part = s.part();
    out["problem"] = part.left == Left::problem;
    out["failing_row"] = part.failing_row;
    out["variable"] = part.variable;
    out["cell_offset"] = part.cell_offset;
    out["cell"] = part.cell;
    out["group"] = part.group;
    return out;
}

nb::dict certify_restricted(RestrictedSearch& s, double seconds, std::int64_t node_limit) {
    require(s.part().left == Left::problem, "nothing is left of the box that a proof could be about");
    Proof proof;
    {
        nb::gil_scoped_release release;
        proof = s.certify(seconds, node_limit);
    }
    return proof_arrays(proof);
}

nb::dict level_result(const LevelSearch& s) {
    nb::dict out;
    out["status"] = name(s.status());
    out["reason"] = name(s.reason());
    out["fault"] = s.fault();
    out["point"] = s.best();
    out["low"] = s.low();
    out["high"] = s.high();
    out["nodes"] = s.nodes();
    out["decisions"] = s.decisions();
    return out;
}

nb::dict cost_result(const CostSearch& s) {
    nb::dict out;
    out["status"] = name(s.status());
    out["reason"] = name(s.reason());
    out["fault"] = s.fault();
    out["point"] = s.best();
    out["low"] = s.low();
    out["high"] = s.high();
    out["nodes"] = s.nodes();
    return out;
}

}  // namespace

void bind_levels(nb::module_& m) {
    nb::class_<CellProblem>(m, "CellProblem")
        .def("__init__", &construct_problem, "points"_a, "size"_a, "feature"_a, "bound"_a, "clause_offset"_a,
             "clause_variable"_a, "clause_low"_a, "clause_high"_a, "objective"_a = false)
        .def("groups", &groups_of)
        .def("nodes", [](const CellProblem& p) { return 2 * p.problem.leaves() - p.problem.groups(); });
    nb::class_<SharedProblem>(m, "SharedProblem")
        .def(
            "__init__", [](SharedProblem* self, const Search& s) { new (self) SharedProblem(s.problem(), s.forest()); },
            nb::keep_alive<1, 2>(), "problem"_a)
        .def(
            "__init__",
            [](SharedProblem* self, const CellProblem& p) { new (self) SharedProblem(p.problem, p.forest); },
            nb::keep_alive<1, 2>(), "problem"_a);
    nb::class_<RestrictedSearch>(m, "RestrictedSearch")
        .def("__init__", &construct_restricted, nb::keep_alive<1, 2>(), "problem"_a, "allowed"_a, "bound"_a, "hints"_a,
             "seed"_a, "max_bytes"_a, "first_look"_a, "threads"_a = 1, "objective"_a = false)
        .def(
            "set_gap",
            [](RestrictedSearch& s, double relative, std::int64_t absolute, std::int64_t reference) {
                s.set_gap({relative, absolute, reference, INT64_MIN});
            },
            "relative"_a, "absolute"_a, "reference"_a)
        .def(
            "run", [](RestrictedSearch& s, double slice, double seconds) { s.run(slice, seconds); }, "slice"_a,
            "seconds"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("stop", &RestrictedSearch::stop)
        .def("clear_stop", &RestrictedSearch::clear_stop)
        .def("left", &restricted_left)
        .def("certify", &certify_restricted, "seconds"_a, "node_limit"_a)
        .def("result", &restricted_result);
    nb::class_<LevelSearch>(m, "LevelSearch")
        .def("__init__", &construct_levels, nb::keep_alive<1, 2>(), "problem"_a, "level"_a, "bound"_a, "hints"_a,
             "seed"_a, "max_bytes"_a)
        .def(
            "run", [](LevelSearch& s, double slice, double seconds) { s.run(slice, seconds); }, "slice"_a, "seconds"_a,
            nb::call_guard<nb::gil_scoped_release>())
        .def("stop", &LevelSearch::stop)
        .def("clear_stop", &LevelSearch::clear_stop)
        .def("result", &level_result);
    nb::class_<CostSearch>(m, "CostSearch")
        .def("__init__", &construct_costs, nb::keep_alive<1, 2>(), "problem"_a, "cost"_a, "bound"_a, "hints"_a,
             "most"_a, "seed"_a, "max_bytes"_a)
        .def(
            "run", [](CostSearch& s, double slice, double seconds) { s.run(slice, seconds); }, "slice"_a, "seconds"_a,
            nb::call_guard<nb::gil_scoped_release>())
        .def("stop", &CostSearch::stop)
        .def("clear_stop", &CostSearch::clear_stop)
        .def("result", &cost_result);
}

}  // namespace treesens
