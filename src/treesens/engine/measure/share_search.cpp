#include "measure/share_search.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace treesens {

namespace {

// Draws that are looked at together.
constexpr std::size_t kDraws = 256;

bool less_needed(const OpenPart& a, const OpenPart& b) {
    return a.need < b.need;
}

// A way along sizes in a row.
struct Place {
    explicit Place(const std::vector<double>& of) : sizes(of) {}
    // Goes on to the size that holds a place; whether it is another one than before.
    bool move_to(double wanted) {
        const std::size_t last = at;
        while (at + 1 < sizes.size() && before + sizes[at] <= wanted) before += sizes[at++];
        const bool moved = fresh || at != last;
        fresh = false;
        return moved;
    }

    const std::vector<double>& sizes;
    std::size_t at = 0;
    double before = 0.0;
    bool fresh = true;
};

double mass_of(const std::vector<OpenPart>& parts) {
    double total = 0.0;
    for (const OpenPart& part : parts) total += part.mass;
    return total;
}

}  // namespace

ShareSearch::ShareSearch(ChoiceTrees trees, std::vector<Wide> base, ShareQuestion question, MeasureData measure)
    : trees_(std::make_unique<ChoiceTrees>(std::move(trees))),
      question_(std::move(question)),
      measure_(std::move(measure)),
      ranges_(*trees_, base, question_.compared, wanted_by(question_)),
      point_(*trees_, std::move(base), question_),
      free_(trees_->features(), 0),
      proposal_(measure_, free_) {
    OpenPart whole;
    for (std::int32_t f = 0; f < trees_->features(); ++f) {
        free_[f] = trees_->is_varied(f) ? 1 : 0;
        whole.box.low.push_back(measure_.first_cell(f));
        whole.box.high.push_back(measure_.last_cell(f));
    }
    whole.mass = measure_.mass(whole.box, free_);
    proposal_.restrict_to({&whole});
    settle(std::move(whole));
}

// Decides a box of known mass, or puts it among the open ones.
void ShareSearch::settle(OpenPart part) {
    if (part.mass == 0.0) return;
    ++nodes_;
    if (never_apart(question_, ranges_.bound_apart(part.box))) return;
    const Ranges& ranges = ranges_.bound_all(part.box);
    ShareAnswer answer = answer_of(question_, *trees_, ranges);
    if (answer == ShareAnswer::kNone) return;
    if (answer == ShareAnswer::kOpen && ranges.settled) {
        answer = answer_at(question_, *trees_, ranges.upper);
        if (answer == ShareAnswer::kNone) return;
        if (answer == ShareAnswer::kOpen) {
            stuck_.push_back(std::move(part));
            return;
        }
    }
    if (answer == ShareAnswer::kAll) {
        part.tilted.clear();
        full_.push_back(std::move(part));
        return;
    }
    part.need = proposal_.rate(part);
    part.cut = choose_cut(part.box, ranges);
    open_mass_ += part.mass;
    open_.push_back(std::move(part));
    std::push_heap(open_.begin(), open_.end(), less_needed);
}

// The cut whose sides come nearest to being excluded, by the mass of each.
ValuedCut ShareSearch::choose_cut(const RangeBox& box, const Ranges& ranges) {
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
        cut_first();
    }
}

