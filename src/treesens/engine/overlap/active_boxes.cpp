#include "overlap/active_boxes.hpp"

#include <algorithm>
#include <numeric>

#include "problem/checked.hpp"

namespace treesens {

ActiveBoxes::ActiveBoxes(const BoxLayer& layer, MemoryBudget& budget)
    : layer_(layer), total_(layer.constant), is_changed_(layer.uses.size(), 0) {
    budget.charge(16 * layer.entries());  // the lists of a path, see worth_a_mark
    arena_.resize(static_cast<std::size_t>(layer.entries()));
    for (std::int32_t t = 0; t < layer.factors(); ++t) {
        const std::int64_t first = layer.first[t];
        const std::int64_t last = layer.first[t + 1];
        std::iota(arena_.begin() + first, arena_.begin() + last, 0);
        list_.push_back(
            {static_cast<std::size_t>(first), narrow<std::int32_t>(last - first), layer.floor[t] == kNoFloor});
        total_ += best(t);
    }
    active_ = layer.entries();
    mark();
}

ActiveBoxes::Mark ActiveBoxes::mark() {
    active_at_mark_ = active_;
    arena_at_mark_ = arena_.size();
    return {trail_.size(), arena_.size(), total_, active_};
}

void ActiveBoxes::replace(std::int32_t factor, List list) {
    impossible_ -= holds_nothing(list_[factor]) ? 1 : 0;
    active_ += list.count - list_[factor].count;
    list_[factor] = list;
    impossible_ += holds_nothing(list) ? 1 : 0;
}

void ActiveBoxes::restrict_to(const std::vector<std::int32_t>& changed, const std::vector<Cell>& low,
                              const std::vector<Cell>& high) {
    for (const std::int32_t v : changed) is_changed_[v] = 1;
    for (std::int32_t t = 0; t < layer_.factors(); ++t) {
        if (list_[t].count == 0) continue;
        checks_.clear();
        wide_checks_.clear();
        const std::int32_t* scope = layer_.scope.data() + layer_.scope_offset[t];
        for (std::int32_t s = 0; s < layer_.scope_size(t); ++s) {
            if (!is_changed_[scope[s]]) continue;
            const RangePlace place = layer_.place[layer_.scope_offset[t] + s];
            (place.wide ? wide_checks_ : checks_).push_back({place, low[scope[s]], high[scope[s]]});
        }
        if (!checks_.empty() || !wide_checks_.empty()) filter(t);
    }
    for (const std::int32_t v : changed) is_changed_[v] = 0;
}

void ActiveBoxes::filter(std::int32_t factor) {
    const List list = list_[factor];
    const std::int64_t stride = layer_.stride[factor];
    const std::uint8_t* ranges = layer_.range.data() + layer_.range_offset[factor];
    const auto meets = [&](std::int32_t entry) {
        const std::uint8_t* of_entry = ranges + entry * stride;
        // A separate loop, so that the width is not checked for every entry.
        const auto all_of = [of_entry](const std::vector<Check>& checks, bool wide) {
            bool all = true;
            for (const Check& check : checks) {
                const CellRange range = RangePlace{check.place.offset, wide}.read(of_entry);
                all = all && range.low <= check.high && check.low <= range.high;
            }
            return all;
        };
        return all_of(checks_, false) && all_of(wide_checks_, true);
    };
    const std::int32_t* entry = arena_.data() + list.begin;
    std::int32_t kept = 0;
    while (kept < list.count && meets(entry[kept])) ++kept;
    work_ += list.count;
    if (kept == list.count) return;
    const std::int64_t before = best(factor);
    const bool in_place = list.begin >= arena_at_mark_;
    const std::size_t begin = in_place ? list.begin : arena_.size();
    if (!in_place) arena_.resize(begin + static_cast<std::size_t>(list.count));
    entry = arena_.data() + list.begin;
    std::int32_t* out = arena_.data() + begin;
    if (!in_place) std::copy(entry, entry + kept, out);
    for (std::int32_t i = kept + 1; i < list.count; ++i) {
        out[kept] = entry[i];
        kept += meets(entry[i]) ? 1 : 0;
    }
    if (!in_place) {
        arena_.resize(begin + static_cast<std::size_t>(kept));
        trail_.push_back({factor, list});
    }
    replace(factor, {begin, kept, list.closed});
    total_ += best(factor) - before;
}

void ActiveBoxes::leave_out_beyond(std::int64_t spare) {
    for (std::int32_t t = 0; t < layer_.factors(); ++t) {
        List list = list_[t];
        if (list.count == 0) continue;
        const std::int64_t least = best(t) - spare;
        if (!list.closed && layer_.floor[t] >= least) continue;
        const std::int32_t* entry = begin(t);
        const auto end =
            std::partition_point(entry, entry + list.count, [&](std::int32_t e) { return value(t, e) >= least; });
        const std::int32_t count = narrow<std::int32_t>(end - entry);
        if (list.closed && count == list.count) continue;
        trail_.push_back({t, list});
        list.count = count;
        list.closed = true;
        replace(t, list);
    }
    work_ += layer_.factors();
}

void ActiveBoxes::undo(const Mark& mark) {
    while (trail_.size() > mark.trail) {
        replace(trail_.back().factor, trail_.back().before);
        trail_.pop_back();
    }
    arena_.resize(mark.arena);
    total_ = mark.total;
    active_at_mark_ = active_ = mark.active;
    arena_at_mark_ = mark.arena;
}

}  // namespace treesens
