#include "measure/tree_measure.hpp"

#include <algorithm>

#include "problem/checked.hpp"

namespace treesens {

namespace {

// A uniform whole number below `bound` (at least 1), without bias.
Wide below(std::mt19937_64& random, Wide bound) {
    const std::uint64_t n = static_cast<std::uint64_t>(bound);
    const std::uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    while (true) {
        const std::uint64_t r = random();
        if (r < limit) return static_cast<Wide>(r % n);
    }
}

// The place of a choice with these weights.
std::size_t pick(const double* weights, std::size_t count, std::mt19937_64& random) {
    double total = 0.0;
    for (std::size_t i = 0; i < count; ++i) total += weights[i];
    double left = uniform(random) * total;
    std::size_t last = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (weights[i] <= 0.0) continue;
        last = i;
        if (left < weights[i]) return i;
        left -= weights[i];
    }
    return last;
}

}  // namespace

TreeMeasure::TreeMeasure(MeasureData data) : data_(std::move(data)) {
    std::size_t roundings = 8;
    for (std::size_t f = 0; f < data_.weight.size(); ++f) {
        const std::vector<Wide>& weight = data_.weight[f];
        std::vector<Wide> before(weight.size() + 1, 0);
        for (std::size_t c = 0; c < weight.size(); ++c) before[c + 1] = before[c] + weight[c];
        Cell first = 0;
        Cell last = narrow<Cell>(weight.size()) - 1;
        while (first < last && weight[first] == 0) ++first;
        while (last > first && weight[last] == 0) --last;
        first_.push_back(first);
        last_.push_back(last);
        before_.push_back(std::move(before));
        std::vector<Cell> start{0};
        for (std::size_t c = 1; c < weight.size(); ++c) {
            if (data_.bin[f][c] != data_.bin[f][c - 1]) start.push_back(narrow<Cell>(c));
        }
        const std::size_t bins = start.size();
        start.push_back(narrow<Cell>(weight.size()));
        bin_start_.push_back(std::move(start));
        inside_.emplace_back(bins, 0.0);
        message_.emplace_back();
        chosen_.push_back(0);
        roundings += bins + 6;
    }
    for (std::size_t f = 0; f < data_.parent.size(); ++f) {
        if (data_.parent[f] >= 0) message_[f].resize(inside_[data_.parent[f]].size());
    }
    relative_error_ = static_cast<double>(roundings) * 0x1p-52;
}

double TreeMeasure::mass(const RangeBox& box, const std::vector<std::uint8_t>& free) {
    for (std::size_t f = 0; f < inside_.size(); ++f) {
        const std::vector<Cell>& start = bin_start_[f];
        for (std::size_t b = 0; b < inside_[f].size(); ++b) {
            double share = 1.0;
            if (free[f] == 0) {
                const Cell low = std::max(box.low[f], start[b]);
                const Cell high = std::min(box.high[f], start[b + 1] - 1);
                const Wide all = weight_between(static_cast<std::int32_t>(f), start[b], start[b + 1] - 1);
                const Wide part = low <= high ? weight_between(static_cast<std::int32_t>(f), low, high) : 0;
                share = part == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
            }
            inside_[f][b] = share;
        }
    }
    double total = 1.0;
    for (auto at = data_.order.rbegin(); at != data_.order.rend(); ++at) {
        const std::int32_t f = *at;
        const std::size_t bins = inside_[f].size();
        const std::int32_t parent = data_.parent[f];
        const std::size_t rows = parent < 0 ? 1 : inside_[parent].size();
        for (std::size_t p = 0; p < rows; ++p) {
            const double* table = data_.table[f].data() + p * bins;
            double sum = 0.0;
            for (std::size_t b = 0; b < bins; ++b) sum += table[b] * inside_[f][b];
            if (parent < 0) {
                total *= sum;
            } else {
                message_[f][p] = sum;
                inside_[parent][p] *= sum;
            }
        }
    }
    return total;
}

double TreeMeasure::share_below(std::int32_t f, Cell low, Cell high, Cell cut) const {
    const Wide all = weight_between(f, low, high);
    return all == 0 ? 0.5 : static_cast<double>(weight_between(f, low, cut)) / static_cast<double>(all);
}

void TreeMeasure::draw(const RangeBox& box, const std::vector<std::uint8_t>& free, std::mt19937_64& random,
                       Cell* cells) {
    for (const std::int32_t f : data_.order) {
        const std::size_t bins = inside_[f].size();
        const std::int32_t parent = data_.parent[f];
        const std::size_t row = parent < 0 ? 0 : static_cast<std::size_t>(chosen_[parent]);
        std::size_t b = 0;
        if (bins > 1) {
            chances_.resize(bins);
            for (std::size_t i = 0; i < bins; ++i) chances_[i] = data_.table[f][row * bins + i] * inside_[f][i];
            b = pick(chances_.data(), bins, random);
        }
        chosen_[f] = narrow<std::int32_t>(b);
        Cell low = bin_start_[f][b];
        Cell high = bin_start_[f][b + 1] - 1;
        if (free[f] == 0) {
            low = std::max(low, box.low[f]);
            high = std::min(high, box.high[f]);
        }
        if (low >= high) {
            cells[f] = low;
            continue;
        }
        const Wide target = before_[f][low] + below(random, std::max<Wide>(1, weight_between(f, low, high)));
        const auto after = std::upper_bound(before_[f].begin() + low, before_[f].begin() + high + 1, target);
        cells[f] = static_cast<Cell>(after - before_[f].begin()) - 1;
    }
}

}  // namespace treesens
