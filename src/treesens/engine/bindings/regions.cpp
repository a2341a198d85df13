// treesens._engine.LeafRanges, RegionGrower: the widened region of a witness (treesens.data.regions documents them).
#include <nanobind/stl/vector.h>

#include "bindings/arrays.hpp"
#include "problem/checked.hpp"
#include "regions/region_grower.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace treesens {

namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 60;

using Bytes = Vector<std::uint8_t>;
using Longs = Vector<std::int64_t>;

// The literals of boxes by feature; `order` gives the old number of each.
BoxLiterals by_feature(const Longs& offset, const Ints& feature, const Ints& low, const Ints& high,
                       const std::vector<std::uint8_t>& missing, const std::vector<std::int32_t>& mask,
                       const Ints& cells, const Ints& missing_cell) {
    BoxLiterals result;
    result.cells = copied(cells);
    result.missing_cell = copied(missing_cell);
    require(cells.size() == missing_cell.size(), "cells and missing_cell must have one entry per feature");
    require(
        offset.size() > 0 && offset(0) == 0 && offset(offset.size() - 1) == static_cast<std::int64_t>(feature.size()),
        "the offsets of boxes must run from 0 to the number of literals");
    require(feature.size() == low.size() && low.size() == high.size() && high.size() == missing.size() &&
                missing.size() == mask.size(),
            "literal arrays differ in length");
    result.boxes = static_cast<std::int64_t>(offset.size()) - 1;
    require(result.boxes < INT32_MAX && feature.size() < INT32_MAX, "there are too many boxes");
    result.feature_offset.assign(cells.size() + 1, 0);
    for (std::size_t i = 0; i < feature.size(); ++i) {
        require(feature(i) >= 0 && static_cast<std::size_t>(feature(i)) < cells.size(), "a feature is out of range");
        const std::int32_t f = feature(i);
        require(low(i) >= 0 && low(i) <= cells(f) && high(i) < cells(f) && high(i) >= -1, "a cell is out of range");
        ++result.feature_offset[f + 1];
    }
    for (std::size_t f = 0; f < cells.size(); ++f) {
        require(cells(f) > 0 && missing_cell(f) < cells(f), "a feature has no cells");
        result.feature_offset[f + 1] += result.feature_offset[f];
    }
    std::vector<std::int64_t> next(result.feature_offset.begin(), result.feature_offset.end() - 1);
    result.box.resize(feature.size());
    result.low.resize(feature.size());
    result.high.resize(feature.size());
    result.mask.resize(feature.size());
    result.missing.resize(feature.size());
    for (std::int64_t b = 0; b < result.boxes; ++b) {
        require(offset(b) <= offset(b + 1), "the offsets of boxes must ascend");
        for (std::int64_t i = offset(b); i < offset(b + 1); ++i) {
            const std::int64_t place = next[feature(i)]++;
            result.box[place] = narrow<std::int32_t>(b);
            result.low[place] = low(i);
            result.high[place] = high(i);
            result.mask[place] = mask[i];
            result.missing[place] = missing[i];
        }
    }
    return result;
}

