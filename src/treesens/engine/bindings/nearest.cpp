// The search for the pair nearest to rows of a table, as a class of treesens._engine.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "bindings/trees.hpp"
#include "nearest/greedy_moves.hpp"
#include "nearest/row_groups.hpp"
#include "problem/score_range.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace treesens {

namespace {

// Seven times the limit must fit int64: sums are weighted by up to 3 and 2, and compared with weighted goals.
// Units lost by rounding: about one per tree.
constexpr std::int64_t kMostSlack = std::int64_t{1} << 32;
// Seconds between two calls of `stopped`, and the longest wait.
constexpr double kLookEvery = 0.05;
constexpr double kLongest = 1e9;

// Owns copies of all but the trees, which its constructor keeps alive, so that they can neither change nor be freed.
class NearestPairs {
public:
    NearestPairs(const CheckedTrees& checked, const Vector<std::int64_t>& leaf_value,
                 const Vector<std::uint8_t>& varied, const Vector<std::uint8_t>& legal, const Vector<double>& value_low,
                 const Vector<double>& value_high, const Vector<double>& unit, const Vector<std::uint8_t>& same_or_not,
                 std::int32_t norm, bool has_sides, std::int64_t top, std::int64_t bottom, bool has_swing,
                 std::int64_t swing, std::int64_t slack, const Matrix<double>& values, const Matrix<std::int32_t>& own)
        : leaf_value_(copied(leaf_value)),
          varied_(copied(varied)),
          legal_(copied(legal)),
          same_or_not_(copied(same_or_not)),
          value_low_(copied(value_low)),
          value_high_(copied(value_high)),
          unit_(copied(unit)),
          values_(values.data(), values.data() + values.size()),
          own_(own.data(), own.data() + own.size()) {
        const CellTrees& trees = checked.view();
        checked.check_leaf_values(leaf_value);
        const std::size_t features = static_cast<std::size_t>(checked.features());
        for (std::size_t f = 0; f < features; ++f)
            cell_offset_.push_back(cell_offset_.back() + checked.cell_count()(f));
        const std::size_t cells = static_cast<std::size_t>(cell_offset_.back());
        require(legal.size() == cells && value_low.size() == cells && value_high.size() == cells,
                "cell arrays differ in length");
        require(varied.size() == features && unit.size() == features && same_or_not.size() == features &&
                    values.shape(1) == features && own.shape(1) == features,
                "feature arrays differ in length");
        require(own.shape(0) == values.shape(0), "values and cells differ in their rows");
        require(norm >= 0 && norm <= 3, "no such norm");
        require(has_sides || has_swing, "nothing is asked of a pair");
        require(std::any_of(varied_.begin(), varied_.end(), [](std::uint8_t v) { return v != 0; }),
                "no feature is varied");
        // Weights of sums of scores go up to 3 + 2 (residual_trees.hpp): five times the limit is below 2^63.
        for (const std::int64_t goal : {top, bottom, swing}) require(is_score(goal), "a goal is too large");
        require(slack >= 0 && slack <= kMostSlack, "too much is lost by rounding");
        const CellCosts costs{checked.features(),  cell_offset_.data(), legal_.data(),
                              value_low_.data(),   value_high_.data(),  unit_.data(),
                              same_or_not_.data(), trees.missing_cell,  static_cast<Norm>(norm)};
        const Table table{static_cast<std::int64_t>(values.shape(0)), values_.data(), own_.data()};
        const PairGoal goal{has_sides, top, bottom, has_swing, swing, slack};
        specialiser_ = std::make_unique<TreeSpecialiser>(trees, checked.nodes(), leaf_value_.data(), varied_.data());
        search_ = std::make_unique<PairSearch>(*specialiser_, trees, costs, goal, varied_.data());
        descent_ = std::make_unique<Descent>(trees, leaf_value_.data(), costs, goal, varied_.data());
        groups_ = std::make_unique<RowGroups>(table, costs, varied_.data());
        rows_ = table.rows;
        features_ = features;
    }

    nb::tuple run(const Vector<std::uint8_t>& active, std::int64_t first, double cutoff, std::int64_t boxes,
                  double seconds, const nb::callable& stopped, const MutableVector<std::uint8_t>& closed,
                  const MutableMatrix<std::int32_t>& pair) {
        require(static_cast<std::int64_t>(active.size()) == rows_ && closed.size() == active.size(),
                "active and closed must have one entry per row");
        require(first >= 0 && first <= rows_, "first is out of range");
        return timed(seconds, stopped, pair, *search_, [&](const std::function<bool()>& over) {
            return groups_->pass(*search_, active.data(), first, cutoff, boxes, over, closed.data());
        });
    }

