// Proofs of the engine as arrays by name.
#pragma once

#include <nanobind/nanobind.h>

#include "certify/proof.hpp"

namespace treesens {

nanobind::dict proof_arrays(const Proof& proof);

}  // namespace treesens
