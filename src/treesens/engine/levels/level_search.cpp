#include "levels/level_search.hpp"

#include <algorithm>

#include "problem/checked.hpp"

namespace treesens {

namespace {

// Work of the local search before the first proof: a box is small, and the prover decides most of them at once; it
// polishes its own points.
constexpr std::int64_t kFirstLook = 30'000;

}  // namespace

LevelSearch::LevelSearch(const SharedProblem& whole, std::vector<std::int32_t> level, std::vector<std::int64_t> bound,
                         std::vector<std::vector<Cell>> hints, std::uint64_t seed, std::int64_t max_bytes)
    : RepeatedSearch(whole, std::move(bound), std::move(hints), seed, max_bytes),
      level_(std::move(level)),
      allowed_(level_.size(), 0) {
    for (const std::int32_t l : level_) {
        if (l >= 0) step_.push_back(l);
    }
    std::sort(step_.begin(), step_.end());
    step_.erase(std::unique(step_.begin(), step_.end()), step_.end());
    high_ = step_.size();
}

std::int32_t LevelSearch::low() const {
    if (low_ < step_.size()) return step_[low_];
    return step_.empty() ? 0 : step_.back() + 1;
}

const std::uint8_t* LevelSearch::box(std::size_t limit) {
    for (std::size_t i = 0; i < level_.size(); ++i) allowed_[i] = level_[i] >= 0 && level_[i] <= step_[limit];
    return allowed_.data();
}

// The least step at which every row can be satisfied with each tree at its best: earlier steps have no solution.
void LevelSearch::skip_hopeless() {
    std::size_t high = step_.size();
    while (low_ < high) {
        const std::size_t middle = low_ + (high - low_) / 2;
        if (restrictor_.restrict(box(middle), level_.data(), bound_, {}).left == Left::nothing)
            low_ = middle + 1;
        else
            high = middle;
    }
}

std::size_t LevelSearch::level_of(const std::vector<Cell>& x) const {
    std::int32_t most = 0;
    for (std::size_t v = 0; v < x.size(); ++v) most = std::max(most, level_[whole_.problem().cell_offset[v] + x[v]]);
    return std::lower_bound(step_.begin(), step_.end(), most) - step_.begin();
}

// The point with every cell beyond a step moved to the nearest one within; empty where a variable has none.
std::vector<Cell> LevelSearch::pulled(const std::vector<Cell>& x, std::size_t limit) const {
    std::vector<Cell> result = x;
    const Problem& p = whole_.problem();
    for (std::int32_t v = 0; v < p.variables(); ++v) {
        const std::int32_t* level = level_.data() + p.cell_offset[v];
        const auto inside = [&](Cell k) {
            return k >= 0 && k < p.size[v] && level[k] >= 0 && level[k] <= step_[limit] &&
                   p.allowed[p.cell_offset[v] + k];
        };
        Cell away = 0;
        while (!inside(x[v] - away) && !inside(x[v] + away)) {
            if (++away >= p.size[v]) return {};
        }
        result[v] = inside(x[v] - away) ? x[v] - away : x[v] + away;
    }
    return result;
}

// Keeps a better solution, and lowers its level while it stays one.
void LevelSearch::keep(const std::vector<Cell>& x) {
    std::size_t level = level_of(x);
    if (!best_.empty() && level >= high_) return;
    ensure(level >= low_, "a solution was found at a level that was proved to have none");
    best_ = x;
    high_ = level;
    while (high_ > low_) {
        const std::vector<Cell> closer = pulled(best_, high_ - 1);
        if (closer.empty() || !whole_.solves(closer, bound_)) break;
        best_ = closer;
        high_ = level_of(closer);
    }
}

std::size_t LevelSearch::next() const {
    if (best_.empty()) return std::min(low_ + stride_ - 1, step_.size() - 1);
    return low_ + (high_ - low_) / 2;
}

void LevelSearch::finish() {
    if (low_ < high_ || (best_.empty() && low_ < step_.size())) return;
    status_ = best_.empty() ? Status::infeasible : Status::optimal;
}

void LevelSearch::start() {
    started_ = true;
    skip_hopeless();
    for (const std::vector<Cell>& x : hints_) {
        bool inside = true;
        for (std::size_t v = 0; v < x.size(); ++v) inside &= level_[whole_.problem().cell_offset[v] + x[v]] >= 0;
        if (inside && whole_.solves(x, bound_)) keep(x);
    }
    finish();
}

void LevelSearch::step(double slice, double seconds) {
    if (!started_) {
        start();
        return;
    }
    if (!search_) {
        asked_ = next();
        replace(search_,
                std::make_unique<RestrictedSearch>(restrictor_.restrict(box(asked_), level_.data(), bound_, starts()),
                                                   Mode::decide, seed_, max_bytes_, kFirstLook));
        ++decisions_;
    }
    const Status found = search_->run(slice, seconds);
    if (found == Status::open) {
        reason_ = search_->reason();
        fault_ = search_->fault();
        return;
    }
    if (found == Status::witness) {
        keep(search_->point());
    } else {
        low_ = asked_ + 1;
        stride_ *= 2;
    }
    nodes_ += search_->nodes();
    replace(search_, {});
    finish();
}

}  // namespace treesens
