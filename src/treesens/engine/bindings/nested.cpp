// treesens._engine.Boxes, BoxSearch, LevelSearch: one problem, asked in many boxes.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays.hpp"
#include "nested/level_search.hpp"
#include "problem/checked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace treesens {

namespace {

using search::BoxSearch;
using search::Cell;
using search::LevelSearch;
using search::Problem;
using search::Reason;
using search::Restrictor;
using search::Search;
using search::Status;
using search::Whole;

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
    search::validate_bounds(p, result);
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

void construct_box(BoxSearch* self, const Whole& whole, Vector<std::uint8_t> allowed, Vector<std::int64_t> bound,
                   Matrix<std::int32_t> hints, std::uint64_t seed, std::int64_t max_bytes) {
    const Problem& p = whole.problem();
    require(static_cast<std::int64_t>(allowed.size()) == p.cells(), "allowed must have one entry per cell");
    const std::vector<std::int64_t> asked = bounds(p, bound);
    const std::vector<std::vector<Cell>> starts = points(p, hints);
    nb::gil_scoped_release release;
    Restrictor restrictor(p, whole.forest());
    new (self) BoxSearch(restrictor.restrict(allowed.data(), nullptr, asked, starts), seed, max_bytes);
}

void construct_levels(LevelSearch* self, const Whole& whole, Vector<std::int32_t> level, Vector<std::int64_t> bound,
                      Matrix<std::int32_t> hints, std::uint64_t seed, std::int64_t max_bytes) {
    const Problem& p = whole.problem();
    require(static_cast<std::int64_t>(level.size()) == p.cells(), "level must have one entry per cell");
    new (self) LevelSearch(whole, copied(level), bounds(p, bound), points(p, hints), seed, max_bytes);
}

nb::dict box_result(const BoxSearch& s) {
    nb::dict out;
    out["status"] = name(s.status());
    out["reason"] = name(s.reason());
    out["fault"] = s.fault();
    out["point"] = s.point();
    out["nodes"] = s.nodes();
    return out;
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

}  // namespace

void bind_nested(nb::module_& m) {
    nb::class_<Whole>(m, "Boxes")
        .def(
            "__init__", [](Whole* self, const Search& search) { new (self) Whole(search.problem(), search.forest()); },
            nb::keep_alive<1, 2>(), "search"_a);
    nb::class_<BoxSearch>(m, "BoxSearch")
        .def("__init__", &construct_box, nb::keep_alive<1, 2>(), "boxes"_a, "allowed"_a, "bound"_a, "hints"_a, "seed"_a,
             "max_bytes"_a)
        .def(
            "run", [](BoxSearch& s, double slice, double seconds) { s.run(slice, seconds); }, "slice"_a, "seconds"_a,
            nb::call_guard<nb::gil_scoped_release>())
        .def("stop", &BoxSearch::stop)
        .def("clear_stop", &BoxSearch::clear_stop)
        .def("result", &box_result);
    nb::class_<LevelSearch>(m, "LevelSearch")
        .def("__init__", &construct_levels, nb::keep_alive<1, 2>(), "boxes"_a, "level"_a, "bound"_a, "hints"_a,
             "seed"_a, "max_bytes"_a)
        .def(
            "run", [](LevelSearch& s, double slice, double seconds) { s.run(slice, seconds); }, "slice"_a, "seconds"_a,
            nb::call_guard<nb::gil_scoped_release>())
        .def("stop", &LevelSearch::stop)
        .def("clear_stop", &LevelSearch::clear_stop)
        .def("result", &level_result);
}

}  // namespace treesens
