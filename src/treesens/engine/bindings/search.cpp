// treesens._engine.Search: the arrays of SearchProblem in, three separate facts out.
#include "search.hpp"

#include <nanobind/stl/vector.h>
#include <string>

#include "bindings/searches.hpp"
#include "problem/checked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace treesens {

namespace {

Mode mode_named(const std::string& name) {
    if (name == "decide") return Mode::decide;
    if (name == "objective") return Mode::objective;
    if (name == "slack") return Mode::slack;
    throw nb::value_error("mode must be decide, objective or slack");
}

void construct(Search* self, Vector<std::int32_t> size, Vector<std::int32_t> feature, Vector<std::uint8_t> allowed,
               Vector<std::int32_t> group_tree, Vector<std::int64_t> group_offset, Vector<std::int64_t> leaf_offset,
               Vector<std::int64_t> box_offset, Vector<std::int32_t> literal_variable, Vector<std::int32_t> literal_low,
               Vector<std::int32_t> literal_high, Vector<std::int64_t> coefficient_offset,
               Vector<std::int32_t> coefficient_row, Vector<std::int64_t> coefficient_value, Vector<std::int64_t> bound,
               Vector<std::uint8_t> slack_weight, bool objective, Vector<std::int32_t> unary_row,
               Vector<std::int32_t> unary_variable, Vector<std::int32_t> unary_cell, Vector<std::int64_t> unary_value,
               Vector<std::int64_t> clause_offset, Vector<std::int32_t> clause_variable,
               Vector<std::int32_t> clause_low, Vector<std::int32_t> clause_high, Matrix<std::int32_t> hints,
               const std::string& mode, std::uint64_t seed, std::int64_t max_bytes) {
    Problem p = problem_of(size, feature, bound, objective, clause_offset,
                           literals_of(clause_variable, clause_low, clause_high));
    for (std::int32_t f : p.feature) require(f >= 0 && f < (1 << 24), "a feature number is out of range");
    p.allowed = copied(allowed);
    p.group_tree = copied(group_tree);
    p.group_offset = copied(group_offset);
    p.leaf_offset = copied(leaf_offset);
    p.box_offset = copied(box_offset);
    p.literals = literals_of(literal_variable, literal_low, literal_high);
    p.coefficient_offset = copied(coefficient_offset);
    require(coefficient_row.size() == coefficient_value.size(), "coefficient arrays differ in length");
    p.coefficient_row = copied(coefficient_row);
    p.coefficient_value = copied(coefficient_value);
    require(slack_weight.size() == bound.size(), "slack_weight must have one entry per constraint");
    std::copy_n(slack_weight.data(), slack_weight.size(), p.slack_weight.begin());
    require(p.rows > 0, "there are neither constraints nor an objective");
    require(unary_row.size() == unary_variable.size() && unary_row.size() == unary_cell.size() &&
                unary_row.size() == unary_value.size(),
            "unary arrays differ in length");
    p.has_unary = unary_row.size() > 0;
    if (p.has_unary) p.unary.assign(static_cast<std::size_t>(p.rows) * p.cells(), 0);
    for (std::size_t i = 0; i < unary_row.size(); ++i) {
        require(unary_row(i) >= 0 && unary_row(i) < p.rows, "the row of a unary term is out of range");
        require(unary_variable(i) >= 0 && unary_variable(i) < p.variables(),
                "the variable of a unary term is out of range");
        require(unary_cell(i) >= 0 && unary_cell(i) < p.size[unary_variable(i)],
                "the cell of a unary term is out of range");
        p.unary[static_cast<std::size_t>(unary_row(i)) * p.cells() + p.cell_offset[unary_variable(i)] + unary_cell(i)] =
            unary_value(i);
    }
    require(hints.shape(0) == 0 || hints.shape(1) == p.size.size(), "hints must have one column per variable");
    p.hint_count = static_cast<std::int64_t>(hints.shape(0));
    p.hints.assign(hints.data(), hints.data() + hints.size());
    const Mode chosen = mode_named(mode);
    require(chosen != Mode::objective || objective, "the problem has no objective");
    nb::gil_scoped_release release;
    new (self) Search(std::move(p), chosen, seed, max_bytes);
}

Method method_named(const std::string& name) {
    if (name == "auto") return Method::automatic;
    if (name == "messages") return Method::messages;
    if (name == "overlap") return Method::overlap;
    if (name == "both") return Method::both;
    throw nb::value_error("method must be auto, messages, overlap or both");
}

nb::dict result(const Search& s) {
    nb::dict out = facts(s);
    out["audited"] = s.provers().audited();
    out["assignment"] = s.incumbent().x;
    out["slack"] = s.incumbent().present() ? s.slacks() : std::vector<std::int64_t>();
    out["is_witness"] = s.is_witness();
    out["hard"] = s.incumbent().score.hard;
    out["level"] = s.incumbent().score.soft;
    out["upper"] = s.upper();
    out["restarts"] = s.local_search().restarts();
    out["seconds_factors"] = s.seconds().factors;
    out["seconds_local"] = s.seconds().local;
    out["seconds_prove"] = s.seconds().prove;
    out["peak_bytes"] = s.memory().peak();
    out["entries"] = s.provers().factor_entries();
    nb::dict bound_levels;
    const Prover* prover = s.provers().messages();
    if (prover != nullptr || s.provers().overlap() != nullptr) {
        const ProverStatistics n = s.provers().statistics();
        out["nodes"] = n.nodes;
        out["closed"] = n.closed;
        out["pruned_by_clauses"] = n.pruned_by_clauses;
        out["multiplier_steps"] = n.multiplier_steps;
        out["deepest"] = n.deepest;
        out["parts"] = n.parts;
        out["bound_level"] = prover != nullptr ? prover->phase_name() : "overlap";
    }
    if (prover != nullptr) {
        for (std::size_t i = 0; i < prover->bounds().levels().size(); ++i) {
            const std::string label =
                i == 0 && prover->bounds().collapsed() != nullptr ? "collapsed" : "full" + std::to_string(i);
            BoundLevelStatistics sum;
            for (const Prover* p : s.provers().all_messages()) {
                const BoundLevelStatistics& one = p->bounds().levels()[i]->statistics;
                sum.tried += one.tried;
                sum.pruned += one.pruned;
                sum.sweeps += one.sweeps;
            }
            bound_levels[label.c_str()] = nb::make_tuple(sum.tried, sum.pruned, sum.sweeps);
        }
    }
    out["bound_levels"] = bound_levels;
    return out;
}

// Sets a number that has to be in a range.
template <typename T>
auto setter(void (Search::*set)(T), T least, T most, const char* otherwise) {
    return [=](Search& s, T value) {
        require(least <= value && value <= most, otherwise);
        (s.*set)(value);
    };
}

}  // namespace

