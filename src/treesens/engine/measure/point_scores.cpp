#include "measure/point_scores.hpp"

#include <algorithm>

namespace treesens::measure {

namespace {

// Plain trees between two looks at what is still in reach.
constexpr std::size_t kLook = 12;

struct Extremes {
    Wide least;
    Wide most;
};

Extremes extremes(const ChoiceTrees& trees, std::int32_t root, std::int32_t table) {
    const Node& node = trees.node(root);
    if (node.feature < 0) return {trees.value(node.leaf, table), trees.value(node.leaf, table)};
    const Extremes left = extremes(trees, node.left, table);
    const Extremes right = extremes(trees, node.right, table);
    return {std::min(left.least, right.least), std::max(left.most, right.most)};
}

}  // namespace

PointScores::PointScores(const ChoiceTrees& trees, std::vector<Wide> base, const Question& question)
    : trees_(trees), base_(std::move(base)), question_(question), choices_(trees.choices()) {
    const std::int32_t tables = trees.tables();
    for (const Tree& tree : trees.trees()) {
        most_classes_ = std::max(most_classes_, tree.classes);
        if (!tree.tables.empty()) (tree.varied ? varied_ : plain_).push_back(&tree);
    }
    const auto range = [&](const Tree* tree) {
        const Extremes e = extremes(trees, tree->root, question.compared.high);
        return e.most - e.least;
    };
    std::stable_sort(plain_.begin(), plain_.end(), [&](const Tree* a, const Tree* b) { return range(a) > range(b); });
    most_left_.assign((plain_.size() + 1) * tables, 0);
    least_left_.assign((plain_.size() + 1) * tables, 0);
    for (std::size_t i = plain_.size(); i-- > 0;) {
        for (std::int32_t t = 0; t < tables; ++t) {
            const Extremes e = extremes(trees, plain_[i]->root, t);
            most_left_[i * tables + t] = most_left_[(i + 1) * tables + t] + e.most;
            least_left_[i * tables + t] = least_left_[(i + 1) * tables + t] + e.least;
        }
    }
    scores_.resize(static_cast<std::size_t>(tables) * choices_);
    moved_.resize(tables);
    highest_.resize(tables);
    lowest_.resize(tables);
    class_value_.resize(static_cast<std::size_t>(tables) * most_classes_);
}

Answer PointScores::at(const Cell* cells) {
    add_varied(cells);
    if (too_near()) return Answer::kNone;
    std::fill(moved_.begin(), moved_.end(), 0);
    for (std::size_t i = 0; i < plain_.size(); ++i) {
        if (i % kLook == 0 && out_of_reach(i)) return Answer::kNone;
        add_plain(*plain_[i], cells);
    }
    for (std::int32_t t = 0; t < trees_.tables(); ++t) {
        Wide* scores = scores_.data() + static_cast<std::size_t>(t) * choices_;
        for (std::int32_t s = 0; s < choices_; ++s) scores[s] += moved_[t];
    }
    return answer_at(question_, trees_, scores_);
}

void PointScores::add_plain(const Tree& tree, const Cell* cells) {
    std::int32_t at = tree.root;
    while (trees_.node(at).feature >= 0) {
        const Node& node = trees_.node(at);
        at = trees_.cell_left(node, cells[node.feature]) ? node.left : node.right;
    }
    for (const std::int32_t t : tree.tables) moved_[t] += trees_.value(trees_.node(at).leaf, t);
}

double PointScores::shortfall(const Cell* cells) {
    add_varied(cells);
    std::fill(moved_.begin(), moved_.end(), 0);
    for (const Tree* tree : plain_) add_plain(*tree, cells);
    const Wide apart = highest_[question_.compared.high] + moved_[question_.compared.high] -
                       lowest_[question_.compared.low] - moved_[question_.compared.low];
    const double near = static_cast<double>(question_.apart_possible) - static_cast<double>(apart);
    return std::max(0.0, near) + lacking(question_.first) + lacking(question_.second);
}

// What the rows of a side lack at best, each by itself.
double PointScores::lacking(const std::vector<Row>& rows) const {
    double sum = 0.0;
    for (const Row& row : rows) {
        const Wide most =
            row.sign > 0 ? highest_[row.table] + moved_[row.table] : -lowest_[row.table] - moved_[row.table];
        sum += std::max(0.0, static_cast<double>(row.possible) - static_cast<double>(most));
    }
    return sum;
}

// Scores without the trees that no choice changes.
void PointScores::add_varied(const Cell* cells) {
    std::fill(scores_.begin(), scores_.end(), 0);
    for (const Tree* tree : varied_) {
        classes_.resize(tree->classes);
        for (std::int32_t k = 0; k < tree->classes; ++k) classes_[k] = k;
        score_below(tree->root, cells, 0, tree->classes);
        for (const std::int32_t t : tree->tables) {
            Wide* sums = scores_.data() + static_cast<std::size_t>(t) * choices_;
            const Wide* values = class_value_.data() + static_cast<std::size_t>(t) * most_classes_;
            Wide before = 0;
            for (const Run& run : tree->runs) {
                sums[run.start] += values[run.of_class] - before;
                before = values[run.of_class];
            }
        }
    }
    for (std::int32_t t = 0; t < trees_.tables(); ++t) {
        Wide* sums = scores_.data() + static_cast<std::size_t>(t) * choices_;
        sums[0] += base_[t];
        highest_[t] = lowest_[t] = sums[0];
        for (std::int32_t s = 1; s < choices_; ++s) {
            sums[s] += sums[s - 1];
            highest_[t] = std::max(highest_[t], sums[s]);
            lowest_[t] = std::min(lowest_[t], sums[s]);
        }
    }
}

// Whether no two choices are as far apart as they must be, whatever the other trees add to both.
bool PointScores::too_near() const {
    const std::int32_t t = question_.compared.high;
    return t == question_.compared.low && highest_[t] - lowest_[t] < question_.apart_possible;
}

// Whether a row fails for every choice, whatever trees from `next` on add.
bool PointScores::out_of_reach(std::size_t next) const {
    const std::size_t place = next * static_cast<std::size_t>(trees_.tables());
    const auto fails = [&](const Row& row) {
        const std::size_t t = static_cast<std::size_t>(row.table);
        const Wide most = row.sign > 0 ? highest_[t] + moved_[t] + most_left_[place + t]
                                       : -(lowest_[t] + moved_[t] + least_left_[place + t]);
        return most < row.possible;
    };
    return std::any_of(question_.first.begin(), question_.first.end(), fails) ||
           std::any_of(question_.second.begin(), question_.second.end(), fails);
}

// Writes the value of every class that reaches a node.
void PointScores::score_below(std::int32_t number, const Cell* cells, std::size_t first, std::size_t count) {
    while (true) {
        const Node& node = trees_.node(number);
        if (node.feature < 0) {
            for (std::int32_t t = 0; t < trees_.tables(); ++t) {
                const Wide v = trees_.value(node.leaf, t);
                Wide* values = class_value_.data() + static_cast<std::size_t>(t) * most_classes_;
                for (std::size_t i = first; i < first + count; ++i) values[classes_[i]] = v;
            }
            return;
        }
        if (node.sides < 0) {
            number = trees_.cell_left(node, cells[node.feature]) ? node.left : node.right;
            continue;
        }
        for (const bool left : {true, false}) {
            const std::size_t from = classes_.size();
            for (std::size_t i = first; i < first + count; ++i) {
                const std::int32_t k = classes_[i];
                if (trees_.goes_left(node, k) == left) classes_.push_back(k);
            }
            const std::size_t part = classes_.size() - from;
            if (part > 0) score_below(left ? node.left : node.right, cells, from, part);
            classes_.resize(from);
        }
        return;
    }
}

}  // namespace treesens::measure
