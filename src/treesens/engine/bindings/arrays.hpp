// Shared by the binding files, which check all data from Python once; code behind them does not check again.
#pragma once

#include <cstdint>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <vector>

#include "ensemble/cell_trees.hpp"

namespace treesens {

template <typename T>
using Vector = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
template <typename T>
using Matrix = nanobind::ndarray<const T, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;
template <typename T>
using MutableMatrix = nanobind::ndarray<T, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;
template <typename T>
using MutableVector = nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

inline void require(bool condition, const char* message) {
    if (!condition) throw nanobind::value_error(message);
}

template <typename T>
std::vector<T> copied(const Vector<T>& array) {
    return std::vector<T>(array.data(), array.data() + array.size());
}

using Ints = Vector<std::int32_t>;

void bind_trees(nanobind::module_& m);
void bind_search(nanobind::module_& m);
void bind_levels(nanobind::module_& m);
void bind_regions(nanobind::module_& m);
void bind_nearest(nanobind::module_& m);
void bind_measure(nanobind::module_& m);
void bind_clauses(nanobind::module_& m);

}  // namespace treesens
