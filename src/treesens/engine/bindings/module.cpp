// The Python module treesens._engine. All data from Python is checked here once; code behind it does not check again.
#include <cstdlib>
#include <nanobind/stl/string.h>
#include <stdexcept>
#include <string>

#include "bindings/arrays.hpp"
#include "problem/schedule.hpp"
#include "problem/score_range.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// By name: (value, default, least value, sentence).
nb::dict schedule_shown() {
    nb::dict out;
    for (const treesens::ScheduleEntry& e : treesens::schedule_entries()) {
        out[e.name] = nb::make_tuple(treesens::schedule.*(e.member), e.standard, e.least, e.sentence);
    }
    return out;
}

}  // namespace

NB_MODULE(_engine, m) {
    m.doc() =
        "Native kernels of treesens: exact evaluation of ensembles over cells, and the search for witnesses and "
        "proofs.";
    m.attr("SCORE_BITS") = treesens::kScoreBits;
    if (const char* changed = std::getenv("TREESENS_SCHEDULE")) {
        try {
            treesens::set_schedule(changed);
        } catch (const std::invalid_argument& error) {
            throw std::runtime_error(std::string("TREESENS_SCHEDULE: ") + error.what());
        }
    }
    m.def("schedule", &schedule_shown);
    m.def("set_schedule", &treesens::set_schedule, "text"_a);
    treesens::bind_trees(m);
    treesens::bind_search(m);
    treesens::bind_levels(m);
    treesens::bind_regions(m);
    treesens::bind_nearest(m);
    treesens::bind_measure(m);
    treesens::bind_clauses(m);
}
