#include "certify/overlap_certifier.hpp"

#include <vector>

namespace treesens {

namespace {

void write_leaf(const Problem& problem, const BoxLayer& layer, Proof& proof) {
    std::vector<std::int32_t> multiplier(problem.rows, 0);
    for (const std::int32_t r : layer.rows) multiplier[r] = 1;
    proof.multiplier.insert(proof.multiplier.end(), multiplier.begin(), multiplier.end());
    proof.row_shift.insert(proof.row_shift.end(), problem.rows, 0);
    proof.exponent.push_back(0);
    proof.message_offset.push_back(0);
}

void write_nodes(const Problem& problem, const CutTree& tree, const BoxLayers& layers, Proof& proof) {
    std::vector<std::int64_t> waiting{0};
    while (!waiting.empty()) {
        const CutTree::Node& node = tree.nodes()[waiting.back()];
        waiting.pop_back();
        proof.cut.push_back(node.cut);
        if (node.variable >= 0) {
            proof.variable.push_back(node.variable);
            waiting.push_back(node.high);
            waiting.push_back(node.low);
        } else if (node.layer == CutTree::kByClauses) {
            proof.variable.push_back(Proof::kByClauses);
        } else {
            proof.variable.push_back(Proof::kByMessages);
            write_leaf(problem, layers.layers[node.layer], proof);
        }
    }
}

// Rows that cancel need the copies of a tree together; other ones are sums over single trees.
void write_factors(const Problem& problem, const BoxLayers& layers, Proof& proof) {
    for (const BoxLayer& layer : layers.layers) {
        if (layer.rows.size() > 1) return;
    }
    for (std::int32_t g = 0; g < problem.groups(); ++g) {
        proof.factor_group.push_back(g);
        proof.factor_offset.push_back(g + 1);
    }
}

}  // namespace

Proof certify_by_overlap(const Problem& problem, const Forest& forest, Clauses& clauses, const Goal& goal,
                         const BoxLayers& layers, std::int64_t level, std::int64_t node_limit, MemoryBudget& budget,
                         Control& control) {
    Proof proof;
    CutTree tree;
    OverlapProver prover(problem, forest, clauses, goal, layers, Gap(), budget);
    proof.reason = prover.record(tree, level, node_limit, control);
    if (!proof.reason.empty()) return proof;
    write_nodes(problem, tree, layers, proof);
    write_factors(problem, layers, proof);
    proof.complete = true;
    return proof;
}

}  // namespace treesens
