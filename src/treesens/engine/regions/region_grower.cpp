#include "regions/region_grower.hpp"

#include <algorithm>
#include <numeric>

#include "problem/score_range.hpp"

namespace treesens {

namespace {

// Trees with changed values, between two checks of the rows.
constexpr std::size_t kTreesPerLook = 16;

// The connected part of a set of cells around `cell`, which belongs to it.
void keep_run_around(std::uint8_t* mask, std::int32_t count, std::int32_t cell) {
    std::int32_t low = cell;
    std::int32_t high = cell;
    while (low > 0 && mask[low - 1]) --low;
    while (high + 1 < count && mask[high + 1]) ++high;
    for (std::int32_t k = 0; k < count; ++k) mask[k] = low <= k && k <= high;
}

std::int64_t least_cost(const std::vector<std::int64_t>& of_cell, const std::uint8_t* mask) {
    std::int64_t least = INT64_MAX;
    for (std::size_t k = 0; k < of_cell.size(); ++k) {
        if (mask[k]) least = std::min(least, of_cell[k]);
    }
    return least;
}

}  // namespace

bool RegionTerms::Row::fits() const {
    constexpr __int128 kMost = static_cast<__int128>(1) << 124;
    __int128 total = 0;
    const auto add = [&total](std::int64_t weight, __int128 most) {
        const __int128 size = static_cast<__int128>(weight < 0 ? -weight : weight) * most;
        total = size < kMost - total ? total + size : kMost;
    };
    // A score with its base and slack.
    for (const Score& term : scores) add(term.weight, static_cast<__int128>(kMostScore) * 4);
    for (const Cost& term : costs) {
        __int128 most = 0;
        for (const std::int64_t cost : term.of_cell)
            most = std::max<__int128>(most, cost < 0 ? -static_cast<__int128>(cost) : cost);
        add(term.weight, most);
    }
    return total < kMost;
}

RegionGrower::RegionGrower(std::vector<const ValueTrees*> scores, std::vector<std::int32_t> score_point,
                           std::int32_t points, std::vector<std::uint8_t> shared, std::vector<std::uint8_t> ordered,
                           std::vector<std::uint8_t> legal, RegionTerms terms)
    : scores_(std::move(scores)),
      score_point_(std::move(score_point)),
      points_(points),
      shared_(std::move(shared)),
      ordered_(std::move(ordered)),
      legal_(std::move(legal)),
      terms_(std::move(terms)),
      offset_(1, 0),
      missing_cell_(scores_[0]->missing_cell()),
      walk_(scores_[0]->cells()) {
    for (const std::int32_t n : scores_[0]->cells()) offset_.push_back(offset_.back() + n);
    cells_ = offset_.back();
}

bool RegionGrower::fits(const std::vector<std::int32_t>& cells, std::int64_t points) const {
    if (points != points_ || static_cast<std::int64_t>(cells.size()) != points * features()) return false;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (cells[i] < 0 || cells[i] >= width(static_cast<std::int32_t>(i % shared_.size()))) return false;
    }
    return true;
}

std::vector<std::uint8_t> RegionGrower::leaf_region(const std::vector<std::int32_t>& cells) {
    box_.clear();
    for (std::int32_t p = 0; p < points_; ++p) box_.insert(box_.end(), legal_.begin(), legal_.end());
    for (std::int32_t p = 0; p < points_; ++p) {
        for (std::size_t i = 0; i < scores_.size(); ++i) {
            if (score_point_[i] == p) scores_[i]->keep_leaves(cells.data() + p * features(), box_.data() + p * cells_);
        }
        for (const std::vector<RegionTerms::Set>& choice : terms_.sets) {
            if (choice.size() != 1 || choice[0].place / features() != p) continue;
            std::uint8_t* mine = mask(p, choice[0].place % features());
            for (std::size_t k = 0; k < choice[0].member.size(); ++k) mine[k] = mine[k] && choice[0].member[k];
        }
        for (std::int32_t f = 0; f < features(); ++f) keep_run_around(mask(p, f), width(f), cells[p * features() + f]);
    }
    for (std::int32_t f = 0; f < features() && points_ > 1; ++f) {
        if (!shared_[f]) continue;
        for (std::int32_t p = 1; p < points_; ++p) {
            for (std::int32_t k = 0; k < width(f); ++k) mask(0, f)[k] = mask(0, f)[k] && mask(p, f)[k];
        }
        keep_run_around(mask(0, f), width(f), cells[f]);
        for (std::int32_t p = 1; p < points_; ++p) std::copy_n(mask(0, f), width(f), mask(p, f));
    }
    load();
    if (holds()) return box_;
    std::fill(box_.begin(), box_.end(), 0);
    for (std::int32_t p = 0; p < points_; ++p) {
        for (std::int32_t f = 0; f < features(); ++f) mask(p, f)[cells[p * features() + f]] = 1;
    }
    load();
    return holds() ? box_ : std::vector<std::uint8_t>();
}