// Cuts the box that is needed most.
void ShareSearch::cut_first() {
    fresh_ = false;
    std::pop_heap(open_.begin(), open_.end(), less_needed);
    const OpenPart whole = std::move(open_.back());
    open_.pop_back();
    open_mass_ -= whole.mass;
    OpenPart lower;
    OpenPart upper;
    lower.box = upper.box = whole.box;
    lower.box.high[whole.cut.feature] = whole.cut.cut;
    upper.box.low[whole.cut.feature] = whole.cut.cut + 1;
    for (OpenPart* side : {&lower, &upper}) {
        side->mass = measure_.mass(side->box, free_);
        side->tilted = proposal_.tilted(side->box);
        settle(std::move(*side));
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

std::vector<const OpenPart*> ShareSearch::undecided() const {
    std::vector<const OpenPart*> parts;
    for (const OpenPart& part : open_) parts.push_back(&part);
    for (const OpenPart& part : stuck_) parts.push_back(&part);
    return parts;
}

void ShareSearch::propose(std::vector<Tilt> tilts) {
    proposal_.set(std::move(tilts));
    for (std::vector<OpenPart>* parts : {&open_, &stuck_}) {
        for (OpenPart& part : *parts) part.tilted = proposal_.tilted(part.box);
    }
    fresh_ = false;
    refresh();
}

// Restricts draws to what is open now, and puts what is drawn from most first.
void ShareSearch::refresh() {
    if (fresh_) return;
    fresh_ = true;
    proposal_.restrict_to(undecided());
    for (OpenPart& part : open_) part.need = proposal_.rate(part);
    std::make_heap(open_.begin(), open_.end(), less_needed);
}

double ShareSearch::heaviest() {
    refresh();
    return proposal_.heaviest();
}

// Number i of `count` comes from the i-th part of the rates in a row, each of one size. `take` is told of every block
// of them.
void ShareSearch::draw_open(std::int64_t count, std::mt19937_64& random, const std::function<void()>& take) {
    refresh();
    const std::vector<const OpenPart*> parts = undecided();
    std::vector<double> rates;
    for (const OpenPart* part : parts) rates.push_back(proposal_.rate(*part));
    const double total = std::accumulate(rates.begin(), rates.end(), 0.0);
    const std::size_t width = static_cast<std::size_t>(trees_->features());
    Place place(rates);
    drawn_.clear();
    for (std::int64_t i = 0; i < count && !parts.empty(); ++i) {
        const double wanted = (static_cast<double>(i) + uniform(random)) / static_cast<double>(count) * total;
        if (place.move_to(wanted)) proposal_.enter(*parts[place.at]);
        drawn_.resize(drawn_.size() + width);
        proposal_.draw(random, drawn_.data() + drawn_.size() - width);
        if (drawn_.size() < kDraws * width && i + 1 < count) continue;
        take();
        drawn_.clear();
    }
}

Sampled ShareSearch::sample(std::int64_t count, std::int64_t most_hits, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Sampled found;
    const std::size_t width = static_cast<std::size_t>(trees_->features());
    std::vector<ShareAnswer> answers(kDraws);
    const auto keep = [&](const Cell* cells, double weight) {
        if (static_cast<std::int64_t>(found.concerned.size()) <= most_hits) {
            found.hits.insert(found.hits.end(), cells, cells + width);
            found.hit_weight.push_back(weight);
            return;
        }
        // Every hit has the same chance to be among those that are kept.
        const auto row = static_cast<std::int64_t>(uniform(random) * static_cast<double>(found.concerned.size()));
        if (row >= most_hits) return;
        std::copy_n(cells, width, found.hits.begin() + row * static_cast<std::int64_t>(width));
        found.hit_weight[row] = weight;
    };
    draw_open(count, random, [&] {
        const std::size_t rows = drawn_.size() / width;
        found.drawn += static_cast<std::int64_t>(rows);
        answer(drawn_.data(), rows, answers.data());
        for (std::size_t i = 0; i < rows; ++i) {
            if (answers[i] == ShareAnswer::kNone) continue;
            const Cell* cells = drawn_.data() + i * width;
            const double weight = proposal_.weight(cells) / static_cast<double>(count);
            (answers[i] == ShareAnswer::kAll ? found.concerned : found.maybe).push_back(weight);
            if (answers[i] == ShareAnswer::kAll) keep(cells, weight);
        }
    });
    return found;
}

std::vector<Cell> ShareSearch::draw_full(std::int64_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<double> masses;
    for (const OpenPart& part : full_) masses.push_back(part.mass);
    const double total = mass_of(full_);
    std::vector<Cell> cells(trees_->features());
    std::vector<Cell> drawn;
    Place place(masses);
    for (std::int64_t i = 0; i < count && !full_.empty(); ++i) {
        const double wanted = (static_cast<double>(i) + uniform(random)) / static_cast<double>(count) * total;
        if (place.move_to(wanted)) measure_.mass(full_[place.at].box, free_);
        measure_.draw(full_[place.at].box, free_, random, cells.data());
        drawn.insert(drawn.end(), cells.begin(), cells.end());
    }
    return drawn;
}

std::vector<OpenPart> ShareSearch::largest_full(std::size_t count) const {
    std::vector<OpenPart> found = full_;
    const std::size_t wanted = std::min(count, found.size());
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(wanted), found.end(),
                      [](const OpenPart& a, const OpenPart& b) { return a.mass > b.mass; });
    found.resize(wanted);
    return found;
}

}  // namespace treesens
