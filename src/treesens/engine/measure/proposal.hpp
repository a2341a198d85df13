// Where draws come from: the measure and tilts of it, each restricted to the boxes that are open.
//
// A tilt multiplies the probability of an input by one number per feature. Its draws fall where concerned inputs are
// dense, and stand for less. Draws of the measure itself are mixed in, so that no draw stands for much (importance
// sampling with a defensive mixture: T. Hesterberg, Technometrics 37, 1995).
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "measure/cut_worth.hpp"
#include "measure/tree_measure.hpp"

namespace treesens {

// A box that is decided, or waits for its cut.
struct OpenPart {
    RangeBox box;
    double mass = 0.0;
    ValuedCut cut;
    std::vector<double> tilted;  // its masses by the tilts
    double need = 0.0;           // the share of draws that fall into it, when it was last asked for
};

// `part` of the draws come from it. `ratio` [features][cells]: the measure times these is `measure`.
struct Tilt {
    double part = 0.0;
    TreeMeasure measure;
    std::vector<std::vector<double>> ratio;
};

class Proposal {
public:
    // `free` features are not tilted, and count with all their cells.
    Proposal(TreeMeasure& measure, const std::vector<std::uint8_t>& free) : measure_(measure), free_(free) {}

    void set(std::vector<Tilt> tilts);
    // The mass of a box by every tilt.
    std::vector<double> tilted(const RangeBox& box);
    // Restricts all draws to these boxes.
    void restrict_to(const std::vector<const OpenPart*>& parts);
    // The share of draws that fall into a box.
    double rate(const OpenPart& part) const;
    // The mass that one draw of an input stands for, times the number of draws; at most `heaviest`.
    double weight(const Cell* cells) const;
    double heaviest() const { return total_ * mass_ / plain_; }
    // Draws come from this box from now on.
    void enter(const OpenPart& part);
    void draw(std::mt19937_64& random, Cell* cells);

private:
    TreeMeasure& measure_;
    const std::vector<std::uint8_t>& free_;
    std::vector<Tilt> tilts_;
    double plain_ = 1.0;  // the part of the measure itself
    double mass_ = 0.0;
    double total_ = 1.0;  // parts of the measure and of the tilts that have any mass in the open boxes
    std::vector<double> tilted_mass_;
    const OpenPart* at_ = nullptr;
    std::vector<double> ends_;  // of the tilts of its box, in a row
    double rate_ = 0.0;         // of its box
    std::vector<std::uint8_t> ready_;
};

}  // namespace treesens