void construct_ranges(LeafRanges* self, Longs leaf_offset, Ints feature, Ints low, Ints high, Bytes missing, Ints mask,
                      Longs mask_offset, Bytes mask_member, Ints cells, Ints missing_cell, Longs value, Ints leaf_tree,
                      std::int64_t base, std::int64_t slack) {
    LeafRanges result;
    result.literals = by_feature(leaf_offset, feature, low, high, copied(missing), copied(mask), cells, missing_cell);
    result.literals.mask_offset = copied(mask_offset);
    result.literals.mask_member = copied(mask_member);
    for (std::size_t i = 0; i < mask.size(); ++i) {
        require(mask(i) < 0 || static_cast<std::size_t>(mask(i)) < mask_offset.size(), "a mask is out of range");
        require(mask(i) < 0 || (mask_offset(mask(i)) >= 0 && mask_offset(mask(i)) + cells(feature(i)) <=
                                                                 static_cast<std::int64_t>(mask_member.size())),
                "a mask does not cover its feature");
    }
    require(static_cast<std::int64_t>(value.size()) == result.literals.boxes && value.size() == leaf_tree.size(),
            "every leaf needs a value and a tree");
    result.value = copied(value);
    result.tree = copied(leaf_tree);
    std::int64_t largest = 0;
    for (std::size_t l = 0; l < leaf_tree.size(); ++l) {
        const std::int32_t before = l == 0 ? -1 : leaf_tree(l - 1);
        require(leaf_tree(l) == before || leaf_tree(l) == before + 1, "leaves must stand by tree");
        if (leaf_tree(l) != before) result.first_leaf.push_back(static_cast<std::int64_t>(l));
        require(value(l) > -kMost && value(l) < kMost, "a leaf value is too large");
        largest = std::max(largest, std::abs(value(l)));
    }
    const std::int64_t trees = std::max<std::int64_t>(1, static_cast<std::int64_t>(result.first_leaf.size()));
    result.first_leaf.push_back(static_cast<std::int64_t>(leaf_tree.size()));
    require(largest < 2 * kMost / trees, "the sum of the leaf values is not below 2^61");
    require(base > -kMost && base < kMost && slack >= 0 && slack < kMost, "the base is too large");
    result.base = base;
    result.slack = slack;
    new (self) LeafRanges(std::move(result));
}

std::int64_t weight(nb::handle given) {
    const std::int64_t value = nb::cast<std::int64_t>(given);
    require(value > -kMost && value < kMost, "a weight is too large");
    return value;
}

struct Shape {
    std::int32_t points;
    const std::vector<std::int32_t>& cells;

    std::int32_t place(nb::handle given) const {
        const std::int32_t value = nb::cast<std::int32_t>(given);
        require(value >= 0 && value < points * narrow<std::int32_t>(cells.size()), "a place is out of range");
        return value;
    }
    std::size_t width(std::int32_t place) const { return cells[place % cells.size()]; }
};

RegionTerms::Row row_of(nb::tuple given, const Shape& shape, std::size_t ranges) {
    RegionTerms::Row row;
    for (nb::handle item : nb::cast<nb::list>(given[0])) {
        const nb::tuple term = nb::cast<nb::tuple>(item);
        const std::int32_t range = nb::cast<std::int32_t>(term[0]);
        require(range >= 0 && static_cast<std::size_t>(range) < ranges, "a range is out of range");
        row.scores.push_back({range, weight(term[1])});
    }
    for (nb::handle item : nb::cast<nb::list>(given[1])) {
        const nb::tuple term = nb::cast<nb::tuple>(item);
        const std::int32_t place = shape.place(term[0]);
        row.costs.push_back({place, weight(term[1]), copied(nb::cast<Longs>(term[2]))});
        require(row.costs.back().of_cell.size() == shape.width(place), "a cost must have one entry per cell");
    }
    require(row.scores.size() + row.costs.size() < 16, "a row has too many terms");
    // In units of 2^62, and the rest: what is beyond 2^126 is never, or always, reached.
    const std::int64_t high = nb::cast<std::int64_t>(given[2]);
    row.bound = static_cast<__int128>(high) * (std::int64_t{1} << 62) + nb::cast<std::int64_t>(given[3]);
    return row;
}

RegionTerms terms_of(const Shape& shape, std::size_t ranges, nb::list rows, nb::list sets, nb::list avoided,
                     const Ints& cells, const Ints& missing_cell) {
    RegionTerms terms;
    for (nb::handle item : rows) terms.rows.push_back(row_of(nb::cast<nb::tuple>(item), shape, ranges));
    for (nb::handle choice : sets) {
        terms.sets.emplace_back();
        for (nb::handle item : nb::cast<nb::list>(choice)) {
            const nb::tuple set = nb::cast<nb::tuple>(item);
            const std::int32_t place = shape.place(set[0]);
            terms.sets.back().push_back({place, copied(nb::cast<Bytes>(set[1]))});
            require(terms.sets.back().back().member.size() == shape.width(place), "a set must have one entry per cell");
        }
    }
    for (nb::handle item : avoided) {
        const nb::tuple boxes = nb::cast<nb::tuple>(item);
        const std::int32_t point = nb::cast<std::int32_t>(boxes[0]);
        require(point >= 0 && point < shape.points, "a point is out of range");
        const Ints feature = nb::cast<Ints>(boxes[2]);
        terms.avoided.push_back(
            {point, by_feature(nb::cast<Longs>(boxes[1]), feature, nb::cast<Ints>(boxes[3]), nb::cast<Ints>(boxes[4]),
                               std::vector<std::uint8_t>(feature.size(), 0),
                               std::vector<std::int32_t>(feature.size(), -1), cells, missing_cell)});
    }
    return terms;
}

