#include "measure/point_scores.hpp"

#include <algorithm>
#include <numeric>

namespace treesens {

namespace {

// Plain trees between two looks at what is still in reach.
constexpr std::size_t kLook = 12;
// Inputs of a block, and sums of a block, which are to stay in a cache near by.
constexpr std::size_t kMostInputs = 128;
constexpr std::size_t kFewestInputs = 8;
constexpr std::size_t kSums = 16'384;

struct Extremes {
    Wide least;
    Wide most;
};

Extremes extremes(const ChoiceTrees& trees, std::int32_t root, std::int32_t table) {
    const ChoiceNode& node = trees.node(root);
    if (node.feature < 0) return {trees.value(node.leaf, table), trees.value(node.leaf, table)};
    const Extremes left = extremes(trees, node.left, table);
    const Extremes right = extremes(trees, node.right, table);
    return {std::min(left.least, right.least), std::max(left.most, right.most)};
}

// One choice of each class.
std::vector<std::int32_t> choice_of_classes(const ChoiceTree& tree) {
    std::vector<std::int32_t> found(tree.classes);
    for (const ClassRun& run : tree.runs) found[run.of_class] = run.start;
    return found;
}

}  // namespace

PointScores::PointScores(const ChoiceTrees& trees, std::vector<Wide> base, const ShareQuestion& question)
    : trees_(trees),
      base_(std::move(base)),
      question_(question),
      choices_(trees.choices()),
      width_(trees.cells().size()),
      packed_(trees) {
    const std::int32_t tables = trees.tables();
    for (const ChoiceTree& tree : trees.trees()) {
        if (tree.tables.empty()) continue;
        const PackedWay way = packed_.pack(tree.root);
        if (tree.varied)
            varied_.push_back({&tree, packed_.part(way), choice_of_classes(tree)});
        else
            plain_.push_back({&tree, way});
    }
    const auto range = [&](const Plain& plain) {
        const Extremes e = extremes(trees, plain.tree->root, question.compared.high);
        return e.most - e.least;
    };
    std::stable_sort(plain_.begin(), plain_.end(), [&](const Plain& a, const Plain& b) { return range(a) > range(b); });
    most_left_.assign((plain_.size() + 1) * tables, 0);
    least_left_.assign((plain_.size() + 1) * tables, 0);
    for (std::size_t i = plain_.size(); i-- > 0;) {
        for (std::int32_t t = 0; t < tables; ++t) {
            const Extremes e = extremes(trees, plain_[i].tree->root, t);
            most_left_[i * tables + t] = most_left_[(i + 1) * tables + t] + e.most;
            least_left_[i * tables + t] = least_left_[(i + 1) * tables + t] + e.least;
        }
    }
    const std::size_t wide = static_cast<std::size_t>(tables) * choices_;
    block_ = std::clamp(kSums / wide, kFewestInputs, kMostInputs);
    cells_.resize(block_ * width_);
    values_.resize(block_);
    sums_.resize(wide * block_);
    moved_.resize(tables * block_);
    highest_.resize(tables * block_);
    lowest_.resize(tables * block_);
    scores_.resize(wide);
}

void PointScores::answer(const Cell* rows, std::size_t count, ShareAnswer* out) {
    for (std::size_t i = 0; i < count; i += block_) {
        answer_block(rows + i * width_, std::min(block_, count - i), out + i);
    }
}

void PointScores::answer_block(const Cell* rows, std::size_t count, ShareAnswer* out) {
    begin(rows, count);
    std::fill_n(out, count, ShareAnswer::kNone);
    const auto drop = [&](const auto& is_out) {
        alive_.erase(std::remove_if(alive_.begin(), alive_.end(), is_out), alive_.end());
    };
    drop([&](std::int32_t i) { return too_near(i); });
    for (std::size_t next = 0; next < plain_.size() && !alive_.empty(); ++next) {
        if (next % kLook == 0) drop([&](std::int32_t i) { return out_of_reach(next, i); });
        add_plain(plain_[next]);
    }
    drop([&](std::int32_t i) { return out_of_reach(plain_.size(), i); });
    for (const std::int32_t i : alive_) {
        for (std::int32_t t = 0; t < trees_.tables(); ++t) {
            Wide* scores = scores_.data() + static_cast<std::size_t>(t) * choices_;
            for (std::int32_t s = 0; s < choices_; ++s) scores[s] = sums(t, s)[i] + moved_[at(t, i)];
        }
        out[i] = answer_at(question_, trees_, scores_);
    }
}

void PointScores::shortfall(const Cell* rows, std::size_t count, double* out) {
    for (std::size_t i = 0; i < count; i += block_) {
        shortfall_block(rows + i * width_, std::min(block_, count - i), out + i);
    }
}

void PointScores::shortfall_block(const Cell* rows, std::size_t count, double* out) {
    begin(rows, count);
    for (const Plain& plain : plain_) add_plain(plain);
    const std::int32_t high = question_.compared.high;
    const std::int32_t low = question_.compared.low;
    for (std::size_t i = 0; i < count; ++i) {
        const Wide apart = highest_[at(high, i)] + moved_[at(high, i)] - lowest_[at(low, i)] - moved_[at(low, i)];
        const double near = static_cast<double>(question_.apart_possible) - static_cast<double>(apart);
        out[i] = std::max(0.0, near) + lacking(question_.first, i) + lacking(question_.second, i);
    }
}

// What the rows of a side lack at best, each by itself.
double PointScores::lacking(const std::vector<ShareRow>& rows, std::size_t i) const {
    double sum = 0.0;
    for (const ShareRow& row : rows) {
        const std::size_t place = at(row.table, i);
        const Wide most = row.sign > 0 ? highest_[place] + moved_[place] : -lowest_[place] - moved_[place];
        sum += std::max(0.0, static_cast<double>(row.possible) - static_cast<double>(most));
    }
    return sum;
}

// Scores of the inputs without the trees that no choice changes.
void PointScores::begin(const Cell* rows, std::size_t count) {
    std::copy_n(rows, count * width_, cells_.begin());
    alive_.resize(count);
    std::iota(alive_.begin(), alive_.end(), 0);
    std::fill(sums_.begin(), sums_.end(), 0);
    std::fill(moved_.begin(), moved_.end(), 0);
    for (const Varied& varied : varied_) add_varied(varied);
    for (std::int32_t t = 0; t < trees_.tables(); ++t) {
        Wide* highest = highest_.data() + at(t, 0);
        Wide* lowest = lowest_.data() + at(t, 0);
        Wide* before = sums(t, 0);
        for (std::size_t i = 0; i < count; ++i) before[i] += base_[t];
        std::copy_n(before, count, highest);
        std::copy_n(before, count, lowest);
        for (std::int32_t s = 1; s < choices_; ++s) {
            Wide* now = sums(t, s);
            for (std::size_t i = 0; i < count; ++i) {
                now[i] += before[i];
                highest[i] = std::max(highest[i], now[i]);
                lowest[i] = std::min(lowest[i], now[i]);
            }
            before = now;
        }
    }
}

// Adds what a tree is from each choice on, less what it was before it.
void PointScores::add_varied(const Varied& varied) {
    const Choices& choices = trees_.varied();
    const std::size_t varying = choices.features.size();
    const ChoiceTree& tree = *varied.tree;
    packed_.descend(varied.parted.until, cells_.data(), width_, alive_, arrivals_);
    parted_.clear();
    parted_at_.clear();
    for (std::size_t i = 0; i < alive_.size(); ++i) {
        if (arrivals_[i] >= 0) {
            for (const std::int32_t t : tree.tables) sums(t, 0)[alive_[i]] += trees_.value(arrivals_[i], t);
            continue;
        }
        parted_.push_back(alive_[i]);
        parted_at_.push_back(arrivals_[i]);
    }
    for (std::int32_t k = 0; k < tree.classes && !parted_.empty(); ++k) {
        const Cell* cells = choices.cells.data() + static_cast<std::size_t>(varied.choice[k]) * varying;
        for (const std::int32_t i : parted_) {
            for (std::size_t j = 0; j < varying; ++j) cells_[i * width_ + choices.features[j]] = cells[j];
        }
        packed_.go_on(varied.parted.rest, cells_.data(), width_, parted_, parted_at_, arrivals_);
        for (const std::int32_t t : tree.tables) {
            for (std::size_t i = 0; i < parted_.size(); ++i) values_[i] = trees_.value(arrivals_[i], t);
            for (std::size_t r = 0; r < tree.runs.size(); ++r) {
                if (tree.runs[r].of_class != k) continue;
                Wide* from = sums(t, tree.runs[r].start);
                for (std::size_t i = 0; i < parted_.size(); ++i) from[parted_[i]] += values_[i];
                if (r + 1 == tree.runs.size()) continue;
                Wide* to = sums(t, tree.runs[r + 1].start);
                for (std::size_t i = 0; i < parted_.size(); ++i) to[parted_[i]] -= values_[i];
            }
        }
    }
}

void PointScores::add_plain(const Plain& plain) {
    packed_.descend(plain.way, cells_.data(), width_, alive_, arrivals_);
    for (const std::int32_t t : plain.tree->tables) {
        Wide* moved = moved_.data() + at(t, 0);
        for (std::size_t i = 0; i < alive_.size(); ++i) moved[alive_[i]] += trees_.value(arrivals_[i], t);
    }
}

// Whether no two choices are as far apart as they must be, whatever the other trees add to both.
bool PointScores::too_near(std::size_t i) const {
    const std::int32_t t = question_.compared.high;
    return t == question_.compared.low && highest_[at(t, i)] - lowest_[at(t, i)] < question_.apart_possible;
}

// Whether a row fails for every choice, whatever trees from `next` on add.
bool PointScores::out_of_reach(std::size_t next, std::size_t i) const {
    const std::size_t tables = static_cast<std::size_t>(trees_.tables());
    const auto fails = [&](const ShareRow& row) {
        const std::size_t place = at(row.table, i);
        const std::size_t left = next * tables + static_cast<std::size_t>(row.table);
        const Wide most = row.sign > 0 ? highest_[place] + moved_[place] + most_left_[left]
                                       : -(lowest_[place] + moved_[place] + least_left_[left]);
        return most < row.possible;
    };
    return std::any_of(question_.first.begin(), question_.first.end(), fails) ||
           std::any_of(question_.second.begin(), question_.second.end(), fails);
}

}  // namespace treesens
