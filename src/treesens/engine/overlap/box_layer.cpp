#include "overlap/box_layer.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "bound/factors.hpp"
#include "problem/checked.hpp"
#include "problem/leaf_boxes.hpp"
#include "problem/schedule.hpp"

namespace treesens {

namespace {

// The entries of one factor, written into a layer in the order of their values. Their literals stay where they are
// until it is finished.
class FactorWriter {
public:
    FactorWriter(const Problem& p, BoxLayer& layer) : p_(p), layer_(layer), slot_of_(p.variables(), -1) {
        layer.uses.resize(p.variables());
    }

    void start() { entries_.clear(); }
    void add(std::int64_t value, const Literal* begin, const Literal* end) { entries_.push_back({value, begin, end}); }
    // `floor` as in the layer.
    void finish(std::int64_t floor) {
        collect_scope();
        if (entries_.empty() || scope_.empty()) {
            layer_.constant += entries_.empty() ? floor : entries_[0].value;
            return;
        }
        std::stable_sort(entries_.begin(), entries_.end(),
                         [](const Entry& a, const Entry& b) { return a.value > b.value; });
        const std::int32_t factor = layer_.factors();
        std::int32_t stride = 0;
        for (std::size_t s = 0; s < scope_.size(); ++s) {
            layer_.uses[scope_[s]].push_back({factor, narrow<std::int32_t>(s)});
            slot_of_[scope_[s]] = narrow<std::int32_t>(s);
            const std::int32_t cells = p_.size[scope_[s]];
            layer_.place.push_back({stride, cells > RangePlace::kNarrowCells});
            stride += RangePlace::bytes(cells);
        }
        layer_.stride.push_back(stride);
        layer_.range_offset.push_back(static_cast<std::int64_t>(layer_.range.size()));
        const RangePlace* place = layer_.place.data() + layer_.scope_offset.back();
        for (const Entry& e : entries_) write(e, place, stride);
        layer_.floor.push_back(floor);
        layer_.first.push_back(static_cast<std::int64_t>(layer_.value.size()));
        layer_.scope.insert(layer_.scope.end(), scope_.begin(), scope_.end());
        layer_.scope_offset.push_back(narrow<std::int32_t>(layer_.scope.size()));
        for (const std::int32_t v : scope_) slot_of_[v] = -1;
    }

private:
    struct Entry {
        std::int64_t value;
        const Literal* first;
        const Literal* last;
    };

    void collect_scope() {
        scope_.clear();
        for (const Entry& e : entries_) {
            for (const Literal* l = e.first; l != e.last; ++l) {
                if (slot_of_[l->variable] >= 0) continue;
                slot_of_[l->variable] = 0;
                scope_.push_back(l->variable);
            }
        }
        for (const std::int32_t v : scope_) slot_of_[v] = -1;
        std::sort(scope_.begin(), scope_.end());
    }

    void write(const Entry& e, const RangePlace* place, std::int32_t stride) {
        std::uint8_t* ranges = layer_.range.extend(static_cast<std::size_t>(stride));
        for (std::size_t s = 0; s < scope_.size(); ++s) {
            place[s].write(ranges, {0, narrow<std::uint16_t>(p_.size[scope_[s]] - 1)});
        }
        for (const Literal* l = e.first; l != e.last; ++l) {
            const RangePlace at = place[slot_of_[l->variable]];
            const CellRange range = at.read(ranges);
            at.write(ranges, {std::max(range.low, narrow<std::uint16_t>(l->low)),
                              std::min(range.high, narrow<std::uint16_t>(l->high))});
        }
        layer_.value.push_back(e.value);
    }

    const Problem& p_;
    BoxLayer& layer_;
    std::vector<std::int32_t> slot_of_;
    std::vector<std::int32_t> scope_;
    std::vector<Entry> entries_;
};

class LayerBuilder {
public:
    LayerBuilder(const Problem& p, const Forest& f, const RowSum& rows, MemoryBudget& budget)
        : p_(p),
          f_(f),
          budget_(budget),
          sums_{rows},
          join_(p, f, sums_, false),
          writer_(p, layer_),
          boxes_(p, f),
          others_(p, f) {
        layer_.rows = rows;
    }

