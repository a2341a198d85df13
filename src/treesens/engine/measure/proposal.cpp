#include "measure/proposal.hpp"

#include <algorithm>

namespace treesens {

void Proposal::set(std::vector<Tilt> tilts) {
    tilts_ = std::move(tilts);
    plain_ = 1.0;
    for (const Tilt& tilt : tilts_) plain_ -= tilt.part;
}

std::vector<double> Proposal::tilted(const RangeBox& box) {
    std::vector<double> found;
    for (Tilt& tilt : tilts_) found.push_back(tilt.measure.mass(box, free_));
    return found;
}

void Proposal::restrict_to(const std::vector<const OpenPart*>& parts) {
    mass_ = 0.0;
    tilted_mass_.assign(tilts_.size(), 0.0);
    for (const OpenPart* part : parts) {
        mass_ += part->mass;
        for (std::size_t k = 0; k < tilts_.size(); ++k) tilted_mass_[k] += part->tilted[k];
    }
    total_ = plain_;
    for (std::size_t k = 0; k < tilts_.size(); ++k) total_ += tilted_mass_[k] > 0.0 ? tilts_[k].part : 0.0;
}

double Proposal::rate(const OpenPart& part) const {
    double rate = mass_ > 0.0 ? plain_ * part.mass / mass_ : 0.0;
    for (std::size_t k = 0; k < tilts_.size(); ++k) {
        if (tilted_mass_[k] > 0.0) rate += tilts_[k].part * part.tilted[k] / tilted_mass_[k];
    }
    return rate;
}

double Proposal::weight(const Cell* cells) const {
    double density = plain_ / mass_;
    for (std::size_t k = 0; k < tilts_.size(); ++k) {
        if (tilted_mass_[k] <= 0.0) continue;
        double ratio = tilts_[k].part / tilted_mass_[k];
        for (std::size_t f = 0; f < free_.size(); ++f) {
            if (free_[f] == 0) ratio *= tilts_[k].ratio[f][cells[f]];
        }
        density += ratio;
    }
    return total_ / density;
}

void Proposal::enter(const OpenPart& part) {
    at_ = &part;
    ready_.assign(tilts_.size() + 1, 0);
    ends_.clear();
    double end = 0.0;
    for (std::size_t k = 0; k < tilts_.size(); ++k) {
        if (tilted_mass_[k] > 0.0) end += tilts_[k].part * part.tilted[k] / tilted_mass_[k];
        ends_.push_back(end);
    }
    rate_ = rate(part);
}

void Proposal::draw(std::mt19937_64& random, Cell* cells) {
    const double left = tilts_.empty() ? 0.0 : uniform(random) * rate_;
    // Past the end of the last tilt draws come from the measure itself.
    const std::size_t from =
        static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), left) - ends_.begin());
    TreeMeasure& measure = from < tilts_.size() ? tilts_[from].measure : measure_;
    if (ready_[from] == 0) measure.mass(at_->box, free_);
    ready_[from] = 1;
    measure.draw(at_->box, free_, random, cells);
}

}  // namespace treesens
