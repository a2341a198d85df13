// The cells of every variable that are still possible, one bit each.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "problem/problem.hpp"

namespace treesens {

class Domains {
public:
    Domains() = default;
    // All allowed cells. The word offsets are shared by all copies of one problem.
    explicit Domains(const Problem& problem);

    bool has(std::int32_t v, Cell k) const { return (word(v)[k >> 6] >> (k & 63)) & 1; }
    void remove(std::int32_t v, Cell k) { word(v)[k >> 6] &= ~(std::uint64_t{1} << (k & 63)); }
    // Keeps the cells in [low, high]; true if something was removed.
    bool keep(std::int32_t v, Cell low, Cell high);
    bool any(std::int32_t v, Cell low, Cell high) const;
    bool empty(std::int32_t v) const;
    std::int32_t count(std::int32_t v) const;
    Cell first(std::int32_t v) const;  // -1 when empty
    Cell last(std::int32_t v) const;   // -1 when empty
    // The possible cell nearest to k; the variable must not be empty.
    Cell nearest(std::int32_t v, Cell k) const;
    bool same(const Domains& other, std::int32_t v) const;
    void copy(const Domains& other, std::int32_t v);
    std::int32_t variables() const { return offset_ ? static_cast<std::int32_t>(offset_->size()) - 1 : 0; }
    std::int64_t bytes() const { return static_cast<std::int64_t>(bits_.size() * sizeof(std::uint64_t)); }

private:
    const std::uint64_t* word(std::int32_t v) const { return bits_.data() + (*offset_)[v]; }
    std::uint64_t* word(std::int32_t v) { return bits_.data() + (*offset_)[v]; }
    std::int32_t words(std::int32_t v) const { return (*offset_)[v + 1] - (*offset_)[v]; }

    std::shared_ptr<const std::vector<std::int32_t>> offset_;
    std::vector<std::uint64_t> bits_;
};

}  // namespace treesens
