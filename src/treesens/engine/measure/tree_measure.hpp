// A measure over inputs: a tree of pairwise tables over bins of features, and weights of the cells within each bin.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "measure/choice_trees.hpp"

namespace treesens {

// Per feature: `bin` of every cell (bins are runs of cells, in order), whole `weight` of every cell. `order` has
// parents before children, `parent` is -1 at roots. `table` of a feature is P(bin | bin of the parent)
// [bins of the parent][bins], or P(bin) [bins] of a root. Without pairs of features every feature has one bin.
struct MeasureData {
    std::vector<std::vector<std::int32_t>> bin;
    std::vector<std::vector<Wide>> weight;
    std::vector<std::int32_t> parent;
    std::vector<std::int32_t> order;
    std::vector<std::vector<double>> table;
};

// Only sums and products of numbers that are not negative: the relative error of a mass is at most `relative_error`.
class TreeMeasure {
public:
    explicit TreeMeasure(MeasureData data);

    std::int32_t features() const { return static_cast<std::int32_t>(data_.parent.size()); }
    // The mass of a box. Features of which `free` is set count with all their cells.
    double mass(const RangeBox& box, const std::vector<std::uint8_t>& free);
    // How much of a range of cells lies at or below `cut`, by the weights of cells alone.
    double share_below(std::int32_t feature, Cell low, Cell high, Cell cut) const;
    // Draws one input of a box into `cells`, by the measure. The box has to be that of the last call of `mass`.
    void draw(const RangeBox& box, const std::vector<std::uint8_t>& free, std::mt19937_64& random, Cell* cells);
    // The first and the last cell with any weight.
    Cell first_cell(std::int32_t feature) const { return first_[feature]; }
    Cell last_cell(std::int32_t feature) const { return last_[feature]; }
    double relative_error() const { return relative_error_; }

private:
    Wide weight_between(std::int32_t f, Cell low, Cell high) const { return before_[f][high + 1] - before_[f][low]; }

    MeasureData data_;
    std::vector<std::vector<Wide>> before_;     // weight before each cell
    std::vector<std::vector<Cell>> bin_start_;  // first cell of each bin, and the end
    std::vector<Cell> first_;
    std::vector<Cell> last_;
    std::vector<std::vector<double>> inside_;   // per bin: share inside the box times what children say
    std::vector<std::vector<double>> message_;  // to the parent, per bin of the parent
    std::vector<std::int32_t> chosen_;          // bins of the input that is drawn
    std::vector<double> chances_;
    double relative_error_ = 0.0;
};

// A uniform number in [0, 1) with 53 bits.
inline double uniform(std::mt19937_64& random) {
    return static_cast<double>(random() >> 11) * 0x1p-53;
}

}  // namespace treesens
