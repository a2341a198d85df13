#include "bindings/searches.hpp"

#include <nanobind/stl/vector.h>
#include <utility>

#include "problem/checked.hpp"

namespace treesens {

std::vector<Literal> literals_of(const Ints& variable, const Ints& low, const Ints& high) {
    require(variable.size() == low.size() && low.size() == high.size(), "literal arrays differ in length");
    std::vector<Literal> result(variable.size());
    for (std::size_t i = 0; i < variable.size(); ++i) result[i] = {variable(i), low(i), high(i)};
    return result;
}

Problem problem_of(const Ints& size, const Ints& feature, const Vector<std::int64_t>& bound, bool objective,
                   const Vector<std::int64_t>& clause_offset, std::vector<Literal> clause_literals) {
    Problem p;
    p.size = copied(size);
    p.feature = copied(feature);
    p.cell_offset.assign(1, 0);
    for (const std::int32_t n : p.size) {
        require(n > 0 && n < (1 << 24) && p.cell_offset.back() < (1 << 28),
                "a variable must have between 1 and 2^24 cells");
        p.cell_offset.push_back(p.cell_offset.back() + n);
    }
    p.allowed.assign(p.cells(), 1);
    p.bound = copied(bound);
    p.constraints = narrow<std::int32_t>(p.bound.size());
    p.slack_weight.assign(p.bound.size(), 1);
    p.has_objective = objective;
    p.rows = p.constraints + (objective ? 1 : 0);
    p.bound.resize(p.rows, 0);
    p.slack_weight.resize(p.rows, 0);
    p.clause_offset = copied(clause_offset);
    p.clause_literals = std::move(clause_literals);
    return p;
}

std::vector<std::int64_t> bounds_of(const Problem& problem, const Vector<std::int64_t>& bound) {
    require(static_cast<std::int64_t>(bound.size()) == problem.constraints, "one bound per constraint is needed");
    std::vector<std::int64_t> result = copied(bound);
    result.resize(problem.rows, 0);
    validate_bounds(problem, result);
    return result;
}

const char* name(Status status) {
    constexpr const char* kNames[] = {"open", "witness", "infeasible", "optimal"};
    return kNames[static_cast<int>(status)];
}

const char* name(Reason reason) {
    constexpr const char* kNames[] = {"", "time", "nodes", "memory", "stopped", "internal"};
    return kNames[static_cast<int>(reason)];
}

nanobind::dict arrays_of(const Proof& proof) {
    nanobind::dict out;
    out["complete"] = proof.complete;
    out["reason"] = proof.reason;
    out["variable"] = proof.variable;
    out["cut"] = proof.cut;
    out["multiplier"] = proof.multiplier;
    out["exponent"] = proof.exponent;
    out["message_offset"] = proof.message_offset;
    out["message_factor"] = proof.message_factor;
    out["message_variable"] = proof.message_variable;
    out["run_offset"] = proof.run_offset;
    out["run_start"] = proof.run_start;
    out["run_value"] = proof.run_value;
    out["factor_offset"] = proof.factor_offset;
    out["factor_group"] = proof.factor_group;
    out["row_shift"] = proof.row_shift;
    out["sweeps"] = proof.sweeps;
    return out;
}

}  // namespace treesens
