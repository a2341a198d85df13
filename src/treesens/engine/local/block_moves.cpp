#include "local/block_moves.hpp"

#include <algorithm>

#include "problem/checked.hpp"
#include "problem/schedule.hpp"

namespace treesens {

void Moves::set_goal(const Goal& goal) {
    goal_ = &goal;
    std::int32_t soft = 0;
    for (std::int32_t r = 0; r < problem_.rows; ++r) soft += goal.counts(problem_, r) && goal.soft[r] ? 1 : 0;
    sums_ = goal.mode == Mode::decide && soft >= schedule.sum_rows;
    most_missed_ = INT64_MAX / (4 * std::max<std::int64_t>(soft, 1));
}

void Moves::add_row(Score& s, std::int32_t row, std::int64_t slack) const {
    if (!goal_->counts(problem_, row)) return;
    if (!sums_ || !goal_->soft[row])
        s.add(goal_->soft[row] != 0, slack);
    else
        s.soft += std::clamp<std::int64_t>(slack, -most_missed_, 0);
}

void Moves::add_cluster(Score& s, const Score& part) const {
    s.hard = std::min(s.hard, part.hard);
    s.soft = sums_ ? s.soft + part.soft : std::min(s.soft, part.soft);
}

void Moves::measure() {
    score_ = Score::top();
    worth_ = of_no_row();
    for (const Cluster& c : clusters_) {
        for (std::size_t j = 0; j < c.rows.size(); ++j) {
            const std::int64_t slack = c.profile[j * c.width + (c.open < 0 ? 0 : x_[c.open])];
            if (goal_->counts(problem_, c.rows[j])) score_.add(goal_->soft[c.rows[j]], slack);
            add_row(worth_, c.rows[j], slack);
        }
    }
}

void Moves::choose_privates(std::uint64_t pick) {
    for (Cluster& c : clusters_) {
        if (c.open >= 0) is_open_[c.open] = 0;
        c.open = c.privates.empty() ? -1 : c.privates[pick % c.privates.size()];
        c.width = c.open < 0 ? 1 : problem_.size[c.open];
        if (c.open >= 0) is_open_[c.open] = 1;
    }
}

void Moves::place(const std::vector<Cell>& x, std::uint64_t pick) {
    x_ = x;
    choose_privates(pick);
    build_profiles();
}

// Every row over the open variable of its cluster, with all else as in x.
void Moves::build_profiles() {
    start_block(-1, -1);
    start_tables();
    for (std::int32_t g = 0; g < problem_.groups(); ++g) {
        const std::int32_t row = forest_.row_offset[g];
        if (row == forest_.row_offset[g + 1]) continue;
        open_ = clusters_[cluster_of_[forest_.group_rows[row]]].open;
        traverse(g, forest_.root[g], {{0, 0, 0}, {0, 0, open_ < 0 ? 0 : problem_.size[open_] - 1}});
    }
    sum_tables();
    for (Cluster& c : clusters_) {
        c.profile.assign(c.rows.size() * c.width, 0);
        for (std::size_t j = 0; j < c.rows.size(); ++j) {
            const std::int32_t r = c.rows[j];
            std::int64_t fixed = c.plane[j] - goal_->bound[r];
            for (std::int32_t v = 0; v < problem_.variables() && problem_.has_unary; ++v) {
                if (v != c.open) fixed += problem_.unary_at(r, v, x_[v]);
            }
            for (Cell k = 0; k < c.width; ++k) {
                std::int64_t& out = c.profile[j * c.width + k];
                out = fixed;
                if (c.open >= 0) out += c.rectangle[j * (c.width + 1) + k] + problem_.unary_at(r, c.open, k);
            }
        }
    }
    measure();
}

void Moves::start_block(std::int32_t first, std::int32_t second) {
    block_[0] = first;
    block_[1] = second;
    from_ = 0;
    sparse_ = first >= 0 && grid(first, second) > (sums_ ? kMostDenseOfMany : kMostDense);
    for (int i = 0; i < 2; ++i) size_[i] = block_[i] < 0 ? 1 : problem_.size[block_[i]];
    for (Cluster& c : clusters_) {
        c.split = c.open >= 0 && c.open != first && c.open != second;
        c.places = c.width;
    }
}

void Moves::start_tables() {
    const std::int64_t plane = static_cast<std::int64_t>(size_[0] + 1) * (size_[1] + 1);
    for (Cluster& c : clusters_) {
        const std::int64_t depth = c.split ? c.places + 1 : 0;
        // Without a block a flat layout is enough: one line over the open variable.
        const std::int64_t lines = block_[0] < 0 ? 1 : plane;
        c.plane.assign(c.rows.size() * lines, 0);
        c.rectangle.assign(c.rows.size() * lines * depth, 0);
        work_ += static_cast<std::int64_t>(c.rows.size()) * lines * (depth + 1) / 4;
    }
}

void Moves::Places::close(const std::uint8_t* allowed, Cell now, std::uint64_t& random) {
    const Cell cells = narrow<Cell>(cut.size());
    number.resize(cells);
    for (Cell first = 0, next = 0; first < cells; first = next) {
        for (next = first + 1; next < cells && !cut[next];) ++next;
        const std::int32_t place = narrow<std::int32_t>(cell.size());
        std::fill(number.begin() + first, number.begin() + next, place);
        random = random * 6364136223846793005u + 1442695040888963407u;
        const Cell span = next - first;
        Cell at = first + narrow<Cell>((random >> 33) % static_cast<std::uint64_t>(span));
        for (Cell tried = 0; tried < span && !allowed[at]; ++tried) at = at + 1 == next ? first : at + 1;
        cell.push_back(first <= now && now < next ? now : (allowed[at] ? at : -1));
    }
}

// Leaves that intersect the block are kept, and the cells between their cuts are merged.
void Moves::find_places() {
    pieces_.clear();
    for (int i = 0; i < 2; ++i) places_[i].start(size_[i]);
    for (Cluster& c : clusters_) {
        if (c.split) c.between.start(c.width);
    }
    keeps_ = true;
    visit_groups(block_[0], block_[1]);
    keeps_ = false;
    cut_at_changes();
    for (int i = 0; i < 2; ++i) {
        places_[i].close(mask_[i].data(), block_[i] < 0 ? 0 : x_[block_[i]], windows_);
        size_[i] = narrow<std::int32_t>(places_[i].cell.size());
    }
    std::int64_t width = 1;
    for (Cluster& c : clusters_) {
        if (!c.split) continue;
        c.between.close(allowed(c.open), x_[c.open], windows_);
        c.places = narrow<std::int32_t>(c.between.cell.size());
        width = std::max<std::int64_t>(width, c.places);
        c.line.resize(c.rows.size() * c.places);
        for (std::size_t j = 0; j < c.rows.size(); ++j) {
            for (std::int32_t k = 0; k < c.places; ++k) {
                const Cell cell = c.between.cell[k];
                c.line[j * c.places + k] = cell < 0 ? 0 : c.profile[j * c.width + cell];
            }
        }
    }
    work_ += static_cast<std::int64_t>(pieces_.size());
    if (block_[1] < 0) choose_window(width);
}

// What is not of the leaves that were met changes there, too.
void Moves::cut_at_changes() {
    for (int i = 0; i < 2 && problem_.has_unary; ++i) {
        if (block_[i] < 0) continue;
        for (std::int32_t r = 0; r < problem_.rows; ++r) {
            const std::int64_t* value = problem_.unary.data() + static_cast<std::size_t>(r) * problem_.cells() +
                                        problem_.cell_offset[block_[i]];
            for (Cell k = 1; k < size_[i]; ++k) places_[i].cut[k] |= value[k] != value[k - 1];
        }
    }
    for (Cluster& c : clusters_) {
        if (!c.split) continue;
        for (std::size_t j = 0; j < c.rows.size(); ++j) {
            const std::int64_t* value = c.profile.data() + j * c.width;
            for (Cell k = 1; k < c.width; ++k) c.between.cut[k] |= value[k] != value[k - 1];
        }
        work_ += static_cast<std::int64_t>(c.rows.size()) * c.width / 4;
    }
}

// If very many places remain, a move examines some of them near the present one, others the next time: tables over all
// of them, and over the open variable, would take hundreds of megabytes.
void Moves::choose_window(std::int64_t width) {
    const std::int64_t most = std::max(kLeastWindow, kLargestLine / width);
    if (size_[0] <= most) return;
    windows_ = windows_ * 6364136223846793005u + 1442695040888963407u;
    const std::int64_t before = static_cast<std::int64_t>((windows_ >> 33) % static_cast<std::uint64_t>(most));
    const std::int64_t here = places_[0].number[x_[block_[0]]];
    from_ = narrow<std::int32_t>(std::clamp<std::int64_t>(here - before, 0, size_[0] - most));
    size_[0] = narrow<std::int32_t>(most);
}

void Moves::keep_piece(std::int32_t group, std::int32_t leaf, const Range& range) {
    pieces_.push_back({group, leaf, range});
    for (int i = 0; i < 2; ++i) places_[i].cut[range.low[i]] = 1;
    if (open_ < 0) return;
    Cluster& c = clusters_[cluster_of_[forest_.group_rows[forest_.row_offset[group]]]];
    c.between.cut[range.low[2]] = 1;
    // What begins behind it may cover the block, and is not kept then.
    if (range.high[2] + 1 < c.width) c.between.cut[range.high[2] + 1] = 1;
}

// The leaves that were kept, in terms of places.
void Moves::add_pieces() {
    for (const Piece& piece : pieces_) {
        Range range = piece.range;
        for (int i = 0; i < 2; ++i) {
            range.low[i] = place_of(i, range.low[i]);
            range.high[i] = place_of(i, range.high[i]);
        }
        if (range.high[0] < 0 || range.low[0] >= size_[0]) continue;
        range.low[0] = std::max(range.low[0], 0);
        const Cluster& c = clusters_[cluster_of_[forest_.group_rows[forest_.row_offset[piece.group]]]];
        open_ = c.split ? c.open : -1;
        if (c.split) {
            range.low[2] = c.between.number[range.low[2]];
            range.high[2] = c.between.number[range.high[2]];
        }
        add_leaf(piece.group, piece.leaf, range);
    }
}

void Moves::traverse(std::int32_t group, std::int32_t node, Range range) {
    while (node >= 0) {
        const TreeNode& n = forest_.nodes[node];
        ++work_;
        int axis;
        if (n.variable == block_[0])
            axis = 0;
        else if (n.variable == block_[1])
            axis = 1;
        else if (n.variable == open_)
            axis = 2;
        else {
            node = x_[n.variable] <= n.cut ? n.left : n.right;
            continue;
        }
        if (range.high[axis] <= n.cut) {
            node = n.left;
        } else if (range.low[axis] > n.cut) {
            node = n.right;
        } else {
            Range left = range;
            left.high[axis] = n.cut;
            traverse(group, n.left, left);
            range.low[axis] = n.cut + 1;
            node = n.right;
        }
    }
    // A leaf that holds for all positions of the block distinguishes none of its cells.
    if (block_[0] >= 0 && covers_block(range)) return;
    if (keeps_)
        keep_piece(group, ~node, range);
    else
        add_leaf(group, ~node, range);
}

bool Moves::covers_block(const Range& range) const {
    return range.low[0] == 0 && range.high[0] == size_[0] - 1 && range.low[1] == 0 && range.high[1] == size_[1] - 1;
}

void Moves::add_leaf(std::int32_t group, std::int32_t leaf, const Range& range) {
    const std::int64_t* value = forest_.values(problem_, group, leaf);
    const bool flat = block_[0] < 0;
    const std::int64_t line = size_[1] + 1;
    for (std::int32_t j = forest_.row_offset[group]; j < forest_.row_offset[group + 1]; ++j, ++value) {
        const std::int32_t row = forest_.group_rows[j];
        Cluster& c = clusters_[cluster_of_[row]];
        const bool whole = open_ != c.open || !c.split || (range.low[2] == 0 && range.high[2] == c.places - 1);
        const std::int64_t depth = whole ? 1 : c.places + 1;
        std::int64_t* out = whole ? c.plane.data() : c.rectangle.data();
        out += row_place_[row] * (flat ? 1 : (size_[0] + 1) * line) * depth;
        const auto add_line = [&](std::int64_t* at, std::int64_t amount) {
            if (whole) {
                *at += amount;
            } else {
                at[range.low[2]] += amount;
                at[range.high[2] + 1] -= amount;
            }
        };
        if (flat) {
            add_line(out, *value);
            continue;
        }
        for (int a = 0; a < 2; ++a) {
            const std::int64_t i = a ? range.high[0] + 1 : range.low[0];
            if (i >= size_[0]) continue;
            for (int b = 0; b < 2; ++b) {
                const std::int64_t k = b ? range.high[1] + 1 : range.low[1];
                if (k < size_[1]) add_line(out + (i * line + k) * depth, a == b ? *value : -*value);
            }
        }
    }
}

void Moves::sum_tables() {
    const bool flat = block_[0] < 0;
    const std::int64_t line = size_[1] + 1;
    for (Cluster& c : clusters_) {
        for (std::size_t j = 0; j < c.rows.size(); ++j) {
            for (int part = 0; part < 2; ++part) {
                const std::int64_t depth = part ? c.places + 1 : 1;
                if (part && !c.split) continue;
                std::int64_t* base =
                    (part ? c.rectangle.data() : c.plane.data()) + j * (flat ? 1 : (size_[0] + 1) * line) * depth;
                for (std::int64_t i = 0; i < size_[0]; ++i) {
                    for (std::int64_t k = 0; k < size_[1]; ++k) {
                        std::int64_t* at = base + (flat ? 0 : (i * line + k) * depth);
                        for (std::int64_t d = 1; d < depth; ++d) at[d] += at[d - 1];
                        if (k > 0) {
                            for (std::int64_t d = 0; d < depth; ++d) at[d] += at[d - depth];
                        }
                    }
                    if (i == 0) continue;
                    // Both axes at once would need the corner again: the second axis is summed from completed lines.
                    for (std::int64_t d = 0; d < size_[1] * depth; ++d)
                        base[i * line * depth + d] += base[(i - 1) * line * depth + d];
                }
                work_ += size_[0] * size_[1] * depth / 2;
            }
        }
    }
}

std::int64_t Moves::unary_difference(std::int32_t row, std::int64_t cell) const {
    if (!problem_.has_unary) return 0;
    const Cell to[2] = {cell_of(0, cell / (size_[1] + 1)), cell_of(1, cell % (size_[1] + 1))};
    std::int64_t sum = 0;
    for (int i = 0; i < 2; ++i) {
        if (block_[i] < 0) continue;
        sum += problem_.unary_at(row, block_[i], to[i]) - problem_.unary_at(row, block_[i], x_[block_[i]]);
    }
    return sum;
}

// Slack of all rows of the cluster over the places of its open variable (one when that is in the block) with the block
// at `cell`.
void Moves::read_block_cell(Cluster& c, std::int64_t cell, std::int64_t here, std::int64_t* out) const {
    const std::int64_t lines = static_cast<std::int64_t>(size_[0] + 1) * (size_[1] + 1);
    const std::int64_t depth = c.places + 1;
    for (std::size_t j = 0; j < c.rows.size(); ++j) {
        const std::int64_t* plane = c.plane.data() + j * lines;
        const std::int64_t shift = plane[cell] - plane[here] + unary_difference(c.rows[j], cell);
        if (!c.split) {
            *out++ = c.profile[j * c.width + (c.open < 0 ? 0 : x_[c.open])] + shift;
            continue;
        }
        const std::int64_t* line = line_of(c) + j * c.places;
        const std::int64_t* now = c.rectangle.data() + (j * lines + here) * depth;
        const std::int64_t* then = c.rectangle.data() + (j * lines + cell) * depth;
        for (std::int32_t k = 0; k < c.places; ++k) *out++ = line[k] + shift + (then[k] - now[k]);
    }
}

// Fast path for the usual case: one soft row, its open variable outside the block.
Score Moves::single_row_best(const Cluster& c, std::int64_t cell, std::int64_t here, std::int32_t* best_open) const {
    const std::int64_t depth = c.places + 1;
    const std::int64_t* now = c.rectangle.data() + here * depth;
    const std::int64_t* then = c.rectangle.data() + cell * depth;
    const std::int64_t* line = line_of(c);
    std::int64_t best = INT64_MIN;
    std::int32_t choice = open_place(c);
    if (is_usable(c, choice)) best = line[choice] + then[choice] - now[choice];
    for (std::int32_t k = 0; k < c.places; ++k) {
        const std::int64_t slack = line[k] + then[k] - now[k];
        if (slack > best && is_usable(c, k)) best = slack, choice = k;
    }
    *best_open = choice;
    return {0, best + c.plane[cell] - c.plane[here] + unary_difference(c.rows[0], cell)};
}

Score Moves::cluster_best(Cluster& c, std::int64_t cell, std::int64_t here, std::int32_t* best_open) const {
    const bool single = !sums_ && c.rows.size() == 1 && goal_->soft[c.rows[0]];
    if (c.split && single) return single_row_best(c, cell, here, best_open);
    const std::int32_t width = c.split ? c.places : 1;
    scratch_.resize(c.rows.size() * width);
    read_block_cell(c, cell, here, scratch_.data());
    const std::int32_t now = c.split ? open_place(c) : 0;
    Score best;
    *best_open = -1;
    for (std::int32_t k = 0; k < width; ++k) {
        if (c.split && !is_usable(c, k)) continue;
        Score s = of_no_row();
        for (std::size_t j = 0; j < c.rows.size(); ++j) add_row(s, c.rows[j], scratch_[j * width + k]);
        // Ties keep the present cell.
        if (best < s || (*best_open < 0) || (s == best && c.split && k == now)) best = s, *best_open = k;
    }
    return best;
}

void Moves::visit_groups(std::int32_t variable, std::int32_t also) {
    const std::int32_t* begin = forest_.use_group.data() + forest_.use_offset[variable];
    const std::int32_t* end = forest_.use_group.data() + forest_.use_offset[variable + 1];
    const std::int32_t* other = also < 0 ? end : forest_.use_group.data() + forest_.use_offset[also];
    const std::int32_t* other_end = also < 0 ? end : forest_.use_group.data() + forest_.use_offset[also + 1];
    const auto visit = [&](std::int32_t g) {
        const std::int32_t row = forest_.row_offset[g];
        if (row == forest_.row_offset[g + 1]) return;
        const Cluster& c = clusters_[cluster_of_[forest_.group_rows[row]]];
        open_ = c.split ? c.open : -1;
        traverse(g, forest_.root[g], {{0, 0, 0}, {size_[0] - 1, size_[1] - 1, open_ < 0 ? 0 : c.width - 1}});
    };
    // Both lists are sorted: merged, so that no group is visited twice.
    while (begin != end || other != other_end) {
        if (other == other_end || (begin != end && *begin < *other))
            visit(*begin++);
        else if (begin == end || *other < *begin)
            visit(*other++);
        else
            visit(*begin++), ++other;
    }
}

void Moves::stay_within(const Domains* region) {
    if (region == nullptr && !in_region_) return;
    in_region_ = region != nullptr;
    allowed_ = problem_.allowed;
    for (std::int32_t v = 0; v < problem_.variables() && in_region_; ++v) {
        if (region->empty(v)) continue;  // every variable has an allowed cell
        std::uint8_t* mine = allowed_.data() + problem_.cell_offset[v];
        for (Cell k = 0; k < problem_.size[v]; ++k) mine[k] = region->has(v, k);
    }
}

void Moves::mask_cells(std::int32_t variable, std::vector<std::uint8_t>& mask) {
    if (variable < 0) {
        mask.assign(1, 1);
        return;
    }
    mask.assign(allowed(variable), allowed(variable) + problem_.size[variable]);
    if (!clauses_.involves(variable)) return;
    clauses_.restrict_cells(x_.data(), variable, is_open_.data(), mask.data());
}

std::int64_t Moves::grid(std::int32_t first, std::int32_t second) const {
    std::int64_t width = 1;
    for (const Cluster& c : clusters_) width = std::max<std::int64_t>(width, c.width);
    return static_cast<std::int64_t>(problem_.size[first]) * (second < 0 ? 1 : problem_.size[second]) * width;
}

bool Moves::improve(std::int32_t first, std::int32_t second) {
    start_block(first, second);
    std::uint8_t was_open[2] = {is_open_[first], second < 0 ? std::uint8_t{0} : is_open_[second]};
    is_open_[first] = 1;
    if (second >= 0) is_open_[second] = 1;
    mask_cells(first, mask_[0]);
    mask_cells(second, mask_[1]);
    is_open_[first] = was_open[0];
    if (second >= 0) is_open_[second] = was_open[1];
    work_ += 200;  // fixed cost of a move
    if (sparse_) find_places();
    start_tables();
    if (sparse_)
        add_pieces();
    else
        visit_groups(first, second);
    sum_tables();

    const std::int64_t line = size_[1] + 1;
    const std::int64_t here = place_of(0, x_[first]) * line + (second < 0 ? 0 : place_of(1, x_[second]));
    Score best = worth_;
    std::int64_t best_cell = -1;
    for (std::int32_t i = 0; i < size_[0]; ++i) {
        if (!is_free(0, i)) continue;
        for (std::int32_t k = 0; k < size_[1]; ++k) {
            if (!is_free(1, k)) continue;
            Score s = of_no_row();
            std::int32_t ignored;
            for (Cluster& c : clusters_) {
                add_cluster(s, cluster_best(c, i * line + k, here, &ignored));
                if (s < best) break;
            }
            if (best < s) best = s, best_cell = i * line + k;
        }
    }
    if (best_cell < 0) return false;
    if (!clauses_.none()) return adopt_with_clauses(best_cell, here);
    for (std::size_t c = 0; c < clusters_.size(); ++c) cluster_best(clusters_[c], best_cell, here, &chosen_open_[c]);
    adopt(best_cell, here);
    return true;
}

// The relation between the private variables (a.f < b.f) is satisfied by choosing them one by one.
bool Moves::adopt_with_clauses(std::int64_t cell, std::int64_t here) {
    const std::vector<Cell> before = x_;
    const Score old = worth_;
    for (std::size_t c = 0; c < clusters_.size(); ++c) cluster_best(clusters_[c], cell, here, &chosen_open_[c]);
    adopt(cell, here);
    bool fine = true;
    for (std::int32_t v : block_) fine = fine && (v < 0 || clauses_.satisfied_around(x_.data(), v));
    for (const Cluster& c : clusters_) fine = fine && (c.open < 0 || clauses_.satisfied_around(x_.data(), c.open));
    if (fine) return true;
    // Choose the open cells again, now under the clauses, with the block where it is.
    for (Cluster& c : clusters_) {
        if (c.open < 0) continue;
        open_mask_.assign(allowed(c.open), allowed(c.open) + c.width);
        std::vector<std::uint8_t>& open = is_open_;
        open[c.open] = 0;
        clauses_.restrict_cells(x_.data(), c.open, open.data(), open_mask_.data());
        Score best;
        Cell choice = -1;
        for (Cell k = 0; k < c.width; ++k) {
            if (!open_mask_[k]) continue;
            Score s = of_no_row();
            for (std::size_t j = 0; j < c.rows.size(); ++j) add_row(s, c.rows[j], c.profile[j * c.width + k]);
            if (choice < 0 || best < s) best = s, choice = k;
        }
        if (choice >= 0) x_[c.open] = choice;
    }
    for (const Cluster& c : clusters_) {
        if (c.open >= 0) is_open_[c.open] = 1;
    }
    fine = true;
    for (std::int32_t v : block_) fine = fine && (v < 0 || clauses_.satisfied_around(x_.data(), v));
    for (const Cluster& c : clusters_) fine = fine && (c.open < 0 || clauses_.satisfied_around(x_.data(), c.open));
    build_profiles();
    if (fine && old < worth_) return true;
    x_ = before;
    build_profiles();
    return false;
}

void Moves::adopt(std::int64_t cell, std::int64_t here) {
    const std::int64_t lines = static_cast<std::int64_t>(size_[0] + 1) * (size_[1] + 1);
    bool rebuild = false;
    for (Cluster& c : clusters_) {
        rebuild = rebuild || (!c.split && c.open >= 0);
        const std::int64_t depth = c.places + 1;
        for (std::size_t j = 0; j < c.rows.size(); ++j) {
            const std::int64_t* plane = c.plane.data() + j * lines;
            const std::int64_t shift = plane[cell] - plane[here] + unary_difference(c.rows[j], cell);
            std::int64_t* profile = c.profile.data() + j * c.width;
            for (Cell k = 0; k < c.width; ++k) profile[k] += shift;
            if (!c.split) continue;
            const std::int64_t* now = c.rectangle.data() + (j * lines + here) * depth;
            const std::int64_t* then = c.rectangle.data() + (j * lines + cell) * depth;
            for (Cell k = 0; k < c.width; ++k) {
                const std::int32_t place = sparse_ ? c.between.number[k] : k;
                profile[k] += then[place] - now[place];
            }
        }
    }
    const std::int64_t line = size_[1] + 1;
    x_[block_[0]] = cell_of(0, cell / line);
    if (block_[1] >= 0) x_[block_[1]] = cell_of(1, cell % line);
    for (std::size_t i = 0; i < clusters_.size(); ++i) {
        const Cluster& c = clusters_[i];
        if (c.split) x_[c.open] = sparse_ ? c.between.cell[chosen_open_[i]] : chosen_open_[i];
    }
    // The open variable of a cluster was itself moved: its profile over the other cells is not known.
    if (rebuild) {
        build_profiles();
        return;
    }
    measure();
}

}  // namespace treesens
