// Unit propagation with two watched literals per clause (Moskewicz et al., Chaff, DAC 2001). A clause is implied if its
// negation propagates to a conflict (Goldberg and Novikov, Verification of proofs of unsatisfiability, DATE 2003).
#pragma once

#include <cstdint>
#include <vector>

namespace treesens {

// Literals as in the IR: 2 * variable, plus 1 for a negation.
class Propagation {
public:
    // Clauses in CSR form; no clause is empty.
    Propagation(std::int32_t variables, std::vector<std::int64_t> indptr, std::vector<std::int32_t> literals);
    // True if the negations of these literals propagate to a conflict.
    bool implies(const std::int32_t* first, const std::int32_t* last);

private:
    struct Watch {
        std::int64_t clause;
        std::int32_t other;  // a literal of the clause; if it is true, the clause needs no look
    };

    bool is_true(std::int32_t literal) const { return value_[literal] != 0; }
    void assign(std::int32_t literal);
    bool propagate(std::size_t next);
    bool visit(std::int32_t falsified);

    std::vector<std::int64_t> indptr_;
    std::vector<std::int32_t> literals_;  // the first two of a clause are watched
    std::vector<std::vector<Watch>> watches_;
    std::vector<std::uint8_t> value_;  // by literal
    std::vector<std::int32_t> trail_;
    bool contradictory_ = false;
};

}  // namespace treesens
