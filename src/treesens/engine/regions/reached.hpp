// Which of many boxes some point of a box of cells reaches, kept up to date while the box changes in one feature.
#pragma once

#include <cstdint>
#include <vector>

namespace treesens {

// Boxes as literals, at most one per box and feature: the cells low..high of a feature, or those of a mask, and the
// missing cell where flagged. Literals stand by feature.
struct BoxLiterals {
    std::int64_t boxes = 0;
    std::vector<std::int64_t> feature_offset;  // [features + 1]
    std::vector<std::int32_t> box;             // [literals]
    std::vector<std::int32_t> low;
    std::vector<std::int32_t> high;
    std::vector<std::int32_t> mask;  // -1: a run of cells
    std::vector<std::uint8_t> missing;
    std::vector<std::int64_t> mask_offset;
    std::vector<std::uint8_t> mask_member;
    std::vector<std::int32_t> cells;         // [features]
    std::vector<std::int32_t> missing_cell;  // [features], -1 where the feature has none

    std::int32_t features() const { return static_cast<std::int32_t>(cells.size()); }
    bool allows(std::int64_t literal, std::int32_t feature, std::int32_t cell) const {
        if (mask[literal] >= 0) return mask_member[mask_offset[mask[literal]] + cell] != 0;
        if (cell == missing_cell[feature]) return missing[literal] != 0;
        return low[literal] <= cell && cell <= high[literal];
    }
};

class Reached {
public:
    // At first every box is reached.
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
            const std::uint8_t misses = !meets(i, feature, chosen);
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
    bool meets(std::int64_t i, std::int32_t feature, const std::uint8_t* chosen) const {
        const std::int32_t absent = literals_.missing_cell[feature];
        if (literals_.mask[i] < 0) {
            const std::int32_t low = literals_.low[i];
            const std::int32_t high = literals_.high[i];
            if (high >= low && below_[high + 1] > below_[low]) return true;
            return absent >= 0 && chosen[absent] != 0 && literals_.missing[i] != 0;
        }
        const std::uint8_t* member = literals_.mask_member.data() + literals_.mask_offset[literals_.mask[i]];
        for (std::int32_t k = 0; k < literals_.cells[feature]; ++k) {
            if (member[k] && chosen[k]) return true;
        }
        return false;
    }

    const BoxLiterals& literals_;
    std::vector<std::int32_t> failed_;  // [boxes]: literals that no chosen cell meets
    std::vector<std::uint8_t> missed_;  // [literals]
    std::vector<std::int32_t> below_;
};

}  // namespace treesens
