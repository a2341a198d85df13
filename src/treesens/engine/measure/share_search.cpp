#include "measure/share_search.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

namespace treesens::measure {

namespace {

bool lighter(const Part& a, const Part& b) {
    return a.mass < b.mass;
}

double mass_of(const std::vector<Part>& parts) {
    double total = 0.0;
    for (const Part& part : parts) total += part.mass;
    return total;
}

}  // namespace

ShareSearch::ShareSearch(ChoiceTrees trees, std::vector<Wide> base, Question question, MeasureData measure)
    : trees_(std::make_unique<ChoiceTrees>(std::move(trees))),
      question_(std::move(question)),
      measure_(std::move(measure)),
      ranges_(*trees_, base, question_.compared, wanted_by(question_)),
      point_(*trees_, std::move(base), question_),
      free_(trees_->features(), 0) {
    Part whole;
    for (std::int32_t f = 0; f < trees_->features(); ++f) {
        free_[f] = trees_->is_varied(f) ? 1 : 0;
        whole.box.low.push_back(measure_.first_cell(f));
        whole.box.high.push_back(measure_.last_cell(f));
    }
    settle(std::move(whole));
}

// Decides a box, or puts it among the open ones.
void ShareSearch::settle(Part part) {
    part.mass = measure_.mass(part.box, free_);
    if (part.mass == 0.0) return;
    ++nodes_;
    if (never_apart(question_, ranges_.bound_apart(part.box))) return;
    const Ranges& ranges = ranges_.bound_all(part.box);
    Answer answer = answer_of(question_, *trees_, ranges);
    if (answer == Answer::kNone) return;
    if (answer == Answer::kOpen && ranges.settled) {
        answer = answer_at(question_, *trees_, ranges.upper);
        if (answer == Answer::kNone) return;
        if (answer == Answer::kOpen) {
            stuck_.push_back(std::move(part));
            return;
        }
    }
    if (answer == Answer::kAll) {
        full_.push_back(std::move(part));
        return;
    }
    part.cut = choose_cut(part.box, ranges);
    open_mass_ += part.mass;
    open_.push_back(std::move(part));
    std::push_heap(open_.begin(), open_.end(), lighter);
}

// The cut whose sides come nearest to being excluded, by the mass of each.
Cut ShareSearch::choose_cut(const Box& box, const Ranges& ranges) {
    excess_of(question_, trees_->choices(), ranges, excess_);
    const auto share = [&](std::int32_t f, Cell c) { return measure_.share_below(f, box.low[f], box.high[f], c); };
    return ranges_.best_cut(box, excess_, share);
}

void ShareSearch::run(double enough, std::int64_t most_boxes, std::int64_t most_nodes, double seconds) {
    const std::int64_t last = nodes_ + std::min(most_nodes, INT64_MAX - nodes_);
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t step = 1; !open_.empty() && open_mass_ > enough; ++step) {
        if (nodes_ >= last || static_cast<std::int64_t>(open_.size() + full_.size()) >= most_boxes) return;
        if (step % 16 == 0) {
            const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - start;
            if (gone.count() >= seconds) return;
        }
        std::pop_heap(open_.begin(), open_.end(), lighter);
        Part part = std::move(open_.back());
        open_.pop_back();
        open_mass_ -= part.mass;
        Part upper;
        upper.box = part.box;
        upper.box.low[part.cut.feature] = part.cut.cut + 1;
        part.box.high[part.cut.feature] = part.cut.cut;
        settle(std::move(part));
        settle(std::move(upper));
    }
}

Progress ShareSearch::progress() const {
    Progress found;
    found.nodes = nodes_;
    found.open_boxes = static_cast<std::int64_t>(open_.size() + stuck_.size());
    found.full_boxes = static_cast<std::int64_t>(full_.size());
    found.full = mass_of(full_);
    found.stuck = mass_of(stuck_);
    found.open = mass_of(open_) + found.stuck;
    return found;
}

// Number i of `count` comes from the i-th part of the masses in a row, each of one size.
void ShareSearch::draw_from(const std::vector<const Part*>& parts, std::int64_t count, std::mt19937_64& random,
                            const std::function<void(const Cell*)>& take) {
    double total = 0.0;
    for (const Part* part : parts) total += part->mass;
    std::vector<Cell> cells(trees_->features());
    std::size_t at = 0;
    std::size_t ready = SIZE_MAX;
    double before = 0.0;
    for (std::int64_t i = 0; i < count && !parts.empty(); ++i) {
        const double place = (static_cast<double>(i) + uniform(random)) / static_cast<double>(count) * total;
        while (at + 1 < parts.size() && before + parts[at]->mass <= place) before += parts[at++]->mass;
        if (ready != at) measure_.mass(parts[at]->box, free_);
        ready = at;
        measure_.draw(parts[at]->box, free_, random, cells.data());
        take(cells.data());
    }
}

Sampled ShareSearch::sample(std::int64_t count, std::int64_t most_hits, std::uint64_t seed) {
    std::vector<const Part*> parts;
    for (const Part& part : open_) parts.push_back(&part);
    for (const Part& part : stuck_) parts.push_back(&part);
    std::mt19937_64 random(seed);
    Sampled found;
    draw_from(parts, count, random, [&](const Cell* cells) {
        ++found.drawn;
        const Answer answer = at(cells);
        found.concerned += answer == Answer::kAll ? 1 : 0;
        found.maybe += answer == Answer::kOpen ? 1 : 0;
        if (answer != Answer::kAll) return;
        if (found.concerned <= most_hits) {
            found.hits.insert(found.hits.end(), cells, cells + trees_->features());
            return;
        }
        // Every hit has the same chance to be among those that are kept.
        const auto place = static_cast<std::int64_t>(uniform(random) * static_cast<double>(found.concerned));
        if (place < most_hits) std::copy_n(cells, trees_->features(), found.hits.begin() + place * trees_->features());
    });
    return found;
}

std::vector<Cell> ShareSearch::draw_full(std::int64_t count, std::uint64_t seed) {
    std::vector<const Part*> parts;
    for (const Part& part : full_) parts.push_back(&part);
    std::mt19937_64 random(seed);
    std::vector<Cell> drawn;
    draw_from(parts, count, random,
              [&](const Cell* cells) { drawn.insert(drawn.end(), cells, cells + trees_->features()); });
    return drawn;
}

std::vector<Part> ShareSearch::largest_full(std::size_t count) const {
    std::vector<Part> found = full_;
    const std::size_t wanted = std::min(count, found.size());
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(wanted), found.end(),
                      [](const Part& a, const Part& b) { return a.mass > b.mass; });
    found.resize(wanted);
    return found;
}

}  // namespace treesens::measure
