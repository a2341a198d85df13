// Which inputs are concerned: the scores of all choices, exactly, as far as they are needed, for many inputs at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/packed_trees.hpp"
#include "measure/question.hpp"

namespace treesens {

class PointScores {
public:
    PointScores(const ChoiceTrees& trees, std::vector<Wide> base, const ShareQuestion& question);

    // What each of `count` inputs is, rows [count][features]. Open only where rounded scores leave it open.
    void answer(const Cell* rows, std::size_t count, ShareAnswer* out);
    // How much scores lack, added up, for each input to be concerned: 0 if it is, and perhaps if it nearly is.
    void shortfall(const Cell* rows, std::size_t count, double* out);

private:
    // A tree that choices change.
    struct Varied {
        const ChoiceTree* tree;
        Parted parted;
        std::vector<std::int32_t> choice;  // one of each class
    };
    struct Plain {
        const ChoiceTree* tree;
        PackedWay way;
    };

    void begin(const Cell* rows, std::size_t count);
    void add_varied(const Varied& varied);
    void add_plain(const Plain& plain);
    void answer_block(const Cell* rows, std::size_t count, ShareAnswer* out);
    void shortfall_block(const Cell* rows, std::size_t count, double* out);
    double lacking(const std::vector<ShareRow>& rows, std::size_t i) const;
    bool too_near(std::size_t i) const;
    bool out_of_reach(std::size_t next, std::size_t i) const;
    std::size_t at(std::int32_t table, std::size_t i) const { return static_cast<std::size_t>(table) * block_ + i; }
    Wide* sums(std::int32_t table, std::int32_t choice) {
        return sums_.data() + (static_cast<std::size_t>(table) * choices_ + choice) * block_;
    }

    const ChoiceTrees& trees_;
    std::vector<Wide> base_;
    const ShareQuestion& question_;
    std::int32_t choices_;
    std::size_t width_;
    std::size_t block_;  // inputs at a time
    PackedTrees packed_;
    std::vector<Varied> varied_;
    std::vector<Plain> plain_;     // those with the greatest range first
    std::vector<Wide> most_left_;  // [plain trees + 1][tables]: the most that trees from here on can add
    std::vector<Wide> least_left_;
    std::vector<Cell> cells_;          // [block][features]
    std::vector<std::int32_t> alive_;  // inputs that are not known to be out
    std::vector<Arrival> arrivals_;
    std::vector<std::int32_t> parted_;  // inputs for which choices of a tree may differ
    std::vector<Arrival> parted_at_;
    std::vector<Wide> values_;   // [block]: of a class of choices
    std::vector<Wide> sums_;     // [tables][choices][block]: without plain trees
    std::vector<Wide> moved_;    // [tables][block]: what plain trees have added
    std::vector<Wide> highest_;  // [tables][block]: of the choices, without plain trees
    std::vector<Wide> lowest_;
    std::vector<Wide> scores_;  // [tables][choices] of one input
};

}  // namespace treesens
