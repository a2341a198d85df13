#include "bindings/proofs.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace treesens {

nanobind::dict proof_arrays(const Proof& proof) {
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
