#include "overlap/cut_losses.hpp"

#include <algorithm>

namespace treesens {

namespace {

// The greater loss counts a little, more in the middle of a domain: slices off an end leave the rest as hard as before.
constexpr double kGreater = 0.4;

}  // namespace

CutLosses::CutLosses(const Problem& problem)
    : low_by_(problem.variables(), 0), high_by_(problem.variables(), 0), events_(problem.variables()) {}

void CutLosses::start(const std::vector<Cell>& low, const std::vector<Cell>& high) {
    first_ = low_ = low;
    last_ = high_ = high;
    trimmed_ = false;
    best_ = divides_ = OverlapCut();
}

void CutLosses::look(const ActiveBoxes& boxes, std::int64_t spare, std::int32_t layer) {
    layer_ = layer;
    for (auto& list : events_) list.clear();
    spare_ = spare;
    for (std::int32_t t = 0; t < boxes.layer().factors(); ++t) look_at_factor(boxes, t);
    for (std::size_t v = 0; v < events_.size(); ++v) {
        if (!events_[v].empty()) read_cuts(static_cast<std::int32_t>(v), static_cast<double>(spare_) + 1);
    }
}

void CutLosses::look_at_factor(const ActiveBoxes& boxes, std::int32_t factor) {
    const std::int32_t count = boxes.active(factor);
    if (count == 0) return;
    const BoxLayer& layer = boxes.layer();
    const std::int32_t* scope = layer.scope.data() + layer.scope_offset[factor];
    const std::int32_t* entry = boxes.begin(factor);
    const std::int64_t best = boxes.best(factor);
    EntryRanges ranges = boxes.ranges(factor, *entry);
    open_.clear();
    for (std::int32_t s = 0; s < layer.scope_size(factor); ++s) {
        const std::int32_t v = scope[s];
        if (first_[v] == last_[v]) continue;
        const CellRange range = ranges[s];
        if (range.low > first_[v]) events_[v].push_back({range.low - 1, 0, 0, 1});
        if (range.high < last_[v]) events_[v].push_back({range.high, 0, 0, 1});
        Reach reach{s, last_[v] + 1, first_[v] - 1};
        if (!widen(reach, v, range, 0)) open_.push_back(reach);
    }
    for (std::int32_t i = 1; i < count && !open_.empty(); ++i) {
        ranges = boxes.ranges(factor, entry[i]);
        const std::int64_t loss = best - boxes.value(factor, entry[i]);
        work_ += 1 + static_cast<std::int64_t>(open_.size()) / 2;
        for (std::size_t o = 0; o < open_.size();) {
            const std::int32_t s = open_[o].slot;
            if (widen(open_[o], scope[s], ranges[s], loss)) {
                open_[o] = open_.back();
                open_.pop_back();
            } else {
                ++o;
            }
        }
    }
    // No solution lies outside the boxes of a closed factor: that side is refuted.
    const std::int64_t loss = boxes.closed(factor) ? spare_ + 1 : best - layer.floor[factor];
    for (Reach& reach : open_) widen(reach, scope[reach.slot], {0, UINT16_MAX}, loss);
}

// A box that loses so much reaches this far; true once both ends of the domain are reached.
bool CutLosses::widen(Reach& reach, std::int32_t v, CellRange range, std::int64_t loss) {
    const Cell first = first_[v];
    const Cell last = last_[v];
    const Cell low = std::max<Cell>(range.low, first);
    const Cell high = std::min<Cell>(range.high, last);
    if (low < reach.low) {
        const Cell end = std::min(reach.low, last);
        if (loss > 0 && low < end) {
            events_[v].push_back({low, loss, 0, 0});
            events_[v].push_back({end, -loss, 0, 0});
        }
        reach.low = low;
    }
    if (high > reach.high) {
        const Cell begin = std::max(reach.high, first);
        if (loss > 0 && begin < high) {
            events_[v].push_back({begin, 0, loss, 0});
            events_[v].push_back({high, 0, -loss, 0});
        }
        reach.high = high;
    }
    return reach.low <= first && reach.high >= last;
}

void CutLosses::read_cuts(std::int32_t v, double spare) {
    std::vector<Event>& events = events_[v];
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.cut < b.cut; });
    work_ += static_cast<std::int64_t>(events.size());
    const Cell first = first_[v];
    const Cell last = last_[v];
    const double width = last - first + 1;
    // Each of many closed factors loses more than the spare.
    __int128 low = 0;
    __int128 high = 0;
    for (std::size_t i = 0; i < events.size();) {
        const Cell cut = events[i].cut;
        std::int32_t borders = 0;
        for (; i < events.size() && events[i].cut == cut; ++i) {
            low += events[i].low;
            high += events[i].high;
            borders += events[i].border;
        }
        if (cut < first || cut >= last) continue;
        // The losses are constant up to the next event.
        const Cell next = i < events.size() ? std::min(events[i].cut, last) : last;
        if (low > spare_ && next > low_[v]) low_[v] = next, low_by_[v] = layer_, trimmed_ = true;
        if (high > spare_ && cut < high_[v]) high_[v] = cut, high_by_[v] = layer_, trimmed_ = true;
        const double below = (cut - first + 1) / width;
        const double balance = below * (1 - below);
        const double lost_low = std::min(1.0, static_cast<double>(low) / spare);
        const double lost_high = std::min(1.0, static_cast<double>(high) / spare);
        const double worth = std::min(lost_low, lost_high) + kGreater * std::max(lost_low, lost_high) * balance;
        if (worth > best_.worth) best_ = {v, cut, low < high, worth};
        if (borders * balance > divides_.worth) divides_ = {v, cut, true, borders * balance};
    }
}

}  // namespace treesens
