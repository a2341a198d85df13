// The boxes that some point of a box of cells reaches, updated while the box changes in one feature.
#pragma once

#include <cstdint>
#include <vector>

namespace treesens {

// Boxes as literals, at most one per box and feature: the cells low..high of a feature. Literals stand by feature.
struct BoxLiterals {
    std::int64_t boxes = 0;
    std::vector<std::int64_t> feature_offset;  // [features + 1]
    std::vector<std::int32_t> box;             // [literals]
    std::vector<std::int32_t> low;
    std::vector<std::int32_t> high;
    std::vector<std::int32_t> cells;  // [features]
};

class Reached {
public:
    // Initially every box is reached.
    explicit Reached(const BoxLiterals& literals)
        : literals_(literals), failed_(literals.boxes, 0), missed_(literals.box.size(), 0) {}

    bool operator()(std::int64_t box) const { return failed_[box] == 0; }
    // The cells of a feature are now those of `chosen` [cells]; boxes that are reached now, or no longer, are told to
    // `changed(box)`.
    template <typename Changed>
    void set(std::int32_t feature, const std::uint8_t* chosen, Changed changed) {
        const std::int64_t begin = literals_.feature_offset[feature];
        const std::int64_t end = literals_.feature_offset[feature + 1];
        if (begin == end) return;
        count(feature, chosen);
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int32_t low = literals_.low[i];
            const std::int32_t high = literals_.high[i];
            const std::uint8_t misses = high < low || below_[high + 1] == below_[low];
            if (misses == missed_[i]) continue;
            missed_[i] = misses;
            std::int32_t& failed = failed_[literals_.box[i]];
            const bool before = failed == 0;
            failed += misses ? 1 : -1;
            if (before != (failed == 0)) changed(literals_.box[i]);
        }
    }

private:
    void count(std::int32_t feature, const std::uint8_t* chosen) {
        below_.assign(literals_.cells[feature] + 1, 0);
        for (std::int32_t k = 0; k < literals_.cells[feature]; ++k) below_[k + 1] = below_[k] + (chosen[k] != 0);
    }
    const BoxLiterals& literals_;
    std::vector<std::int32_t> failed_;  // [boxes]: literals that no chosen cell meets
    std::vector<std::uint8_t> missed_;  // [literals]
    std::vector<std::int32_t> below_;
};

}  // namespace treesens
