// The parts that the bindings of all searches share: problems from arrays, facts and proofs as dictionaries.
#pragma once

#include <nanobind/stl/string.h>
#include <string>

#include "bindings/arrays.hpp"
#include "search.hpp"

namespace treesens {

std::vector<Literal> literals_of(const Ints& variable, const Ints& low, const Ints& high);

// Variables, rows that all count in the slack, and clauses. Every cell is allowed.
Problem problem_of(const Ints& size, const Ints& feature, const Vector<std::int64_t>& bound, bool objective,
                   const Vector<std::int64_t>& clause_offset, std::vector<Literal> clause_literals);

// The bounds of all rows, for those of the constraints.
std::vector<std::int64_t> bounds_of(const Problem& problem, const Vector<std::int64_t>& bound);

const char* name(Status status);
const char* name(Reason reason);

// What every search says of itself.
template <typename S>
nanobind::dict facts(const S& search) {
    nanobind::dict out;
    out["status"] = name(search.status());
    out["reason"] = name(search.reason());
    out["fault"] = search.fault();
    return out;
}

// A proof that is made while other threads run, as arrays by name.
nanobind::dict arrays_of(const Proof& proof);
template <typename Prove>
nanobind::dict proved(const Prove& prove) {
    Proof proof;
    {
        nanobind::gil_scoped_release release;
        proof = prove();
    }
    return arrays_of(proof);
}

template <typename S>
void bind_stop(nanobind::class_<S>& bound) {
    bound.def("stop", &S::stop).def("clear_stop", &S::clear_stop);
}

template <typename S>
void bind_run(nanobind::class_<S>& bound) {
    using namespace nanobind::literals;
    bound.def(
        "run", [](S& s, double slice, double seconds) { s.run(slice, seconds); }, "slice"_a, "seconds"_a,
        nanobind::call_guard<nanobind::gil_scoped_release>());
    bind_stop(bound);
}

template <typename S>
void bind_gap(nanobind::class_<S>& bound) {
    using namespace nanobind::literals;
    bound.def(
        "set_gap",
        [](S& s, double relative, std::int64_t absolute, std::int64_t reference) {
            s.set_gap({relative, absolute, reference, INT64_MIN});
        },
        "relative"_a, "absolute"_a, "reference"_a);
}

}  // namespace treesens
