// How much of a measure is concerned: branch and bound over boxes of cells, and sampling in what it leaves open.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "measure/point_scores.hpp"
#include "measure/proposal.hpp"
#include "measure/question.hpp"
#include "measure/tree_measure.hpp"

namespace treesens {

// Sums of masses, before anything is rounded outwards.
struct Progress {
    std::int64_t nodes = 0;
    std::int64_t open_boxes = 0;
    std::int64_t full_boxes = 0;
    double full = 0.0;   // of boxes in which every input is concerned
    double open = 0.0;   // of boxes that are not decided
    double stuck = 0.0;  // of those that rounded scores leave open; they count in `open`
};

// A round of draws. Weights are masses: those of all concerned draws together have the concerned mass as expectation.
struct Sampled {
    std::int64_t drawn = 0;
    std::vector<double> concerned;  // weights
    std::vector<double> maybe;      // weights of draws that rounded scores leave open
    std::vector<Cell> hits;         // [rows][features] of concerned inputs, up to a limit
    std::vector<double> hit_weight;
};

class ShareSearch {
public:
    ShareSearch(ChoiceTrees trees, std::vector<Wide> base, ShareQuestion question, MeasureData measure);

    // Goes on until the open mass is at most `enough`, there are `most_boxes` boxes, `most_nodes` more were looked at,
    // or `seconds` are over.
    void run(double enough, std::int64_t most_boxes, std::int64_t most_nodes, double seconds);
    Progress progress() const;
    // Where draws come from and which boxes are cut first, from now on.
    void propose(std::vector<Tilt> tilts);
    // The greatest weight that a draw can have, times the number of draws.
    double heaviest();
    // Draws `count` inputs of the open boxes, one from each of as many strata that expect equally much.
    Sampled sample(std::int64_t count, std::int64_t most_hits, std::uint64_t seed);
    // Draws inputs of full boxes, [rows][features].
    std::vector<Cell> draw_full(std::int64_t count, std::uint64_t seed);
    // The full boxes, the largest mass first.
    std::vector<OpenPart> largest_full(std::size_t count) const;
    // What inputs are, rows [count][features].
    void answer(const Cell* rows, std::size_t count, ShareAnswer* out) { point_.answer(rows, count, out); }
    void shortfall(const Cell* rows, std::size_t count, double* out) { point_.shortfall(rows, count, out); }
    double mass(const RangeBox& box) { return measure_.mass(box, free_); }
    double relative_error() const { return measure_.relative_error(); }
    std::int32_t features() const { return trees_->features(); }

private:
    void settle(OpenPart part);
    void cut_first();
    ValuedCut choose_cut(const RangeBox& box, const Ranges& ranges);
    std::vector<const OpenPart*> undecided() const;
    void refresh();
    void draw_open(std::int64_t count, std::mt19937_64& random, const std::function<void()>& take);

    std::unique_ptr<ChoiceTrees> trees_;
    ShareQuestion question_;
    TreeMeasure measure_;
    BoxRanges ranges_;
    PointScores point_;
    std::vector<double> excess_;
    std::vector<Cell> drawn_;  // [rows][features]: draws that wait to be looked at together
    std::vector<std::uint8_t> free_;
    Proposal proposal_;
    std::vector<OpenPart> open_;  // a heap by need
    std::vector<OpenPart> full_;
    std::vector<OpenPart> stuck_;
    double open_mass_ = 0.0;
    bool fresh_ = false;  // whether draws and needs are those of what is open now
    std::int64_t nodes_ = 0;
};

}  // namespace treesens
