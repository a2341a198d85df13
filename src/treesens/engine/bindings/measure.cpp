// treesens._engine.ShareSearch: the affected share of a measure (documented in treesens.extensions.measure.search).
#include <memory>
#include <nanobind/stl/vector.h>

#include "bindings/trees.hpp"
#include "measure/share_search.hpp"
#include "problem/checked.hpp"
#include "problem/score_range.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace treesens {

namespace {

using Longs = Vector<std::int64_t>;

constexpr Wide kMostThreshold = std::int64_t{1} << 62;
constexpr double kMostRatio = 1e100;
constexpr std::size_t kMostChoices = 1 << 16;

Choices choices_of(const Ints& varied, const Matrix<std::int32_t>& choices, const Ints& cell_count) {
    Choices found;
    found.features = copied(varied);
    require(choices.shape(1) == varied.size() && choices.shape(0) >= 1, "choices must be choices x varied features");
    require(choices.shape(0) <= kMostChoices, "there are too many choices");
    found.count = narrow<std::int32_t>(choices.shape(0));
    for (std::size_t i = 0; i < varied.size(); ++i) {
        require(varied(i) >= 0 && static_cast<std::size_t>(varied(i)) < cell_count.size(), "no such varied feature");
        for (std::size_t j = 0; j < i; ++j) require(varied(i) != varied(j), "a varied feature is named twice");
        for (std::size_t s = 0; s < choices.shape(0); ++s) {
            require(choices(s, i) >= 0 && choices(s, i) < cell_count(varied(i)), "a choice is no cell");
        }
    }
    found.cells.assign(choices.data(), choices.data() + choices.size());
    return found;
}

std::vector<ShareRow> rows_of(const Matrix<std::int64_t>& given, std::size_t tables) {
    require(given.shape(1) == 4, "a row is table, sign, possible, certain");
    std::vector<ShareRow> rows;
    for (std::size_t i = 0; i < given.shape(0); ++i) {
        require(given(i, 0) >= 0 && static_cast<std::size_t>(given(i, 0)) < tables, "no such table");
        require(given(i, 1) == 1 || given(i, 1) == -1, "a sign is 1 or -1");
        require(given(i, 2) <= given(i, 3), "what is certain must be possible");
        require(std::abs(given(i, 2)) <= kMostThreshold && std::abs(given(i, 3)) <= kMostThreshold,
                "a threshold is too large");
        rows.push_back({narrow<std::int32_t>(given(i, 0)), narrow<int>(given(i, 1)), given(i, 2), given(i, 3)});
    }
    return rows;
}

void check_values(const Matrix<std::int64_t>& values, const Longs& base, std::int64_t trees) {
    require(sum_to_scores(values.data(), values.size(), trees), "the leaf values sum to no score");
    for (std::size_t i = 0; i < base.size(); ++i) require(is_score(base(i)), "the base is too large");
}

MeasureData measure_of(const Ints& cell_count, const Ints& bin, const Longs& weight, const Ints& parent,
                       const Ints& order, const Vector<double>& table, double most = 1.0) {
    const std::size_t features = cell_count.size();
    require(parent.size() == features && order.size() == features, "the tree of a measure needs every feature");
    MeasureData data;
    data.parent = copied(parent);
    data.order = copied(order);
    std::size_t start = 0;
    for (std::size_t f = 0; f < features; ++f) {
        const std::size_t end = start + static_cast<std::size_t>(cell_count(f));
        require(end <= bin.size() && end <= weight.size(), "a measure needs bin and weight of every cell");
        std::vector<std::int32_t> bins(bin.data() + start, bin.data() + end);
        std::vector<Wide> weights(weight.data() + start, weight.data() + end);
        Wide total = 0;
        for (std::size_t c = 0; c < bins.size(); ++c) {
            require(c == 0 ? bins[c] == 0 : (bins[c] == bins[c - 1] || bins[c] == bins[c - 1] + 1),
                    "bins must be runs of cells");
            require(weights[c] >= 0 && weights[c] <= kMostThreshold - total, "a weight is out of range");
            total += weights[c];
        }
        require(total > 0, "a feature without any weight");
        data.bin.push_back(std::move(bins));
        data.weight.push_back(std::move(weights));
        start = end;
    }
    require(start == bin.size() && start == weight.size(), "too many bins or weights");
    std::vector<std::uint8_t> seen(features, 0);
    for (std::size_t i = 0; i < features; ++i) {
        const std::int32_t f = order(i);
        require(f >= 0 && static_cast<std::size_t>(f) < features && seen[f] == 0, "the order must name features once");
        const std::int32_t p = parent(f);
        require(p < 0 || (static_cast<std::size_t>(p) < features && seen[p] != 0), "parents must come first");
        seen[f] = 1;
    }
    start = 0;
    for (std::size_t f = 0; f < features; ++f) {
        const std::size_t bins = static_cast<std::size_t>(data.bin[f].back()) + 1;
        const std::size_t rows = parent(f) < 0 ? 1 : static_cast<std::size_t>(data.bin[parent(f)].back()) + 1;
        require(start + rows * bins <= table.size(), "a table of a measure is too short");
        data.table.emplace_back(table.data() + start, table.data() + start + rows * bins);
        for (const double p : data.table.back()) require(p >= 0.0 && p <= most, "a probability is out of range");
        start += rows * bins;
    }
    require(start == table.size(), "the tables of a measure are too long");
    return data;
}

void construct(ShareSearch* self, const CheckedTrees& trees, Matrix<std::int64_t> values, Longs base, Ints varied,
               Matrix<std::int32_t> choices, Matrix<std::int64_t> first, Matrix<std::int64_t> second, Ints compared,
               bool apart_counts, Longs apart, Vector<std::uint8_t> allowed, Ints bin, Longs weight, Ints parent,
               Ints order, Vector<double> table) {
    const Ints& cell_count = trees.cell_count();
    require(trees.leaves() <= static_cast<std::int64_t>(values.shape(0)), "a leaf is out of range");
    check_values(values, base, trees.view().trees);
    require(values.shape(1) == base.size() && base.size() >= 1, "every table needs a base");
    const Choices chosen = choices_of(varied, choices, cell_count);
    ShareQuestion question;
    question.first = rows_of(first, base.size());
    question.second = rows_of(second, base.size());
    require(compared.size() == 2 && apart.size() == 2, "two tables and two bounds are compared");
    for (std::size_t i = 0; i < 2; ++i) {
        require(compared(i) >= 0 && static_cast<std::size_t>(compared(i)) < base.size(), "no such table");
        require(std::abs(apart(i)) <= kMostThreshold, "a threshold is too large");
    }
    require(apart(0) <= apart(1), "what is certain must be possible");
    question.compared = {compared(0), compared(1)};
    question.apart_counts = apart_counts;
    question.apart_possible = apart(0);
    question.apart_certain = apart(1);
    question.allowed = copied(allowed);
    const std::size_t count = static_cast<std::size_t>(chosen.count);
    require(allowed.size() == 0 || (count <= static_cast<std::size_t>(kBlocks) && allowed.size() == count * count),
            "pairs of choices are named for few choices only");
    ChoiceTrees built(trees.view(), trees.nodes(), copied(cell_count), {values.data(), values.data() + values.size()},
                      narrow<std::int32_t>(base.size()), chosen);
    new (self) ShareSearch(std::move(built), copied(base), std::move(question),
                           measure_of(cell_count, bin, weight, parent, order, table));
}

nb::dict progress(const ShareSearch& self) {
    const Progress p = self.progress();
    nb::dict found;
    found["nodes"] = p.nodes;
    found["open_boxes"] = p.open_boxes;
    found["full_boxes"] = p.full_boxes;
    found["full"] = p.full;
    found["open"] = p.open;
    found["stuck"] = p.stuck;
    found["relative_error"] = self.relative_error();
    return found;
}

void run(ShareSearch& self, double enough, std::int64_t most_boxes, std::int64_t most_nodes, double seconds) {
    require(most_nodes >= 0, "counts are not negative");
    nb::gil_scoped_release release;
    self.run(enough, most_boxes, most_nodes, seconds);
}

// An array that takes over a vector's memory.
template <typename T>
nb::object owned(std::vector<T> values) {
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    T* const data = kept->data();
    const std::size_t size = kept->size();
    const nb::capsule owner(kept.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
}

nb::tuple sample(ShareSearch& self, std::int64_t count, std::int64_t most_hits, std::uint64_t seed) {
    require(count >= 0 && most_hits >= 0, "counts are not negative");
    Sampled found;
    {
        nb::gil_scoped_release release;
        found = self.sample(count, most_hits, seed);
    }
    return nb::make_tuple(found.drawn, owned(std::move(found.concerned)), owned(std::move(found.maybe)),
                          owned(std::move(found.hits)), owned(std::move(found.hit_weight)));
}

// Tilts of the measure, one after the other: weights of cells and tables of bins, and the ratios of all cells.
void propose(ShareSearch& self, Vector<double> part, Ints cell_count, Ints bin, Matrix<std::int64_t> weight,
             Ints parent, Ints order, Matrix<double> table, Matrix<double> ratio) {
    const std::size_t tilts = part.size();
    require(weight.shape(0) == tilts && table.shape(0) == tilts && ratio.shape(0) == tilts, "tilts disagree");
    require(ratio.shape(1) == weight.shape(1), "every cell needs a ratio");
    std::vector<Tilt> built;
    double parts = 0.0;
    for (std::size_t k = 0; k < tilts; ++k) {
        require(part(k) >= 0.0, "a part is negative");
        parts += part(k);
        const Longs weights(weight.data() + k * weight.shape(1), {weight.shape(1)});
        const Vector<double> tables(table.data() + k * table.shape(1), {table.shape(1)});
        TreeMeasure measure(measure_of(cell_count, bin, weights, parent, order, tables, kMostRatio));
        std::vector<std::vector<double>> ratios;
        const double* next = ratio.data() + k * ratio.shape(1);
        for (std::size_t f = 0; f < cell_count.size(); ++f) {
            ratios.emplace_back(next, next + cell_count(f));
            next += cell_count(f);
        }
        built.push_back({part(k), std::move(measure), std::move(ratios)});
    }
    require(parts < 1.0, "a part of the draws must come from the measure itself");
    nb::gil_scoped_release release;
    self.propose(std::move(built));
}

nb::list largest_full(const ShareSearch& self, std::size_t count) {
    nb::list found;
    for (const OpenPart& part : self.largest_full(count)) {
        found.append(nb::make_tuple(part.box.low, part.box.high, part.mass));
    }
    return found;
}

void check_rows(const ShareSearch& self, const Matrix<std::int32_t>& cells, const Ints& cell_count, std::size_t out) {
    require(static_cast<std::int64_t>(cell_count.size()) == self.features(), "a feature has no number of cells");
    check_cells(cells, cell_count);
    require(out == cells.shape(0), "out must have one entry per row");
}

void answers(ShareSearch& self, Matrix<std::int32_t> cells, Ints cell_count, MutableVector<std::uint8_t> out) {
    check_rows(self, cells, cell_count, out.size());
    nb::gil_scoped_release release;
    std::vector<ShareAnswer> found(cells.shape(0));
    self.answer(cells.data(), found.size(), found.data());
    for (std::size_t r = 0; r < found.size(); ++r) out(r) = static_cast<std::uint8_t>(found[r]);
}

void shortfalls(ShareSearch& self, Matrix<std::int32_t> cells, Ints cell_count, MutableVector<double> out) {
    check_rows(self, cells, cell_count, out.size());
    nb::gil_scoped_release release;
    self.shortfall(cells.data(), cells.shape(0), out.data());
}

double mass(ShareSearch& self, Ints low, Ints high, Ints cell_count) {
    require(static_cast<std::int64_t>(low.size()) == self.features() && high.size() == low.size() &&
                cell_count.size() == low.size(),
            "a box needs every feature");
    for (std::size_t f = 0; f < low.size(); ++f) {
        require(low(f) >= 0 && low(f) <= high(f) && high(f) < cell_count(f), "a box is out of range");
    }
    return self.mass({copied(low), copied(high)});
}

}  // namespace

void bind_measure(nb::module_& m) {
    nb::class_<ShareSearch>(m, "ShareSearch")
        .def("__init__", &construct, nb::kw_only(), "trees"_a, "values"_a, "base"_a, "varied"_a, "choices"_a, "first"_a,
             "second"_a, "compared"_a, "apart_counts"_a, "apart"_a, "allowed"_a, "bin"_a, "weight"_a, "parent"_a,
             "order"_a, "table"_a)
        .def("run", &run, "enough"_a, "most_boxes"_a, "most_nodes"_a, "seconds"_a)
        .def("progress", &progress)
        .def("propose", &propose, "part"_a, "cell_count"_a, "bin"_a, "weight"_a, "parent"_a, "order"_a, "table"_a,
             "ratio"_a)
        .def("heaviest", &ShareSearch::heaviest)
        .def("sample", &sample, "count"_a, "most_hits"_a, "seed"_a)
        .def(
            "draw_full",
            [](ShareSearch& self, std::int64_t count, std::uint64_t seed) { return self.draw_full(count, seed); },
            "count"_a, "seed"_a)
        .def("largest_full", &largest_full, "count"_a)
        .def("answers", &answers, "cells"_a, "cell_count"_a, "out"_a)
        .def("shortfalls", &shortfalls, "cells"_a, "cell_count"_a, "out"_a)
        .def("mass", &mass, "low"_a, "high"_a, "cell_count"_a);
}

}  // namespace treesens
