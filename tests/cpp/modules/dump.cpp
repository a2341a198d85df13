// What every search makes of the problems of a file (write.py), one line a search: dump_modules FILE [SCHEDULE].
//
// One thread, a seed and limits of nodes alone: the same text on every machine and in every run. Two states of the
// engine that are meant to do the same are compared by their texts (docs/engine.md).
#include <cinttypes>
#include <cstdio>
#include <fstream>

#include "levels/cost_search.hpp"
#include "levels/level_search.hpp"
#include "problem/restricted.hpp"
#include "problem/schedule.hpp"
#include "read.hpp"
#include "search.hpp"

using namespace treesens;
using namespace treesens::modules;

namespace {

constexpr std::int64_t kLarge = 4'000;    // leaves; larger problems are not asked in boxes
constexpr std::int64_t kNodes = 400;      // of a search
constexpr std::int64_t kDeepNodes = 800;  // of the overlap prover
constexpr std::int64_t kProofNodes = 60;

// FNV-1a over 64-bit words.
class Digest {
public:
    template <typename T>
    Digest& add(const std::vector<T>& values) {
        add_one(static_cast<std::int64_t>(values.size()));
        for (const T value : values) add_one(static_cast<std::int64_t>(value));
        return *this;
    }
    Digest& add_one(std::int64_t value) {
        sum_ = (sum_ ^ static_cast<std::uint64_t>(value)) * 1099511628211ULL;
        return *this;
    }
    std::uint64_t sum() const { return sum_; }

private:
    std::uint64_t sum_ = 14695981039346656037ULL;
};

void show(const char* what, const Search& s) {
    const ProverStatistics n = s.statistics();
    const Incumbent& best = s.incumbent();
    std::printf("  %s status %d reason %d nodes %" PRId64 " closed %" PRId64 " clauses %" PRId64 " steps %" PRId64
                " deepest %" PRId64 " parts %" PRId64 " audited %" PRId64,
                what, static_cast<int>(s.status()), static_cast<int>(s.reason()), n.nodes, n.closed,
                n.pruned_by_clauses, n.multiplier_steps, n.deepest, n.parts, s.audited());
    std::printf(" upper %" PRId64 " hard %" PRId64 " soft %" PRId64 " point %016" PRIx64 " local %" PRId64, s.upper(),
                best.score.hard, best.score.soft, Digest().add(best.x).sum(), s.local_search().work());
    if (s.overlap() != nullptr) {
        std::printf(" boxes %" PRId64 " %" PRId64 " %" PRId64, s.overlap()->work(), s.overlap()->proved_upper(),
                    s.overlap()->root_upper());
    }
    for (const Prover* p : s.provers()) {
        std::printf(" messages %" PRId64 " %" PRId64 " %" PRId64, p->work(), p->proved_upper(), p->root_upper());
        for (const auto& level : p->bounds().levels()) {
            const BoundLevelStatistics& of = level->statistics;
            std::printf(" (%" PRId64 " %" PRId64 " %" PRId64 ")", of.tried, of.pruned, of.sweeps);
        }
    }
    std::printf("%s%s\n", s.fault().empty() ? "" : " fault ", s.fault().c_str());
}

void show(const Proof& p) {
    Digest d;
    d.add(p.variable).add(p.cut).add(p.multiplier).add(p.exponent).add(p.message_offset).add(p.message_factor);
    d.add(p.message_variable).add(p.run_offset).add(p.run_start).add(p.run_value).add(p.factor_offset);
    d.add(p.factor_group).add(p.row_shift);
    std::printf("  proof complete %d nodes %zu sweeps %" PRId64 " bytes %016" PRIx64 " %s\n", p.complete ? 1 : 0,
                p.variable.size(), p.sweeps, d.sum(), p.reason.c_str());
}

struct Asked {
    Mode mode;
    Method method;
    std::int32_t parts;
};

// A search that stops and goes on, a proof of what it proved, and the same with other bounds.
void run(const Problem& p, const Asked& asked, std::uint64_t seed) {
    Search s(p, asked.mode, seed, -1);
    s.set_method(asked.method);
    s.set_audit(5);
    if (asked.parts > 0) s.set_together(schedule.together);
    s.set_parts(asked.parts);
    const std::int64_t nodes = asked.method == Method::overlap ? kDeepNodes : kNodes;
    s.run(-1, -1, 3);
    s.run(-1, -1, nodes);
    std::printf("mode %d method %d parts %d\n", static_cast<int>(asked.mode), static_cast<int>(asked.method),
                asked.parts);
    show("first", s);
    if (asked.method == Method::automatic && asked.parts == 0) {
        if (s.status() == Status::infeasible) show(s.certify(asked.mode == Mode::decide ? 0 : -1000, -1, kProofNodes));
        if (s.status() == Status::optimal) show(s.certify(s.upper() + 1, -1, kProofNodes));
    }
    if (s.status() == Status::open && s.reason() == Reason::internal) return;
    std::vector<std::int64_t> bound = p.bound;
    for (std::int32_t r = 0; r < p.constraints; ++r) bound[r] -= 1 + std::abs(bound[r]) / 16;
    s.reset(bound, asked.mode);
    s.run(-1, -1, nodes);
    show("other bounds", s);
}

void fix(const Problem& p) {
    const Fixing f = Search(p, Mode::decide, 1, -1).fix(2'000'000, true);
    std::printf("fixing %d cells %016" PRIx64 " leaves %016" PRIx64 " sweeps %" PRId64 " probes %" PRId64 "\n",
                f.infeasible ? 1 : 0, Digest().add(f.cells).sum(), Digest().add(f.leaves).sum(), f.sweeps, f.probes);
}

// A box of the cells, the least level, and the least cost.
void run_boxes(const Problem& p, const Forest& forest, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const SharedProblem whole(p, forest);
    std::vector<std::uint8_t> allowed(p.allowed);
    std::vector<std::int32_t> level;
    std::vector<std::int64_t> cost;
    for (std::int64_t k = 0; k < p.cells(); ++k) {
        if (random() % 4 == 0) allowed[static_cast<std::size_t>(k)] = 0;
        level.push_back(p.allowed[static_cast<std::size_t>(k)] ? static_cast<std::int32_t>(random() % 9) : -1);
        cost.push_back(p.allowed[static_cast<std::size_t>(k)] ? static_cast<std::int64_t>(random() % 90) : -1);
    }
    Restrictor restrictor(p, forest);
    const Mode mode = p.has_objective ? Mode::objective : Mode::decide;
    RestrictedSearch box(restrictor.restrict(allowed.data(), nullptr, p.bound, {}), mode, seed, -1, -1);
    box.run(-1, -1);
    std::printf("box %d nodes %" PRId64 " level %" PRId64 " upper %" PRId64 " point %016" PRIx64 "\n",
                static_cast<int>(box.status()), box.nodes(), box.level(), box.upper(), Digest().add(box.point()).sum());
    if (p.has_objective) return;
    LevelSearch levels(whole, level, p.bound, {}, seed, -1);
    levels.run(-1, -1);
    std::printf("level %d nodes %" PRId64 " decisions %" PRId64 " low %d high %d point %016" PRIx64 "\n",
                static_cast<int>(levels.status()), levels.nodes(), levels.decisions(), levels.low(), levels.high(),
                Digest().add(levels.best()).sum());
    CostSearch costs(whole, cost, p.bound, {}, -1, seed, -1);
    costs.run(-1, -1);
    std::printf("cost %d nodes %" PRId64 " low %" PRId64 " high %" PRId64 " point %016" PRIx64 "\n",
                static_cast<int>(costs.status()), costs.nodes(), costs.low(), costs.high(),
                Digest().add(costs.best()).sum());
}

void dump(const Problem& p, const Forest& forest, std::uint64_t seed) {
    const bool large = p.leaves() > kLarge;
    std::vector<Mode> modes = {Mode::decide, Mode::slack};
    if (p.has_objective) modes.push_back(Mode::objective);
    for (const Mode mode : modes) {
        run(p, {mode, Method::automatic, 0}, seed);
        if (large) continue;
        for (const Method method : {Method::messages, Method::overlap, Method::both}) run(p, {mode, method, 0}, seed);
        if (mode != Mode::objective) continue;
        for (const std::int32_t parts : {1, 2}) run(p, {mode, Method::messages, parts}, seed);
    }
    fix(p);
    if (!large) run_boxes(p, forest, seed);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    if (argc > 2) set_schedule(argv[2]);
    std::ifstream in(argv[1]);
    Arrays arrays;
    for (std::uint64_t number = 0; read(in, arrays); ++number) {
        try {
            const Problem p = problem_of(arrays);
            const Forest forest = build_forest(p);
            std::printf("problem %" PRIu64 " leaves %" PRId64 "\n", number, p.leaves());
            dump(p, forest, number);
        } catch (const std::invalid_argument& refused) {
            std::printf("problem %" PRIu64 " %s\n", number, refused.what());
        }
    }
    return 0;
}