std::vector<std::uint8_t> RegionGrower::region(const std::vector<std::int32_t>& cells) {
    if (leaf_region(cells).empty()) return {};
    std::vector<std::pair<std::int32_t, std::int32_t>> places;  // point (-1: all of them), feature
    for (std::int32_t f = 0; f < features(); ++f) {
        if (shared_[f]) places.emplace_back(-1, f);
    }
    for (std::int32_t p = 0; p < points_; ++p) {
        for (std::int32_t f = 0; f < features(); ++f) {
            if (!shared_[f]) places.emplace_back(p, f);
        }
    }
    // How many cells a feature lacks: those that nearly are whole come first.
    std::vector<std::int32_t> price;
    for (const auto& [point, f] : places) {
        const std::uint8_t* mine = mask(std::max(point, 0), f);
        price.push_back(0);
        for (std::int32_t k = 0; k < width(f); ++k) price.back() += legal(f)[k] && !mine[k];
    }
    std::vector<std::size_t> order(places.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return price[a] < price[b]; });
    for (const std::size_t i : order) {
        const auto [point, f] = places[i];
        widen(point, f, cells[std::max(point, 0) * features() + f]);
    }
    return box_;
}

// Adds the current box to all states.
void RegionGrower::load() {
    met_.assign(points_, CellBox(scores_[0]->cells(), missing_cell_));
    for (std::int32_t p = 0; p < points_; ++p) {
        for (std::int32_t f = 0; f < features(); ++f) met_[p].set(f, mask(p, f));
    }
    states_.clear();
    for (std::size_t i = 0; i < scores_.size(); ++i) {
        State& state = states_.emplace_back();
        for (std::int32_t t = 0; t < scores_[i]->trees(); ++t) {
            const ValueTrees::Range nothing{INT64_MAX, INT64_MIN};
            state.reached.push_back(scores_[i]->reach(t, met_[score_point_[i]], nothing, walk_));
            state.low += state.reached.back().least;
            state.high += state.reached.back().most;
        }
    }
    entered_.clear();
    entered_count_.clear();
    for (const RegionTerms::Avoided& avoided : terms_.avoided) {
        entered_.emplace_back(avoided.boxes);
        entered_count_.push_back(avoided.boxes.boxes);
    }
    for (std::size_t a = 0; a < entered_.size(); ++a) {
        for (std::int32_t f = 0; f < features(); ++f) {
            entered_[a].set(f, mask(terms_.avoided[a].point, f),
                            [&](std::int32_t box) { entered_count_[a] += entered_[a](box) ? 1 : -1; });
        }
    }
}

void RegionGrower::replace(std::size_t score, std::int32_t tree, ValueTrees::Range reached) {
    State& state = states_[score];
    state.low += reached.least - state.reached[tree].least;
    state.high += reached.most - state.reached[tree].most;
    state.reached[tree] = reached;
}

// The cells of a feature, of one point or (-1) of all; the trees stay as they were.
void RegionGrower::set_mask(std::int32_t point, std::int32_t f, const std::uint8_t* chosen) {
    for (std::int32_t p = std::max(point, 0); p < (point < 0 ? points_ : point + 1); ++p) {
        std::copy_n(chosen, width(f), mask(p, f));
        met_[p].set(f, chosen);
        for (std::size_t a = 0; a < entered_.size(); ++a) {
            if (terms_.avoided[a].point != p) continue;
            entered_[a].set(f, chosen, [&](std::int32_t box) { entered_count_[a] += entered_[a](box) ? 1 : -1; });
        }
    }
}

// Updates the trees' reach after a feature has got more cells; false once a row no longer holds.
bool RegionGrower::widen_trees(std::int32_t point, std::int32_t f) {
    undo_.clear();
    for (std::size_t i = 0; i < scores_.size(); ++i) {
        if (point >= 0 && score_point_[i] != point) continue;
        const CellBox& box = met_[score_point_[i]];
        for (const std::int32_t t : scores_[i]->asking(f)) {
            const ValueTrees::Range before = states_[i].reached[t];
            const ValueTrees::Range after = scores_[i]->reach(t, box, before, walk_);
            if (after.least == before.least && after.most == before.most) continue;
            undo_.push_back({i, t, before});
            replace(i, t, after);
            if (undo_.size() % kTreesPerLook == 0 && !rows_hold()) return false;
        }
    }
    return rows_hold();
}