    BoxLayer difference(Control* control) {
        join_.stop_by(control);
        const std::int64_t slop = rounding_slop(p_, f_, layer_.rows);
        join_.leave_out(slop);
        std::int64_t left = schedule.overlap_pairs_together;
        return built([&](const std::vector<std::int32_t>& touched) {
            if (!join_.run(touched, std::min(schedule.overlap_pairs, left))) return false;
            left -= static_cast<std::int64_t>(join_.entries.size());
            write_join(slop);
            return true;
        });
    }

    BoxLayer row() {
        return built([&](const std::vector<std::int32_t>& touched) { return at_home(touched); });
    }

private:
    // Copies of a tree that are not put together (above so many pairs) stay apart: weaker, never wrong.
    template <typename Together>
    BoxLayer built(const Together& together) {
        for (const auto& trees : groups_by_tree(p_)) {
            const std::vector<std::int32_t> touched = touching(trees.second);
            if (touched.empty()) continue;
            if (!together(touched)) {
                for (const std::int32_t g : touched) apart(g);
            }
            charge();
        }
        return finished();
    }

    std::vector<std::int32_t> touching(const std::vector<std::int32_t>& groups) const {
        std::vector<std::int32_t> touched;
        for (const std::int32_t g : groups) {
            const auto first = f_.group_rows.begin() + f_.row_offset[g];
            const auto last = f_.group_rows.begin() + f_.row_offset[g + 1];
            const bool found = std::any_of(layer_.rows.begin(), layer_.rows.end(),
                                           [&](std::int32_t r) { return std::binary_search(first, last, r); });
            if (found) touched.push_back(g);
        }
        return touched;
    }

    std::int64_t value_of(std::int32_t group, std::int64_t leaf) const {
        const std::int64_t* value = f_.values(p_, group, narrow<std::int32_t>(leaf));
        std::int64_t sum = 0;
        for (std::int32_t j = f_.row_offset[group]; j < f_.row_offset[group + 1]; ++j, ++value) {
            for (const std::int32_t r : layer_.rows) sum += r == f_.group_rows[j] ? *value : 0;
        }
        return sum;
    }

    void apart(std::int32_t group) {
        std::vector<std::int64_t> values;
        for (std::int64_t l = p_.group_offset[group]; l < p_.group_offset[group + 1]; ++l) {
            values.push_back(value_of(group, l));
        }
        boxes_.load(group);
        write_leaves(group, values);
    }

    void write_join(std::int64_t least) {
        writer_.start();
        for (const Join::Entry& e : join_.entries) {
            writer_.add(join_.values[e.first_value], join_.literals.data() + e.first_literal,
                        join_.literals.data() + e.last_literal);
        }
        writer_.finish(join_.left_out() ? least : kNoFloor);
    }

    // The leaves of one group, whose boxes are loaded, with values of their own; the least one is the floor.
    void write_leaves(std::int32_t group, const std::vector<std::int64_t>& values) {
        const std::int64_t least = *std::min_element(values.begin(), values.end());
        writer_.start();
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (values[i] == least) continue;
            const std::int64_t leaf = p_.group_offset[group] + static_cast<std::int64_t>(i);
            boxes_.of(leaf, [&](const Literal* b, const Literal* e) { writer_.add(values[i], b, e); });
        }
        writer_.finish(least);
    }

    // Points share the leaves that no sensitive feature reaches, and the first of them counts the rows of all. Such a
    // leaf is the same region in the trees of the others: there its value makes the row one of a single tree.
    bool at_home(const std::vector<std::int32_t>& groups) {
        for (const std::int32_t home : groups) {
            std::vector<std::int64_t> values;
            if (gathered(groups, home, values)) {
                write_leaves(home, values);
                return true;
            }
        }
        return false;
    }

