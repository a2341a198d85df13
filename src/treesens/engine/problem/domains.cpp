#include "problem/domains.hpp"

#include <algorithm>

namespace treesens {

namespace {

// Bits low..high of one word, 0 <= low <= high <= 63.
std::uint64_t mask(int low, int high) {
    const std::uint64_t up_to_high = high == 63 ? ~std::uint64_t{0} : (std::uint64_t{1} << (high + 1)) - 1;
    return up_to_high & (~std::uint64_t{0} << low);
}

int lowest_bit(std::uint64_t word) {
    int bit = 0;
    while (!(word & 0xff)) word >>= 8, bit += 8;
    while (!(word & 1)) word >>= 1, ++bit;
    return bit;
}

int highest_bit(std::uint64_t word) {
    int bit = 63;
    while (!(word >> 56)) word <<= 8, bit -= 8;
    while (!(word >> 63)) word <<= 1, --bit;
    return bit;
}

}  // namespace

Domains::Domains(const Problem& problem) {
    auto offset = std::make_shared<std::vector<std::int32_t>>(1, 0);
    for (std::int32_t n : problem.size) offset->push_back(offset->back() + (n + 63) / 64);
    bits_.assign(offset->back(), 0);
    offset_ = offset;
    for (std::int32_t v = 0; v < problem.variables(); ++v) {
        for (Cell k = 0; k < problem.size[v]; ++k) {
            if (problem.allowed[problem.cell_offset[v] + k]) word(v)[k >> 6] |= std::uint64_t{1} << (k & 63);
        }
    }
}

bool Domains::keep(std::int32_t v, Cell low, Cell high) {
    std::uint64_t* w = word(v);
    std::uint64_t removed = 0;
    for (std::int32_t i = 0; i < words(v); ++i) {
        const Cell from = std::max(low - 64 * i, 0);
        const Cell to = std::min(high - 64 * i, 63);
        const std::uint64_t kept = from <= to ? w[i] & mask(from, to) : 0;
        removed |= w[i] ^ kept;
        w[i] = kept;
    }
    return removed != 0;
}

bool Domains::any(std::int32_t v, Cell low, Cell high) const {
    const std::uint64_t* w = word(v);
    const std::int32_t first_word = low >> 6;
    const std::int32_t last_word = high >> 6;
    for (std::int32_t i = first_word; i <= last_word; ++i) {
        const int from = i == first_word ? low & 63 : 0;
        const int to = i == last_word ? high & 63 : 63;
        if (w[i] & mask(from, to)) return true;
    }
    return false;
}

bool Domains::empty(std::int32_t v) const {
    return std::all_of(word(v), word(v) + words(v), [](std::uint64_t w) { return w == 0; });
}

std::int32_t Domains::count(std::int32_t v) const {
    std::int32_t total = 0;
    for (std::int32_t i = 0; i < words(v); ++i) {
        for (std::uint64_t w = word(v)[i]; w; w &= w - 1) ++total;
    }
    return total;
}

Cell Domains::first(std::int32_t v) const {
    for (std::int32_t i = 0; i < words(v); ++i) {
        if (word(v)[i]) return 64 * i + lowest_bit(word(v)[i]);
    }
    return -1;
}

Cell Domains::last(std::int32_t v) const {
    for (std::int32_t i = words(v) - 1; i >= 0; --i) {
        if (word(v)[i]) return 64 * i + highest_bit(word(v)[i]);
    }
    return -1;
}

Cell Domains::nearest(std::int32_t v, Cell k) const {
    const Cell end = 64 * words(v);
    for (Cell distance = 0; distance < end; ++distance) {
        if (k - distance >= 0 && has(v, k - distance)) return k - distance;
        if (k + distance < end && has(v, k + distance)) return k + distance;
    }
    return -1;
}

bool Domains::same(const Domains& other, std::int32_t v) const {
    return std::equal(word(v), word(v) + words(v), other.word(v));
}

void Domains::copy(const Domains& other, std::int32_t v) {
    std::copy(other.word(v), other.word(v) + words(v), word(v));
}

}  // namespace treesens
