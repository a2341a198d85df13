#include "levels/cost_search.hpp"

#include <algorithm>
#include <numeric>

#include "problem/checked.hpp"

namespace treesens {

namespace {

constexpr std::int64_t kLargestSum = std::int64_t{1} << 62;
// The prover's costs sum to less than this, so that its grid represents them exactly (problem/rounding.hpp).
constexpr std::int64_t kProverSum = (std::int64_t{1} << 35) - 1;
constexpr std::int64_t kFirstTurn = 300'000;
constexpr std::int64_t kFirstChunk = 8;
// The part is rebuilt once the best cost has fallen below its price by this share of it.
constexpr std::int64_t kWorthwhile = 16;
// The next price exceeds the proved bound by this share of it.
constexpr std::int64_t kStep = 4;
constexpr int kOrders = 8;

}  // namespace

CostSearch::CostSearch(const SharedProblem& whole, std::vector<std::int64_t> cost, std::vector<std::int64_t> bound,
                       std::vector<std::vector<Cell>> hints, std::int64_t most, std::uint64_t seed,
                       std::int64_t max_bytes)
    : RepeatedSearch(whole, std::move(bound), std::move(hints), seed, max_bytes),
      costs_(whole.problem(), std::move(cost)),
      moves_(whole.problem(), whole.forest(), costs_, bound_),
      most_(most < 0 ? kLargestSum : most),
      random_(seed),
      allowed_(whole.problem().cells(), 0) {
    const Problem& p = whole_.problem();
    std::int64_t sum = 0;
    for (std::int32_t v = 0; v < p.variables(); ++v) {
        std::int64_t largest = 0;
        for (Cell k = 0; k < p.size[v]; ++k) largest = std::max(largest, costs_.of(v, k));
        if (largest >= kLargestSum - sum) throw std::invalid_argument("the costs of the cells are too large");
        sum += largest;
    }
    rank_ = ranks();
}

std::vector<std::int32_t> CostSearch::ranks() {
    for (const std::int64_t c : costs_.all()) {
        if (c >= 0) steps_.push_back(c);
    }
    std::sort(steps_.begin(), steps_.end());
    steps_.erase(std::unique(steps_.begin(), steps_.end()), steps_.end());
    unit_ = std::accumulate(steps_.begin(), steps_.end(), std::int64_t{0},
                            [](std::int64_t a, std::int64_t b) { return std::gcd(a, b); });
    unit_ = std::max(unit_, std::int64_t{1});
    std::vector<std::int32_t> rank;
    for (const std::int64_t c : costs_.all()) {
        const auto at = std::lower_bound(steps_.begin(), steps_.end(), c);
        rank.push_back(c < 0 || c >= most_ ? -1 : narrow<std::int32_t>(at - steps_.begin()));
    }
    return rank;
}

// The proved bound of a cost, an integer number of units.
void CostSearch::raise(std::int64_t low) {
    if (low % unit_ != 0 && low <= kLargestSum - unit_) low += unit_ - low % unit_;
    low_ = std::max(low_, std::min(low, best_.empty() ? most_ : high_));
}

// Keeps a solution that is better than the best one.
bool CostSearch::keep(std::vector<Cell> x, bool descend) {
    if (!moves_.solves(x)) return false;
    if (descend) moves_.descend(x);
    const std::int64_t cost = costs_.sum(x);
    if (cost >= most_ || (!best_.empty() && cost >= high_)) return false;
    ensure(cost >= low_, "a solution was found that costs less than what was proved");
    best_ = std::move(x);
    high_ = cost;
    return true;
}

void CostSearch::finish() {
    status_ = best_.empty() ? Status::infeasible : Status::optimal;
    if (best_.empty() && low_ > most()) low_ = most_;
}

// --- the first solution -------------------------------------------------------------------------------------------

// The least level with a solution: the total cost is at least that of its most expensive cell.
void CostSearch::find_nearest(double slice, double seconds) {
    if (!nearest_) {
        for (const std::vector<Cell>& x : hints_) keep(x, true);
        replace(nearest_, std::make_unique<LevelSearch>(whole_, rank_, bound_, hints_, seed_, max_bytes_));
    }
    const Status found = nearest_->run(slice, seconds);
    const auto level = static_cast<std::size_t>(nearest_->low());
    if (level < steps_.size()) raise(steps_[level]);
    reason_ = nearest_->reason();
    fault_ = nearest_->fault();
    if (!nearest_->best().empty()) {
        std::vector<Cell> x = nearest_->best();
        keep(x, true);
        if (found == Status::open) return;
    }
    if (found == Status::open) return;
    nodes_ += nearest_->nodes();
    if (found == Status::infeasible) {
        ensure(best_.empty(), "a question has a solution and a proof that it has none");
        raise(most_);
        finish();
        return;
    }
    phase_ = Phase::moves;
}

// Other solutions near the first one: fewer changed features, each changed as little as possible.
void CostSearch::improve() {
    const std::vector<Cell> start = nearest_->best();
    for (int i = 0; i < kOrders; ++i) {
        std::vector<Cell> x = i % 2 == 0 || best_.empty() ? start : best_;
        moves_.return_home(x, random_);
        keep(std::move(x), false);
    }
    phase_ = Phase::start;
}

// --- the proof ------------------------------------------------------------------------------------------------------

int CostSearch::unit_shift(const Restricted& part) const {
    int shift = 0;
    for (std::int64_t sum = kProverSum; sum >= kProverSum; ++shift) {
        sum = 0;
        for (std::int32_t v = 0; v < part.problem.variables(); ++v) {
            std::int64_t largest = 0;
            for (std::int32_t i = part.problem.cell_offset[v]; i < part.problem.cell_offset[v + 1]; ++i) {
                largest = std::max(largest, costs_.of(part.variable[v], part.cell[i]) >> shift);
            }
            sum += largest;
        }
    }
    return shift - 1;
}

// The costs as the prover's objective row, rounded down to its units: its bounds are valid for them.
void CostSearch::add_objective() {
    Problem& p = part_.problem;
    const std::int32_t row = p.rows++;
    p.has_objective = true;
    p.bound.push_back(0);
    p.slack_weight.push_back(1);
    if (!p.has_unary) p.unary.assign(static_cast<std::size_t>(row) * p.cells(), 0);
    p.has_unary = true;
    for (std::int32_t v = 0; v < p.variables(); ++v) {
        for (std::int32_t i = p.cell_offset[v]; i < p.cell_offset[v + 1]; ++i) {
            p.unary.push_back(-(costs_.of(part_.variable[v], part_.cell[i]) >> shift_));
        }
    }
}

// The cheapest point of the part.
std::vector<Cell> CostSearch::cheapest() const {
    std::vector<Cell> x(whole_.problem().variables(), 0);
    for (std::int32_t v = 0; v < whole_.problem().variables(); ++v) {
        std::int64_t best = -1;
        for (Cell k = 0; k < whole_.problem().size[v]; ++k) {
            const std::int32_t i = whole_.problem().cell_offset[v] + k;
            if (!allowed_[i] || !whole_.problem().allowed[i]) continue;
            if (best < 0 || costs_.of(v, k) < best) {
                best = costs_.of(v, k);
                x[v] = k;
            }
        }
    }
    return x;
}

void CostSearch::start_prover() {
    if (low_ > most()) {
        finish();
        return;
    }
    before_ = low_;
    price_ = std::min(most(), low_ + low_ / kStep);
    for (std::size_t i = 0; i < allowed_.size(); ++i) allowed_[i] = costs_.all()[i] >= 0 && costs_.all()[i] <= price_;
    part_ = restrictor_.restrict(allowed_.data(), rank_.data(), bound_, starts());
    if (part_.left != Left::problem) {
        // Every point of the part is a solution, and the cheapest of them is optimal; or the part has none at this
        // price.
        if (part_.left == Left::point) {
            keep(cheapest(), false);
            ensure(!best_.empty() || costs_.sum(cheapest()) >= most_, "a part has lost its solution");
            raise(costs_.sum(cheapest()));
        }
        if (part_.left == Left::nothing) raise(price_ + 1);
        end_part(0);
        return;
    }
    constant_ = 0;
    std::vector<std::uint8_t> left(part_.rest.size(), 0);
    for (const std::int32_t v : part_.variable) left[v] = 1;
    for (std::int32_t v = 0; v < narrow<std::int32_t>(left.size()); ++v) {
        if (!left[v]) constant_ += costs_.of(v, part_.rest[v]);
    }
    if (constant_ > price_) {
        raise(price_ + 1);
        end_part(0);
        return;
    }
    shift_ = unit_shift(part_);
    add_objective();
    chunk_ = kFirstChunk;
    auto made =
        std::make_unique<Search>(std::move(part_.problem), std::move(part_.forest), Mode::objective, seed_, max_bytes_);
    made->shorten_first_turn(kFirstTurn);
    Gap gap;
    gap.least = -((price_ - constant_) >> shift_);
    made->set_gap(gap);
    replace(prover_, std::move(made));
    phase_ = Phase::prove;
}

void CostSearch::read_prover() {
    const Incumbent& found = prover_->incumbent();
    if (found.present() && found.score.hard >= 0) keep(widened(part_, found.x), true);
    const std::int64_t upper = prover_->upper();
    if (upper <= 0 && upper > -kLargestSum) raise(std::min((-upper << shift_) + constant_, price_ + 1));
}

// The part is completely searched. Solutions in it that exceed the proved bound by less than `rounded` may have been
// missed.
void CostSearch::end_part(std::int64_t rounded) {
    replace(prover_, {});
    phase_ = Phase::start;
    if (most() - low_ < rounded || low_ > most())
        finish();
    else
        ensure(low_ > before_, "a part was searched to no purpose");
}

void CostSearch::prove(double slice, double seconds) {
    prover_->run(slice, seconds, chunk_);
    read_prover();
    fault_ = prover_->fault();
    if (prover_->status() != Status::open) {
        nodes_ += prover_->provers().statistics().nodes;
        if (prover_->status() == Status::infeasible) raise(price_ + 1);
        end_part(shift_ == 0 ? 0 : static_cast<std::int64_t>(part_.variable.size()) << shift_);
        return;
    }
    if (prover_->reason() != Reason::nodes) {
        reason_ = prover_->reason();
        return;
    }
    chunk_ *= 2;
    if (high_ >= price_ - price_ / kWorthwhile || best_.empty()) return;
    // A cheaper solution reduces the remaining search.
    nodes_ += prover_->provers().statistics().nodes;
    replace(prover_, {});
    phase_ = Phase::start;
}

// --- the whole ------------------------------------------------------------------------------------------------------

void CostSearch::step(double slice, double seconds) {
    switch (phase_) {
        case Phase::nearest:
            find_nearest(slice, seconds);
            return;
        case Phase::moves:
            improve();
            return;
        case Phase::start:
            start_prover();
            return;
        case Phase::prove:
            prove(slice, seconds);
            return;
    }
}

void CostSearch::set_stop_of_search(bool stops) {
    set_stop_of(nearest_, stops);
    set_stop_of(prover_, stops);
}

}  // namespace treesens
