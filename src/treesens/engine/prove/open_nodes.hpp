// The open nodes of a search, and their order (ADR 0012).
//
// Depth-first: the one deferred last. Best-first, in dives: a dive goes depth-first for some nodes, and the next dive
// starts at the greatest bound of all. So the global bound falls with every dive, and the search finds points as it
// does depth-first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bound/messages.hpp"
#include "problem/domains.hpp"
#include "problem/schedule.hpp"

namespace treesens {

class Subproblem;

struct OpenNode {
    Domains domains;
    std::int64_t upper = INT64_MAX;                           // no solution of the node has more in its soft rows
    std::int32_t variable = -1;                               // of the cut that made it; -1: it was made by none
    std::vector<std::int64_t> path;                           // the nodes above, by number, the root first
    std::vector<std::shared_ptr<const SavedMessages>> start;  // [bound levels]: what a node above left, or null
    std::shared_ptr<Subproblem> part;  // the node as a problem of its own, if it was begun as one
    std::int64_t bytes() const;        // without what it starts from
};

// How far a dive goes: down in the upper `share` of what lies between the greatest bound and the level to reach, and
// back up to another branch for so many `ends` of branches. Depth-first is one dive without end.
struct Dive {
    double share = 1;
    std::int64_t ends = INT64_MAX;
};

class OpenNodes {
public:
    OpenNodes(const Dive& dive, MemoryBudget& budget) : limits_(dive), budget_(budget) {}
    ~OpenNodes();
    OpenNodes(const OpenNodes&) = delete;
    OpenNodes& operator=(const OpenNodes&) = delete;

    bool empty() const { return dive_.empty() && rest_.empty(); }
    // The greatest bound of all; INT64_MIN without nodes.
    std::int64_t upper() const;
    // True if the dive continues with a node of this bound instead of deferring it. `level`: values below are pruned.
    bool goes_on(std::int64_t upper, std::int64_t level) const;
    void put_off(OpenNode node);
    // Drops all nodes: the search restarts.
    void clear();
    // The next node; there must be one.
    OpenNode take();
    // A node for another prover: the greatest bound, or the shallowest node. False if there is none.
    bool give(OpenNode& out);

private:
    static constexpr std::int64_t kLeastRoom = std::int64_t{16} << 20;
    bool is_endless() const { return limits_.ends == INT64_MAX; }
    // Then the search goes on depth-first, until there is room.
    bool is_full() const {
        return bytes_ >= schedule.open_node_megabytes * (std::int64_t{1} << 20) || budget_.room() < kLeastRoom;
    }
    static std::int64_t all_bytes(const OpenNode& node);
    void end_dive();
    OpenNode take_from(std::vector<OpenNode>& nodes);

    Dive limits_;
    std::int64_t ends_ = 0;  // of the dive at work
    MemoryBudget& budget_;
    std::vector<OpenNode> dive_;  // a stack: what the dive at work has put off
    std::vector<OpenNode> rest_;  // a heap by bound
    std::int64_t bytes_ = 0;
};

}  // namespace treesens
