// treesens._engine.SharedProblem, RestrictedSearch, LevelSearch, CostSearch: one problem, asked many times.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bindings/searches.hpp"
#include "bindings/trees.hpp"
#include "levels/cell_problem.hpp"
#include "levels/cost_search.hpp"
#include "levels/level_search.hpp"
#include "levels/restricted_search.hpp"
#include "problem/checked.hpp"
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace nb = nanobind;
using namespace nb::literals;

namespace treesens {

namespace {

// Nodes of trees from which on it is worthwhile to look for memory that is not used.
[[maybe_unused]] constexpr std::size_t kLarge = 200'000;

std::vector<std::vector<Cell>> points(const Problem& p, const Matrix<std::int32_t>& hints) {
    std::vector<std::vector<Cell>> result;
    require(hints.shape(0) == 0 || static_cast<std::int64_t>(hints.shape(1)) == p.variables(),
            "hints must have one column per variable");
    for (std::size_t h = 0; h < hints.shape(0); ++h) {
        const std::int32_t* row = hints.data() + h * hints.shape(1);
        result.emplace_back(row, row + hints.shape(1));
        for (std::int32_t v = 0; v < p.variables(); ++v) {
            require(row[v] >= 0 && row[v] < p.size[v], "a cell of a hint is out of range");
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
    const std::vector<std::int64_t> asked = bounds_of(p, bound);
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
    // The array itself, which the dictionary keeps alive, and no copy in another type.
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
    CellProblem made{problem_of(size, feature, bound, objective, clause_offset,
                                literals_of(clause_variable, clause_low, clause_high)),
                     {},
                     {}};
    Problem& p = made.problem;
    require(p.constraints > 0, "there are no constraints");
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
#ifdef __GLIBC__
    // Memory that was freed stays with the process, in pieces that large tables do not fit into. It takes milliseconds.
    if (made.forest.nodes.size() > kLarge) malloc_trim(0);
#endif
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
    new (self) LevelSearch(whole, copied(level), bounds_of(p, bound), points(p, hints), seed, max_bytes);
}

void construct_costs(CostSearch* self, const SharedProblem& whole, Vector<std::int64_t> cost,
                     Vector<std::int64_t> bound, Matrix<std::int32_t> hints, std::int64_t most, std::uint64_t seed,
                     std::int64_t max_bytes) {
    const Problem& p = whole.problem();
    require(static_cast<std::int64_t>(cost.size()) == p.cells(), "cost must have one entry per cell");
    require(!p.has_objective, "a problem with costs has no other objective");
    new (self) CostSearch(whole, copied(cost), bounds_of(p, bound), points(p, hints), most, seed, max_bytes);
}

nb::dict restricted_result(const RestrictedSearch& s) {
    nb::dict out = facts(s);
    out["point"] = s.point();
    out["nodes"] = s.nodes();
    out["seconds_local"] = s.seconds().local;
    out["seconds_prove"] = s.seconds().prove;
    out["level"] = s.level();
    out["upper"] = s.upper();
    return out;
}

// What the numbers of a proof about a box stand for, in those of the whole; `failing_row` where nothing is left of it.
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
    return proved([&] { return s.certify(seconds, node_limit); });
}

template <typename S>
nb::dict least_result(const S& s) {
    nb::dict out = facts(s);
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
    nb::class_<RestrictedSearch> restricted(m, "RestrictedSearch");
    restricted
        .def("__init__", &construct_restricted, nb::keep_alive<1, 2>(), "problem"_a, "allowed"_a, "bound"_a, "hints"_a,
             "seed"_a, "max_bytes"_a, "first_look"_a, "threads"_a = 1, "objective"_a = false)
        .def("left", &restricted_left)
        .def("certify", &certify_restricted, "seconds"_a, "node_limit"_a)
        .def("result", &restricted_result);
    bind_gap(restricted);
    bind_run(restricted);
    nb::class_<LevelSearch> levels(m, "LevelSearch");
    levels
        .def("__init__", &construct_levels, nb::keep_alive<1, 2>(), "problem"_a, "level"_a, "bound"_a, "hints"_a,
             "seed"_a, "max_bytes"_a)
        .def("result", [](const LevelSearch& s) {
            nb::dict out = least_result(s);
            out["decisions"] = s.decisions();
            return out;
        });
    bind_run(levels);
    nb::class_<CostSearch> costs(m, "CostSearch");
    costs
        .def("__init__", &construct_costs, nb::keep_alive<1, 2>(), "problem"_a, "cost"_a, "bound"_a, "hints"_a,
             "most"_a, "seed"_a, "max_bytes"_a)
        .def("result", &least_result<CostSearch>);
    bind_run(costs);
}

}  // namespace treesens
