#include "clauses/propagation.hpp"

#include <algorithm>
#include <utility>

namespace treesens {

Propagation::Propagation(std::int32_t variables, std::vector<std::int64_t> indptr, std::vector<std::int32_t> literals)
    : indptr_(std::move(indptr)),
      literals_(std::move(literals)),
      watches_(2 * static_cast<std::size_t>(variables)),
      value_(2 * static_cast<std::size_t>(variables), 0) {
    for (std::size_t c = 0; c + 1 < indptr_.size(); ++c) {
        const std::int32_t* clause = literals_.data() + indptr_[c];
        if (indptr_[c + 1] - indptr_[c] == 1) {
            contradictory_ = contradictory_ || is_true(clause[0] ^ 1);
            if (!is_true(clause[0])) assign(clause[0]);
        } else {
            watches_[clause[0]].push_back({static_cast<std::int64_t>(c), clause[1]});
            watches_[clause[1]].push_back({static_cast<std::int64_t>(c), clause[0]});
        }
    }
    contradictory_ = contradictory_ || !propagate(0);
}

void Propagation::assign(std::int32_t literal) {
    value_[literal] = 1;
    trail_.push_back(literal);
}

bool Propagation::implies(const std::int32_t* first, const std::int32_t* last) {
    const std::size_t mark = trail_.size();
    bool implied = contradictory_;
    for (; first != last && !implied; ++first) {
        implied = is_true(*first);
        if (!implied && !is_true(*first ^ 1)) assign(*first ^ 1);
    }
    implied = implied || !propagate(mark);
    for (std::size_t i = mark; i < trail_.size(); ++i) value_[trail_[i]] = 0;
    trail_.resize(mark);
    return implied;
}

bool Propagation::propagate(std::size_t next) {
    for (; next < trail_.size(); ++next) {
        if (!visit(trail_[next] ^ 1)) return false;
    }
    return true;
}

// Finds another literal to watch for each clause that watches a false one; false if a clause has none that can be true.
bool Propagation::visit(std::int32_t falsified) {
    std::vector<Watch>& watching = watches_[falsified];
    std::size_t kept = 0;
    for (std::size_t i = 0; i < watching.size(); ++i) {
        const Watch watch = watching[i];
        if (is_true(watch.other)) {
            watching[kept++] = watch;
            continue;
        }
        std::int32_t* clause = literals_.data() + indptr_[watch.clause];
        std::int32_t* end = literals_.data() + indptr_[watch.clause + 1];
        if (clause[0] == falsified) std::swap(clause[0], clause[1]);
        std::int32_t* found = std::find_if(clause + 2, end, [&](std::int32_t x) { return !is_true(x ^ 1); });
        if (!is_true(clause[0]) && found != end) {
            std::swap(clause[1], *found);
            watches_[clause[1]].push_back({watch.clause, clause[0]});
            continue;
        }
        watching[kept++] = {watch.clause, clause[0]};
        if (is_true(clause[0])) continue;
        if (is_true(clause[0] ^ 1)) {
            std::copy(watching.begin() + static_cast<std::ptrdiff_t>(i) + 1, watching.end(),
                      watching.begin() + static_cast<std::ptrdiff_t>(kept));
            watching.resize(kept + watching.size() - i - 1);
            return false;
        }
        assign(clause[0]);
    }
    watching.resize(kept);
    return true;
}

}  // namespace treesens
