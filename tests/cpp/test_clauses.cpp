// Unit propagation against the truth tables of random clauses.
#include <random>

#include "clauses/propagation.hpp"
#include "third_party/doctest.h"

using namespace treesens;

namespace clauses_tests {

namespace {

constexpr std::int32_t kVariables = 8;
using Clause = std::vector<std::int32_t>;

Propagation of(const std::vector<Clause>& clauses) {
    std::vector<std::int64_t> indptr{0};
    Clause literals;
    for (const Clause& clause : clauses) {
        literals.insert(literals.end(), clause.begin(), clause.end());
        indptr.push_back(static_cast<std::int64_t>(literals.size()));
    }
    return {kVariables, indptr, literals};
}

bool holds(const Clause& clause, unsigned point) {
    for (const std::int32_t x : clause) {
        if (((point >> (x >> 1)) & 1U) != static_cast<unsigned>(x & 1)) return true;
    }
    return false;
}

bool follows(const std::vector<Clause>& clauses, const Clause& asked) {
    for (unsigned point = 0; point < 1U << kVariables; ++point) {
        bool all = !holds(asked, point);
        for (const Clause& clause : clauses) all = all && holds(clause, point);
        if (all) return false;
    }
    return true;
}

Clause drawn(std::mt19937_64& random, std::size_t least) {
    Clause clause(least + random() % 3);
    for (std::int32_t& x : clause) x = static_cast<std::int32_t>(random() % (2 * kVariables));
    return clause;
}

}  // namespace

TEST_CASE("a clause that propagation derives follows from the clauses") {
    std::mt19937_64 random(7);
    int derived = 0;
    for (int trial = 0; trial < 300; ++trial) {
        std::vector<Clause> clauses(random() % 14);
        for (Clause& clause : clauses) clause = drawn(random, 1);
        Propagation known = of(clauses);
        for (int i = 0; i < 12; ++i) {
            const Clause asked = drawn(random, 0);
            const bool implied = known.implies(asked.data(), asked.data() + asked.size());
            derived += implied ? 1 : 0;
            CHECK((!implied || follows(clauses, asked)));
            // Earlier questions leave no trace.
            Propagation fresh = of(clauses);
            CHECK(implied == fresh.implies(asked.data(), asked.data() + asked.size()));
        }
    }
    CHECK(derived > 300);
}

TEST_CASE("chains are followed in both directions, and known clauses are found") {
    // 0 -> 1 -> 2 -> 3, and not 3
    Propagation known = of({{1, 2}, {3, 4}, {5, 6}, {4, 10, 12}});
    const Clause forwards{1, 6}, backwards{6, 1}, contained{12, 4, 10}, part{4, 10};
    CHECK(known.implies(forwards.data(), forwards.data() + 2));
    CHECK(known.implies(backwards.data(), backwards.data() + 2));
    CHECK(known.implies(contained.data(), contained.data() + 3));
    CHECK_FALSE(known.implies(part.data(), part.data() + 2));
}

}  // namespace clauses_tests
