// The start and the limits of each method: all parameters that choose among the search's methods, with their defaults
// and a sentence. A parameter of a single algorithm stays next to its code.
//
// `TREESENS_SCHEDULE=part_early=2,part_long=0` changes them for a process; `_engine.schedule()` returns them, and
// `_engine.set_schedule(..)` changes them between two searches. They affect the time for an answer, never the answer:
// the oracle varies them (tests/oracle), so that small problems run through the code of large ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace treesens {

// name, default, least value, sentence
#define TREESENS_SCHEDULE_OPTIONS(OPTION)                                                                              \
    OPTION(local_turn, 6'000'000, 1, "work of the first turn of the local search")                                     \
    OPTION(prove_turn, 100'000'000, 1, "work of the first turn of the provers")                                        \
    OPTION(local_turn_2, 30'000'000, 1, "work of the second turn of the local search")                                 \
    OPTION(prove_turn_2, 400'000'000, 1, "work of every later turn of the provers")                                    \
    OPTION(local_turn_3, 60'000'000, 1, "work of every later turn of the local search")                                \
    OPTION(optimum_local_turn, 2'000'000, 1, "local_turn of an optimum for which trees share factors")                 \
    OPTION(optimum_prove_turn, 1'000'000, 1, "prove_turn of such an optimum")                                          \
    OPTION(optimum_local_turn_2, 2'000'000, 1, "local_turn_2 of such an optimum")                                      \
    OPTION(optimum_prove_turn_2, 400'000'000, 1, "prove_turn_2 of such an optimum")                                    \
    OPTION(optimum_local_turn_3, 5'000'000, 1, "local_turn_3 of such an optimum")                                      \
    OPTION(sum_local_turn_2, 100'000'000, 1, "local_turn_2 of a decision whose local search raises a sum (ADR 0035)")  \
    OPTION(sum_prove_turn_2, 200'000'000, 1, "prove_turn_2 of such a decision")                                        \
    OPTION(sum_local_turn_3, 200'000'000, 1, "local_turn_3 of such a decision")                                        \
    OPTION(local_work_per_node, 2'000, 1, "a turn of the local search does no more than so much for a node of a tree") \
    OPTION(local_patience, 16, 1, "turns of provers grow by up to this factor while local search finds nothing")       \
    OPTION(deep_tree, 64, 1, "trees with so many leaves on average are deep: the overlap prover proves (ADR 0011)")    \
    OPTION(many_rows, 4, 1, "with so many rows of scores a decision asks the overlap prover, too (ADR 0030)")          \
    OPTION(sum_rows, 4, 1, "with so many rows a decision's local search raises the sum of what they miss (ADR 0035)")  \
    OPTION(messages_every, 4, 2, "in deep trees every so many turns are for messages")                                 \
    OPTION(most_for_messages, 200'000, 0, "with more leaves, deep trees are proved by the overlap prover alone")       \
    OPTION(together, 400, 0, "entries of a factor of several trees, once a search is long (ADR 0013)")                 \
    OPTION(root_sweeps, 60, 0, "sweeps of messages at the root of the messages prover")                                \
    OPTION(node_sweeps, 4, 0, "sweeps of messages at every other node")                                                \
    OPTION(root_steps, 20, 0, "multiplier steps at the root")                                                          \
    OPTION(node_steps, 1, 0, "multiplier steps at every other node")                                                   \
    OPTION(root_passes, 10, 0, "passes over the factors at the root (ADR 0015)")                                       \
    OPTION(node_passes, 1, 0, "passes over the factors at every other node")                                           \
    OPTION(apart_shares, 1, 0, "whether the root tries several shares of an objective that is apart (ADR 0034)")       \
    OPTION(apart_sweeps, 2, 0, "node_sweeps of an optimum whose objective is apart")                                   \
    OPTION(apart_passes, 0, 0, "node_passes of such an optimum")                                                       \
    OPTION(apart_steps, 3, 0, "node_steps of such an optimum")                                                         \
    OPTION(apart_steps_most, 16, 0, "steps of its nodes, as long as so many like the last one would prune the node")   \
    OPTION(apart_trials, 2, 1, "sweeps after such a step until it is given up")                                        \
    OPTION(proof_sweeps, 6, 0, "node_sweeps of a proof for others, which removes no cells by reduced costs")           \
    OPTION(proof_steps, 2, 0, "node_steps of such a proof")                                                            \
    OPTION(part_early, 32, 1, "node at which the pace of a search is looked at first (ADR 0016)")                      \
    OPTION(part_late, 128, 2, "node at which it is decided whether the search goes on in parts")                       \
    OPTION(part_long, 625, 0, "per mille of the distance that are left in between if a search is long")                \
    OPTION(part_turn, 4'000'000, 1, "work after which it is looked at whether another part is better by now")          \
    OPTION(share_from_turn, 3, 1, "turn from which several threads share the tree of a search (ADR 0009)")             \
    OPTION(share_unsettled, 10'000'000, 1, "work between two looks at whether a search can be shared")                 \
    OPTION(share_quantum, 1'000'000, 1, "work of a thread between two looks at the others")                            \
    OPTION(open_node_megabytes, 256, 0, "memory of open nodes above which a search goes on depth-first")               \
    OPTION(polish, 1, 0, "whether local search goes on from points that a prover decodes (0: never)")                  \
    OPTION(overlap_idle, 16, 1, "nodes at which a layer of boxes that proved nothing is asked all the same")           \
    OPTION(overlap_point, 8, 1, "nodes of the overlap prover per decoded point")                                       \
    OPTION(overlap_pairs, 400'000, 0, "pairs of boxes of the copies of one tree that are joined")                      \
    OPTION(overlap_pairs_together, 6'400'000, 0, "the same of all trees together")                                     \
    OPTION(stay_in_node, 1, 0, "whether local search stays in the node of the overlap prover every second turn (0: no)")

struct Schedule {
#define TREESENS_OPTION(name, value, least, sentence) std::int64_t name = value;
    TREESENS_SCHEDULE_OPTIONS(TREESENS_OPTION)
#undef TREESENS_OPTION
};

struct ScheduleEntry {
    const char* name;
    std::int64_t Schedule::* member;
    std::int64_t standard;
    std::int64_t least;
    const char* sentence;
};

const std::vector<ScheduleEntry>& schedule_entries();

// The parameters of this process. Written only between searches, which read them without a lock.
extern Schedule schedule;

// `name=value,name=value`; an empty text changes nothing. Throws std::invalid_argument for invalid settings.
void set_schedule(const std::string& text);

}  // namespace treesens
