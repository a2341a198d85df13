// Whether one input is concerned: the scores of all choices, exactly, as far as they are needed.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/question.hpp"

namespace treesens::measure {

class PointScores {
public:
    PointScores(const ChoiceTrees& trees, std::vector<Wide> base, const Question& question);

    // Open only where rounded scores leave it open.
    Answer at(const Cell* cells);
    // How much scores lack, added up, for the input to be concerned: 0 if it is, and perhaps if it nearly is.
    double shortfall(const Cell* cells);

private:
    void add_varied(const Cell* cells);
    void score_below(std::int32_t node, const Cell* cells, std::size_t first, std::size_t count);
    void add_plain(const Tree& tree, const Cell* cells);
    double lacking(const std::vector<Row>& rows) const;
    bool too_near() const;
    bool out_of_reach(std::size_t next) const;

    const ChoiceTrees& trees_;
    std::vector<Wide> base_;
    const Question& question_;
    std::int32_t choices_;
    std::vector<const Tree*> varied_;
    std::vector<const Tree*> plain_;  // those with the greatest range first
    std::vector<Wide> most_left_;     // [plain trees + 1][tables]: the most that trees from here on can add
    std::vector<Wide> least_left_;
    std::vector<Wide> scores_;   // [tables][choices]
    std::vector<Wide> moved_;    // [tables]: what plain trees have added
    std::vector<Wide> highest_;  // [tables]: of the choices, without plain trees
    std::vector<Wide> lowest_;
    std::vector<std::int32_t> classes_;
    std::vector<Wide> class_value_;
    std::int32_t most_classes_ = 1;
};

}  // namespace treesens::measure
