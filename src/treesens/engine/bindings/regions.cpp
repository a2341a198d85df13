// treesens._engine.ValueTrees, RegionGrower: the widened region of a witness (documented in answers/regions.py).
#include <nanobind/stl/vector.h>

#include "bindings/trees.hpp"
#include "problem/checked.hpp"
#include "problem/score_range.hpp"
#include "regions/region_grower.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace treesens {

namespace {

using Bytes = Vector<std::uint8_t>;
using Longs = Vector<std::int64_t>;

// The literals of boxes by feature.
BoxLiterals by_feature(const Longs& offset, const Ints& feature, const Ints& low, const Ints& high, const Ints& cells) {
    BoxLiterals result;
    result.cells = copied(cells);
    require(
        offset.size() > 0 && offset(0) == 0 && offset(offset.size() - 1) == static_cast<std::int64_t>(feature.size()),
        "the offsets of boxes must run from 0 to the number of literals");
    require(feature.size() == low.size() && low.size() == high.size(), "literal arrays differ in length");
    result.boxes = static_cast<std::int64_t>(offset.size()) - 1;
    require(result.boxes < INT32_MAX && feature.size() < INT32_MAX, "there are too many boxes");
    result.feature_offset.assign(cells.size() + 1, 0);
    for (std::size_t i = 0; i < feature.size(); ++i) {
        require(feature(i) >= 0 && static_cast<std::size_t>(feature(i)) < cells.size(), "a feature is out of range");
        const std::int32_t f = feature(i);
        require(low(i) >= 0 && low(i) <= cells(f) && high(i) < cells(f) && high(i) >= -1, "a cell is out of range");
        ++result.feature_offset[f + 1];
    }
    for (std::size_t f = 0; f < cells.size(); ++f) result.feature_offset[f + 1] += result.feature_offset[f];
    std::vector<std::int64_t> next(result.feature_offset.begin(), result.feature_offset.end() - 1);
    result.box.resize(feature.size());
    result.low.resize(feature.size());
    result.high.resize(feature.size());
    for (std::int64_t b = 0; b < result.boxes; ++b) {
        require(offset(b) <= offset(b + 1), "the offsets of boxes must ascend");
        for (std::int64_t i = offset(b); i < offset(b + 1); ++i) {
            const std::int64_t place = next[feature(i)]++;
            result.box[place] = narrow<std::int32_t>(b);
            result.low[place] = low(i);
            result.high[place] = high(i);
        }
    }
    return result;
}

void construct_trees(ValueTrees* self, const CheckedTrees& trees, Longs leaf_value, std::int64_t base,
                     std::int64_t slack) {
    trees.check_leaf_values(leaf_value);
    require(is_score(base) && is_score(slack) && slack >= 0, "the base is too large");
    new (self) ValueTrees(trees.view(), trees.nodes(), leaf_value.data(), copied(trees.cell_count()), base, slack);
}

constexpr std::int64_t kMostWeight = std::int64_t{1} << 60;

std::int64_t weight(nb::handle given) {
    const std::int64_t value = nb::cast<std::int64_t>(given);
    require(value > -kMostWeight && value < kMostWeight, "a weight is too large");
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

RegionTerms::Row row_of(nb::tuple given, const Shape& shape, std::size_t scores) {
    RegionTerms::Row row;
    for (nb::handle item : nb::cast<nb::list>(given[0])) {
        const nb::tuple term = nb::cast<nb::tuple>(item);
        const std::int32_t score = nb::cast<std::int32_t>(term[0]);
        require(score >= 0 && static_cast<std::size_t>(score) < scores, "a score is out of range");
        row.scores.push_back({score, weight(term[1])});
    }
    for (nb::handle item : nb::cast<nb::list>(given[1])) {
        const nb::tuple term = nb::cast<nb::tuple>(item);
        const std::int32_t place = shape.place(term[0]);
        row.costs.push_back({place, weight(term[1]), copied(nb::cast<Longs>(term[2]))});
        require(row.costs.back().of_cell.size() == shape.width(place), "a cost must have one entry per cell");
    }
    require(row.fits(), "the terms of a row are too large");
    // In units of 2^62, and the remainder: 2^124 is never reached, -2^124 always is.
    const std::int64_t high = nb::cast<std::int64_t>(given[2]);
    row.bound = static_cast<__int128>(high) * (std::int64_t{1} << 62) + nb::cast<std::int64_t>(given[3]);
    return row;
}

RegionTerms terms_of(const Shape& shape, std::size_t scores, nb::list rows, nb::list sets, nb::list avoided,
                     const Ints& cells) {
    RegionTerms terms;
    for (nb::handle item : rows) terms.rows.push_back(row_of(nb::cast<nb::tuple>(item), shape, scores));
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
        terms.avoided.push_back({point, by_feature(nb::cast<Longs>(boxes[1]), nb::cast<Ints>(boxes[2]),
                                                   nb::cast<Ints>(boxes[3]), nb::cast<Ints>(boxes[4]), cells)});
    }
    return terms;
}

void construct_grower(RegionGrower* self, nb::list scores, Ints score_point, std::int32_t points, Bytes shared,
                      Bytes ordered, Bytes legal, nb::list rows, nb::list sets, nb::list avoided, Ints cells,
                      Ints missing_cell) {
    std::vector<const ValueTrees*> trees;
    for (nb::handle item : scores) trees.push_back(&nb::cast<const ValueTrees&>(item));
    require(!trees.empty() && trees.size() == score_point.size(), "every score needs a point");
    require(points >= 1 && points <= 1024, "there are too many points");
    const std::vector<std::int32_t> count = copied(cells);
    std::int64_t total = 0;
    for (const std::int32_t n : count) total += n;
    for (std::size_t i = 0; i < trees.size(); ++i) {
        require(trees[i]->cells() == count && trees[i]->missing_cell() == copied(missing_cell),
                "scores over other cells");
        require(score_point(i) >= 0 && score_point(i) < points, "a point is out of range");
    }
    require(shared.size() == count.size() && ordered.size() == count.size(), "one flag per feature is needed");
    require(static_cast<std::int64_t>(legal.size()) == total, "legal must have one entry per cell");
    new (self) RegionGrower(std::move(trees), copied(score_point), points, copied(shared), copied(ordered),
                            copied(legal), terms_of({points, count}, scores.size(), rows, sets, avoided, cells));
}

template <auto grow>
nb::bytes grown(RegionGrower& grower, const Matrix<std::int32_t>& cells) {
    std::vector<std::int32_t> flat(cells.data(), cells.data() + cells.size());
    require(grower.fits(flat, static_cast<std::int64_t>(cells.shape(0))), "the cells do not fit the question");
    std::vector<std::uint8_t> mask;
    {
        nb::gil_scoped_release release;
        mask = (grower.*grow)(flat);
    }
    return nb::bytes(reinterpret_cast<const char*>(mask.data()), mask.size());
}

}  // namespace

void bind_regions(nb::module_& m) {
    nb::class_<ValueTrees>(m, "ValueTrees")
        .def("__init__", &construct_trees, nb::kw_only(), "trees"_a, "leaf_value"_a, "base"_a, "slack"_a);
    nb::class_<RegionGrower>(m, "RegionGrower")
        .def("__init__", &construct_grower, nb::keep_alive<1, 2>(), "scores"_a, "score_point"_a, "points"_a, "shared"_a,
             "ordered"_a, "legal"_a, "rows"_a, "sets"_a, "avoided"_a, "cells"_a, "missing_cell"_a)
        .def("leaf_region", &grown<&RegionGrower::leaf_region>, "cells"_a)
        .def("region", &grown<&RegionGrower::region>, "cells"_a);
}

}  // namespace treesens