void construct_grower(RegionGrower* self, nb::list ranges, Ints range_point, std::int32_t points, Bytes shared,
                      Bytes ordered, Bytes legal, nb::list rows, nb::list sets, nb::list avoided, Ints cells,
                      Ints missing_cell) {
    std::vector<const LeafRanges*> leaves;
    for (nb::handle item : ranges) leaves.push_back(&nb::cast<const LeafRanges&>(item));
    require(!leaves.empty() && leaves.size() == range_point.size(), "every range needs a point");
    require(points >= 1 && points <= 1024, "there are too many points");
    const std::vector<std::int32_t> count = copied(cells);
    std::int64_t total = 0;
    for (const std::int32_t n : count) total += n;
    for (std::size_t r = 0; r < leaves.size(); ++r) {
        require(leaves[r]->literals.cells == count && leaves[r]->literals.missing_cell == copied(missing_cell),
                "ranges over other cells");
        require(range_point(r) >= 0 && range_point(r) < points, "a point is out of range");
    }
    require(shared.size() == count.size() && ordered.size() == count.size(), "one flag per feature is needed");
    require(static_cast<std::int64_t>(legal.size()) == total, "legal must have one entry per cell");
    new (self)
        RegionGrower(std::move(leaves), copied(range_point), points, copied(shared), copied(ordered), copied(legal),
                     terms_of({points, count}, ranges.size(), rows, sets, avoided, cells, missing_cell));
}

template <typename Grow>
std::vector<std::uint8_t> grown(RegionGrower& grower, const Matrix<std::int32_t>& cells, Grow grow) {
    std::vector<std::int32_t> flat(cells.data(), cells.data() + cells.size());
    require(grower.fits(flat, static_cast<std::int64_t>(cells.shape(0))), "the cells do not fit the question");
    nb::gil_scoped_release release;
    return grow(grower, flat);
}

nb::object as_bytes(const std::vector<std::uint8_t>& mask) {
    return nb::bytes(reinterpret_cast<const char*>(mask.data()), mask.size());
}

}  // namespace

void bind_regions(nb::module_& m) {
    nb::class_<LeafRanges>(m, "LeafRanges")
        .def("__init__", &construct_ranges, "leaf_offset"_a, "feature"_a, "low"_a, "high"_a, "missing"_a, "mask"_a,
             "mask_offset"_a, "mask_member"_a, "cells"_a, "missing_cell"_a, "value"_a, "leaf_tree"_a, "base"_a,
             "slack"_a);
    nb::class_<RegionGrower>(m, "RegionGrower")
        .def("__init__", &construct_grower, nb::keep_alive<1, 2>(), "ranges"_a, "range_point"_a, "points"_a, "shared"_a,
             "ordered"_a, "legal"_a, "rows"_a, "sets"_a, "avoided"_a, "cells"_a, "missing_cell"_a)
        .def(
            "leaf_region",
            [](RegionGrower& g, Matrix<std::int32_t> cells) {
                return as_bytes(grown(g, cells, [](RegionGrower& one, const auto& x) { return one.leaf_region(x); }));
            },
            "cells"_a)
        .def(
            "region",
            [](RegionGrower& g, Matrix<std::int32_t> cells) {
                return as_bytes(grown(g, cells, [](RegionGrower& one, const auto& x) { return one.region(x); }));
            },
            "cells"_a);
}

}  // namespace treesens