bool RegionGrower::sets_hold() const {
    const auto within = [&](const RegionTerms::Set& set) {
        const std::uint8_t* mine = box_.data() + set.place / features() * cells_ + offset_[set.place % features()];
        for (std::size_t k = 0; k < set.member.size(); ++k) {
            if (mine[k] && !set.member[k]) return false;
        }
        return true;
    };
    for (const std::vector<RegionTerms::Set>& choice : terms_.sets) {
        if (std::none_of(choice.begin(), choice.end(), within)) return false;
    }
    return std::none_of(entered_count_.begin(), entered_count_.end(), [](std::int64_t n) { return n > 0; });
}

bool RegionGrower::rows_hold() const {
    for (const RegionTerms::Row& row : terms_.rows) {
        __int128 least = 0;
        for (const RegionTerms::Score& term : row.scores) {
            const ValueTrees& trees = *scores_[term.score];
            const State& state = states_[term.score];
            const std::int64_t reached = trees.base() + (term.weight > 0 ? state.low : state.high + trees.slack());
            least += static_cast<__int128>(term.weight) * reached;
        }
        for (const RegionTerms::Cost& cost : row.costs) {
            const std::uint8_t* mine =
                box_.data() + cost.place / features() * cells_ + offset_[cost.place % features()];
            least += static_cast<__int128>(cost.weight) * least_cost(cost.of_cell, mine);
        }
        if (least < row.bound) return false;
    }
    return true;
}

// The box with more cells of a feature if it still holds; else as it was.
bool RegionGrower::try_mask(std::int32_t point, std::int32_t f, const Mask& chosen) {
    const std::uint8_t* mine = mask(std::max(point, 0), f);
    const Mask before(mine, mine + width(f));
    set_mask(point, f, chosen.data());
    undo_.clear();
    if (sets_hold() && widen_trees(point, f)) return true;
    for (const Undo& undo : undo_) replace(undo.score, undo.tree, undo.reached);
    set_mask(point, f, before.data());
    return false;
}

void RegionGrower::widen(std::int32_t point, std::int32_t f, std::int32_t cell) {
    const Mask whole(legal(f), legal(f) + width(f));
    if (try_mask(point, f, whole)) return;
    const std::uint8_t* mine = mask(std::max(point, 0), f);
    const std::int32_t absent = missing_cell_[f];
    if (!ordered_[f]) {
        for (std::int32_t k = 0; k < width(f); ++k) {
            if (!whole[k] || mine[k]) continue;
            Mask wider(mine, mine + width(f));
            wider[k] = 1;
            try_mask(point, f, wider);
        }
        return;
    }
    if (cell == absent) return;
    const std::int32_t present = width(f) - (absent >= 0 ? 1 : 0);
    std::int32_t first = 0;
    while (!mine[first]) ++first;
    std::int32_t last = present - 1;
    while (!mine[last]) --last;
    std::vector<std::int32_t> above;
    std::vector<std::int32_t> below;
    for (std::int32_t k = 0; k < present; ++k) {
        if (whole[k] && k >= last) above.push_back(k);
        if (whole[k] && k <= first) below.insert(below.begin(), k);
    }
    last = furthest(point, f, first, above, true);
    furthest(point, f, last, below, false);
}

// The furthest of `ends` (the first is where the side is now) to which a side can move: bisection, as boxes nest.
std::int32_t RegionGrower::furthest(std::int32_t point, std::int32_t f, std::int32_t fixed,
                                    const std::vector<std::int32_t>& ends, bool upwards) {
    std::size_t good = 0;
    std::size_t bad = ends.size();
    while (bad - good > 1) {
        const std::size_t middle = (good + bad) / 2;
        const std::uint8_t* mine = mask(std::max(point, 0), f);
        const std::int32_t end = ends[middle];
        if (try_mask(point, f, run(f, upwards ? fixed : end, upwards ? end : fixed, mine)))
            good = middle;
        else
            bad = middle;
    }
    return ends[good];
}

// Legal cells from low to high; the missing cell stays as it was.
RegionGrower::Mask RegionGrower::run(std::int32_t f, std::int32_t low, std::int32_t high,
                                     const std::uint8_t* before) const {
    Mask result(width(f), 0);
    for (std::int32_t k = low; k <= high; ++k) result[k] = legal(f)[k];
    if (missing_cell_[f] >= 0) result[missing_cell_[f]] = before[missing_cell_[f]];
    return result;
}

}  // namespace treesens
