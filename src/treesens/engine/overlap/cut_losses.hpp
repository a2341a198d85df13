// The loss of a node's bound on either side of every cut.
//
// The boxes of a tree are visited in order of decreasing value: as long as none of them reaches below a cut, the low
// side of that cut loses the difference to the best. Summed over trees this is exact for both sides, and it is over
// after few boxes, because most of them are wide in most variables. A side that loses more than the node can spare
// holds no solution: its cells are cut off at once (reduced-cost fixing at the ends of the domains).
#pragma once

#include <cstdint>
#include <vector>

#include "overlap/active_boxes.hpp"

namespace treesens {

struct OverlapCut {
    std::int32_t variable = -1;  // -1: none
    Cell cut = 0;                // cells <= cut on the one side
    bool low_first = true;       // the side that loses less
    double worth = 0;
};

class CutLosses {
public:
    explicit CutLosses(const Problem& problem);

    // The node's hull, in which every cut lies; forgets earlier boxes.
    void start(const std::vector<Cell>& low, const std::vector<Cell>& high);
    // Adds a layer (by number); `spare` >= 0 is the excess of its bound over the minimum of a solution.
    void look(const ActiveBoxes& boxes, std::int64_t spare, std::int32_t layer);
    // The cut whose lesser loss is largest, over all layers; `divides`: one that parts the best boxes, if no cut loses.
    const OverlapCut& best() const { return best_.variable >= 0 ? best_ : divides_; }
    // The hull without refuted ends.
    bool trimmed() const { return trimmed_; }
    const std::vector<Cell>& low() const { return low_; }
    const std::vector<Cell>& high() const { return high_; }
    // The layer that refutes all that is cut off from the lower end of a domain, or from the upper one.
    std::int32_t low_by(std::int32_t v) const { return low_by_[v]; }
    std::int32_t high_by(std::int32_t v) const { return high_by_[v]; }
    std::int64_t work() const { return work_; }

private:
    struct Event {
        Cell cut;
        std::int64_t low;     // change of the loss of the low side, from this cut on
        std::int64_t high;    // of the high side
        std::int32_t border;  // borders of best boxes at this cut
    };
    struct Reach {
        std::int32_t slot;
        Cell low;  // no box visited so far reaches below
        Cell high;
    };

    void look_at_factor(const ActiveBoxes& boxes, std::int32_t factor);
    bool widen(Reach& reach, std::int32_t v, CellRange range, std::int64_t loss);
    void read_cuts(std::int32_t v, double spare);

    std::vector<Cell> first_;
    std::vector<Cell> last_;
    std::vector<Cell> low_;
    std::vector<Cell> high_;
    std::vector<std::int32_t> low_by_;
    std::vector<std::int32_t> high_by_;
    std::int32_t layer_ = 0;  // that is visited
    bool trimmed_ = false;
    OverlapCut best_;
    OverlapCut divides_;
    std::vector<std::vector<Event>> events_;  // [variables]
    std::vector<Reach> open_;
    std::int64_t spare_ = 0;
    std::int64_t work_ = 0;
};

}  // namespace treesens
