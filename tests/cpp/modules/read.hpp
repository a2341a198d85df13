// A file of problems that write.py has made: the next one, and the problem it stands for.
#pragma once

#include <istream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "problem/checked.hpp"
#include "problem/problem.hpp"

namespace treesens::modules {

using Arrays = std::map<std::string, std::vector<std::int64_t>>;

inline bool read(std::istream& in, Arrays& arrays) {
    arrays.clear();
    for (std::string line; std::getline(in, line) && line != "end";) {
        std::istringstream words(line);
        std::string name;
        std::size_t count = 0;
        words >> name >> count;
        std::vector<std::int64_t>& values = arrays[name];
        values.resize(count);
        for (std::int64_t& value : values) words >> value;
        if (!words) throw std::runtime_error("the file of problems is damaged at " + name);
    }
    return !arrays.empty();
}

template <typename T>
std::vector<T> as(const Arrays& arrays, const std::string& name) {
    std::vector<T> out;
    for (const std::int64_t value : arrays.at(name)) out.push_back(narrow<T>(value));
    return out;
}

inline std::vector<Literal> literals(const Arrays& a, const std::string& of) {
    const auto variable = as<std::int32_t>(a, of + "_variable");
    const auto low = as<Cell>(a, of + "_low");
    const auto high = as<Cell>(a, of + "_high");
    std::vector<Literal> out;
    for (std::size_t i = 0; i < variable.size(); ++i) out.push_back({variable[i], low[i], high[i]});
    return out;
}

inline Problem problem_of(const Arrays& a) {
    Problem p;
    p.size = as<std::int32_t>(a, "size");
    p.feature = as<std::int32_t>(a, "feature");
    p.cell_offset.assign(1, 0);
    for (const std::int32_t n : p.size) p.cell_offset.push_back(p.cell_offset.back() + n);
    p.allowed = as<std::uint8_t>(a, "allowed");
    p.group_tree = as<std::int32_t>(a, "group_tree");
    p.group_offset = a.at("group_offset");
    p.leaf_offset = a.at("leaf_offset");
    p.box_offset = a.at("box_offset");
    p.literals = literals(a, "literal");
    p.coefficient_offset = a.at("coefficient_offset");
    p.coefficient_row = as<std::int32_t>(a, "coefficient_row");
    p.coefficient_value = a.at("coefficient_value");
    p.bound = a.at("bound");
    p.slack_weight = as<std::uint8_t>(a, "slack_weight");
    p.has_objective = a.at("objective")[0] != 0;
    p.constraints = narrow<std::int32_t>(p.bound.size());
    p.rows = p.constraints + (p.has_objective ? 1 : 0);
    if (p.has_objective) p.bound.push_back(0), p.slack_weight.push_back(0);
    const auto& row = a.at("unary_row");
    p.has_unary = !row.empty();
    if (p.has_unary) p.unary.assign(static_cast<std::size_t>(p.rows) * static_cast<std::size_t>(p.cells()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) {
        const auto v = static_cast<std::size_t>(a.at("unary_variable")[i]);
        const std::int64_t at = row[i] * p.cells() + p.cell_offset[v] + a.at("unary_cell")[i];
        p.unary[static_cast<std::size_t>(at)] = a.at("unary_value")[i];
    }
    p.clause_offset = a.at("clause_offset");
    p.clause_literals = literals(a, "clause");
    validate(p);
    return p;
}

}  // namespace treesens::modules