    nb::tuple around(std::int64_t row, double cutoff, std::int64_t boxes, double seconds, const nb::callable& stopped,
                     const MutableMatrix<std::int32_t>& pair) {
        require(row >= 0 && row < rows_, "the row is out of range");
        return timed(seconds, stopped, pair, *search_, [&](const std::function<bool()>& over) {
            return groups_->around(*search_, row, cutoff, boxes, over);
        });
    }

    // Greedy moves around the rows order[first], order[first + 1], ... until one leads to a pair below the cutoff.
    nb::tuple descend(const Vector<std::int64_t>& order, std::int64_t first, double cutoff, double seconds,
                      const nb::callable& stopped, const MutableMatrix<std::int32_t>& pair) {
        const std::int64_t count = static_cast<std::int64_t>(order.size());
        require(first >= 0 && first <= count, "first is out of range");
        for (std::int64_t i = 0; i < count; ++i) require(order(i) >= 0 && order(i) < rows_, "a row is out of range");
        return timed(seconds, stopped, pair, *descent_, [&](const std::function<bool()>& over) {
            RowGroups::Found found{first, -1, 0.0, false};
            while (found.next < count && found.row < 0 && !over()) {
                const std::int64_t row = order(found.next++);
                const RowOutcome outcome = descent_->search(search_->costs_of(groups_->values_of(row)), cutoff, over);
                if (outcome.found) found.row = row, found.cost = outcome.cost;
            }
            return found;
        });
    }

private:
    template <typename Source, typename Work>
    nb::tuple timed(double seconds, const nb::callable& stopped, const MutableMatrix<std::int32_t>& pair,
                    const Source& source, Work work) {
        require(pair.shape(0) == 2 && pair.shape(1) == features_, "pair must be 2 x features");
        using Clock = std::chrono::steady_clock;
        const auto after = [](double s) {
            return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
        };
        const Clock::time_point end = after(std::clamp(seconds, 0.0, kLongest));
        Clock::time_point look = after(kLookEvery);
        bool stop = false;
        const std::function<bool()> over = [&] {
            const Clock::time_point now = Clock::now();
            if (now > look) {
                look = after(kLookEvery);
                nb::gil_scoped_acquire acquire;
                stop = stop || nb::cast<bool>(stopped());
            }
            return stop || now > end;
        };
        RowGroups::Found found;
        {
            nb::gil_scoped_release release;
            found = work(over);
        }
        if (found.row >= 0) {
            std::copy(source.upper().begin(), source.upper().end(), pair.data());
            std::copy(source.lower().begin(), source.lower().end(), pair.data() + features_);
        }
        return nb::make_tuple(found.next, found.row, found.cost, found.closed);
    }

    std::vector<std::int64_t> leaf_value_;
    std::vector<std::int64_t> cell_offset_{0};
    std::vector<std::uint8_t> varied_, legal_, same_or_not_;
    std::vector<double> value_low_, value_high_, unit_, values_;
    std::vector<std::int32_t> own_;
    std::unique_ptr<TreeSpecialiser> specialiser_;
    std::unique_ptr<PairSearch> search_;
    std::unique_ptr<Descent> descent_;
    std::unique_ptr<RowGroups> groups_;
    std::int64_t rows_ = 0;
    std::size_t features_ = 0;
};

}  // namespace

void bind_nearest(nb::module_& m) {
    nb::class_<NearestPairs>(m, "NearestPairs")
        .def(nb::init<const CheckedTrees&, const Vector<std::int64_t>&, const Vector<std::uint8_t>&,
                      const Vector<std::uint8_t>&, const Vector<double>&, const Vector<double>&, const Vector<double>&,
                      const Vector<std::uint8_t>&, std::int32_t, bool, std::int64_t, std::int64_t, bool, std::int64_t,
                      std::int64_t, const Matrix<double>&, const Matrix<std::int32_t>&>(),
             nb::keep_alive<1, 2>(), nb::kw_only(), "trees"_a, "leaf_value"_a, "varied"_a, "legal"_a, "value_low"_a,
             "value_high"_a, "unit"_a, "same_or_not"_a, "norm"_a, "has_sides"_a, "top"_a, "bottom"_a, "has_swing"_a,
             "swing"_a, "slack"_a, "values"_a, "own"_a)
        .def("run", &NearestPairs::run, "active"_a, "first"_a, "cutoff"_a, "boxes"_a, "seconds"_a, "stopped"_a,
             "closed"_a, "pair"_a)
        .def("around", &NearestPairs::around, "row"_a, "cutoff"_a, "boxes"_a, "seconds"_a, "stopped"_a, "pair"_a)
        .def("descend", &NearestPairs::descend, "order"_a, "first"_a, "cutoff"_a, "seconds"_a, "stopped"_a, "pair"_a);
}

}  // namespace treesens
