// treesens._engine.implied_clauses: which clauses follow from others by unit propagation.
#include "bindings/arrays.hpp"
#include "clauses/propagation.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace treesens {

namespace {

void check_clauses(std::int32_t variables, const Vector<std::int64_t>& indptr, const Ints& literals,
                   std::int64_t least) {
    require(indptr.size() >= 1 && indptr(0) == 0, "the offsets of clauses must start with 0");
    for (std::size_t i = 0; i + 1 < indptr.size(); ++i) {
        require(indptr(i + 1) - indptr(i) >= least && indptr(i + 1) >= indptr(i), "a clause is too short");
    }
    require(indptr(indptr.size() - 1) == static_cast<std::int64_t>(literals.size()), "clauses must hold every literal");
    for (std::size_t i = 0; i < literals.size(); ++i) {
        require(literals(i) >= 0 && literals(i) / 2 < variables, "a literal is out of range");
    }
}

void implied_clauses(std::int32_t variables, Vector<std::int64_t> indptr, Ints literals, Vector<std::int64_t> asked,
                     Ints members, MutableVector<std::uint8_t> out) {
    check_clauses(variables, indptr, literals, 1);
    check_clauses(variables, asked, members, 0);
    require(out.size() + 1 == asked.size(), "every clause needs a place for its answer");
    nb::gil_scoped_release release;
    Propagation known(variables, copied(indptr), copied(literals));
    for (std::size_t i = 0; i < out.size(); ++i) {
        out(i) = known.implies(members.data() + asked(i), members.data() + asked(i + 1)) ? 1 : 0;
    }
}

}  // namespace

void bind_clauses(nb::module_& m) {
    m.def("implied_clauses", &implied_clauses, nb::kw_only(), "variables"_a, "indptr"_a, "literals"_a, "asked"_a,
          "members"_a, "out"_a);
}

}  // namespace treesens