void bind_search(nb::module_& m) {
    nb::register_exception_translator(
        [](const std::exception_ptr& error, void*) {
            try {
                std::rethrow_exception(error);
            } catch (const MemoryLimit& limit) {
                PyErr_SetString(PyExc_MemoryError, limit.what());
            }
        },
        nullptr);
    nb::class_<Search> search(m, "Search");
    bind_stop(search);
    bind_gap(search);
    search
        .def("__init__", &construct, "size"_a, "feature"_a, "allowed"_a, "group_tree"_a, "group_offset"_a,
             "leaf_offset"_a, "box_offset"_a, "literal_variable"_a, "literal_low"_a, "literal_high"_a,
             "coefficient_offset"_a, "coefficient_row"_a, "coefficient_value"_a, "bound"_a, "slack_weight"_a,
             "objective"_a, "unary_row"_a, "unary_variable"_a, "unary_cell"_a, "unary_value"_a, "clause_offset"_a,
             "clause_variable"_a, "clause_low"_a, "clause_high"_a, "hints"_a, "mode"_a, "seed"_a, "max_bytes"_a)
        .def("run", &Search::run, "slice"_a, "seconds"_a, "node_limit"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("set_threads", setter(&Search::set_threads, 1, 1024, "threads must be between 1 and 1024"), "threads"_a)
        .def("set_audit",
             setter<std::int64_t>(&Search::set_audit, 0, INT64_MAX,
                                  "the share of nodes that are looked at again is one in `every`, 0 for none"),
             "every"_a)
        .def(
            "set_method", [](Search& s, const std::string& name) { s.set_method(method_named(name)); }, "name"_a)
        .def("set_together",
             setter<std::int64_t>(&Search::set_together, 0, kLargestFactor, "too many entries for a factor"),
             "entries"_a)
        .def("set_parts",
             setter(&Search::set_parts, 0, INT32_MAX,
                    "the depth of nodes that become problems of their own is negative"),
             "depth"_a)
        .def(
            "reset",
            [](Search& s, Vector<std::int64_t> bound, const std::string& mode) {
                s.reset(bounds_of(s.problem(), bound), mode_named(mode));
            },
            "bound"_a, "mode"_a)
        .def(
            "fix",
            [](Search& s, std::int64_t work, bool probe) {
                Fixing f;
                {
                    nb::gil_scoped_release release;
                    f = s.fix(work, probe);
                }
                nb::dict out;
                out["infeasible"] = f.infeasible;
                out["cells"] = f.cells;
                out["leaves"] = f.leaves;
                out["sweeps"] = f.sweeps;
                out["probes"] = f.probes;
                return out;
            },
            "work"_a, "probe"_a)
        .def(
            "certify",
            [](Search& s, std::int64_t level, double seconds, std::int64_t node_limit) {
                return proved([&] { return s.certify(level, seconds, node_limit); });
            },
            "level"_a, "seconds"_a, "node_limit"_a)
        .def("result", &result);
}

}  // namespace treesens
