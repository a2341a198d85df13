#include "prove/work_sharing.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#include "problem/checked.hpp"

namespace treesens {

namespace {

constexpr std::chrono::milliseconds kNap{1};

}  // namespace

WorkSharing::WorkSharing(const Problem& problem, const Forest& forest, const Goal& goal, const FactorSets& sets,
                         const Gap& gap, MemoryBudget& budget, Prover& first, int threads, std::uint64_t seed,
                         std::int64_t quantum)
    : goal_(goal), first_(first), quantum_(quantum) {
    for (int i = 1; i < threads; ++i) {
        try {
            helpers_.push_back(std::make_unique<Helper>(problem, forest, goal, sets, gap, budget, seed + i));
        } catch (const MemoryLimit&) {
            return;
        }
        helpers_.back()->local.set_goal(goal);
    }
}

void WorkSharing::run(std::int64_t work, Incumbent& incumbent, LocalSearch& polisher, Control& control) {
    best_ = incumbent;
    error_ = nullptr;
    idle_workers_ = 0;
    over_ = false;
    workers_ = 1 + narrow<int>(helpers_.size());
    std::vector<std::thread> threads;
    for (auto& helper : helpers_) {
        helper->incumbent = incumbent;
        helper->control.follow(control);
        try {
            threads.emplace_back(
                [this, work, h = helper.get()] { run_worker(h->prover, h->incumbent, h->local, h->control, work); });
        } catch (const std::system_error&) {
            // No thread to be had. Its prover may hold a subtree: nobody may take the tree for finished.
            break;
        }
    }
    run_worker(first_, incumbent, polisher, control, work);
    for (std::thread& t : threads) t.join();
    if (best_.present()) incumbent.offer(best_.score, best_.x);
    if (error_) std::rethrow_exception(error_);
}

void WorkSharing::run_worker(Prover& prover, Incumbent& incumbent, LocalSearch& polisher, Control& control,
                             std::int64_t work) {
    try {
        const std::int64_t last = prover.work() + work;
        while (!over_ && !control.paused()) {
            if (prover.finished()) {
                if (!receive(prover, control)) return;
                // Cells of the subtree were taken away for the level of the giver: it must be no higher than ours.
                exchange(incumbent);
            }
            prover.run(quantum_, -1, incumbent, polisher, control);
            exchange(incumbent);
            if (incumbent.decides(goal_) || prover.work() >= last) end();
            donate(prover);
        }
    } catch (...) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            error_ = std::current_exception();
            subtree_lost_ = true;
        }
        end();
    }
}

void WorkSharing::end() {
    over_ = true;
    wake_.notify_all();
}

bool WorkSharing::receive(Prover& prover, Control& control) {
    OpenNode mine;
    {
        std::unique_lock<std::mutex> lock(mutex_);
        ++idle_workers_;
        while (waiting_.empty()) {
            // When all are hungry and nothing waits, the tree is finished.
            if (idle_workers_ == workers_) end();
            if (over_ || control.paused()) {
                --idle_workers_;
                return false;
            }
            wake_.wait_for(lock, kNap);
        }
        --idle_workers_;
        mine = std::move(waiting_.front());
        waiting_.pop_front();
    }
    prover.adopt(std::move(mine));
    return true;
}

void WorkSharing::donate(Prover& prover) {
    if (idle_workers_ == 0) return;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (narrow<int>(waiting_.size()) >= idle_workers_) return;
    }
    OpenNode put_off;
    if (!prover.donate(put_off)) return;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        waiting_.push_back(std::move(put_off));
    }
    wake_.notify_one();
}

void WorkSharing::exchange(Incumbent& incumbent) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (incumbent.present()) best_.offer(incumbent.score, incumbent.x);
    if (best_.present()) incumbent.offer(best_.score, best_.x);
}

bool WorkSharing::finished() const {
    return !subtree_lost_ && waiting_.empty() && first_.finished() &&
           std::all_of(helpers_.begin(), helpers_.end(), [](const auto& h) { return h->prover.finished(); });
}

std::int64_t WorkSharing::proved_upper() const {
    if (subtree_lost_) return first_.root_upper();
    std::int64_t bound = first_.proved_upper();
    for (const auto& h : helpers_) bound = std::max(bound, h->prover.proved_upper());
    for (const OpenNode& s : waiting_) bound = std::max(bound, s.upper);
    return std::min(bound, first_.root_upper());
}

void WorkSharing::set_audit(std::int64_t every) {
    for (auto& h : helpers_) h->prover.set_audit(every);
}

std::int64_t WorkSharing::work() const {
    std::int64_t sum = first_.work();
    for (const auto& h : helpers_) sum += h->prover.work();
    return sum;
}

std::vector<const Prover*> WorkSharing::helpers() const {
    std::vector<const Prover*> list;
    for (const auto& h : helpers_) list.push_back(&h->prover);
    return list;
}

}  // namespace treesens