    bool gathered(const std::vector<std::int32_t>& groups, std::int32_t home, std::vector<std::int64_t>& values) {
        std::unordered_multimap<std::uint64_t, std::int64_t> by_boxes;
        boxes_.load(home);
        for (std::int64_t l = p_.group_offset[home]; l < p_.group_offset[home + 1]; ++l) {
            values.push_back(value_of(home, l));
            if (groups.size() > 1) by_boxes.emplace(hash(boxes_, l), l);
        }
        for (const std::int32_t g : groups) {
            if (g == home) continue;
            others_.load(g);
            for (std::int64_t l = p_.group_offset[g]; l < p_.group_offset[g + 1]; ++l) {
                const std::int64_t value = value_of(g, l);
                if (value == 0) continue;
                const auto [first, last] = by_boxes.equal_range(hash(others_, l));
                const auto twin = std::find_if(
                    first, last, [&](const auto& e) { return LeafBoxes::same(boxes_, e.second, others_, l); });
                if (twin == last) return false;
                values[static_cast<std::size_t>(twin->second - p_.group_offset[home])] += value;
            }
        }
        return true;
    }

    static std::uint64_t hash(const LeafBoxes& boxes, std::int64_t leaf) {
        std::uint64_t h = 1469598103934665603u;
        const auto mix = [&h](std::int64_t n) { h = (h ^ static_cast<std::uint64_t>(n)) * 1099511628211u; };
        boxes.of(leaf, [&](const Literal* l, const Literal* end) {
            mix(-1);
            for (; l != end; ++l) {
                mix(l->variable);
                mix(l->low);
                mix(l->high);
            }
        });
        return h;
    }

    void charge() {
        const std::int64_t bytes = layer_.bytes();
        budget_.charge(bytes - charged_);
        charged_ = bytes;
    }

    // A unary term is a tree over one variable, whose leaves are runs of cells of one value.
    void write_unary(std::int32_t v) {
        const auto value = [&](Cell k) {
            std::int64_t sum = 0;
            for (const std::int32_t r : layer_.rows) sum += p_.unary_at(r, v, k);
            return sum;
        };
        std::vector<Literal> runs;
        for (Cell from = 0; from < p_.size[v];) {
            Cell to = from;
            while (to + 1 < p_.size[v] && value(to + 1) == value(from)) ++to;
            runs.push_back({v, from, to});
            from = to + 1;
        }
        writer_.start();
        for (const Literal& run : runs) writer_.add(value(run.low), &run, &run + (runs.size() == 1 ? 0 : 1));
        writer_.finish(kNoFloor);
    }

    BoxLayer finished() {
        for (std::int32_t v = 0; v < p_.variables() && p_.has_unary; ++v) write_unary(v);
        charge();
        layer_.range.shrink_to_fit();
        layer_.value.shrink_to_fit();
        return std::move(layer_);
    }

    const Problem& p_;
    const Forest& f_;
    MemoryBudget& budget_;
    BoxLayer layer_;
    const std::vector<RowSum> sums_;
    Join join_;
    FactorWriter writer_;
    LeafBoxes boxes_;
    LeafBoxes others_;
    std::int64_t charged_ = 0;
};

}  // namespace

bool fits_overlap(const Problem& p) {
    return std::all_of(p.size.begin(), p.size.end(), [](std::int32_t n) { return n <= UINT16_MAX; });
}

BoxLayer build_difference_layer(const Problem& p, const Forest& f, const RowSum& rows, MemoryBudget& budget,
                                Control* control) {
    return LayerBuilder(p, f, rows, budget).difference(control);
}

BoxLayer build_row_layer(const Problem& p, const Forest& f, std::int32_t row, MemoryBudget& budget) {
    return LayerBuilder(p, f, {row}, budget).row();
}

}  // namespace treesens
