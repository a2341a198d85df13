"""Runs the native engine in short slices, so that an interruption or a time limit takes effect immediately."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from treesens._engine import Search
from treesens.backends.native.problem import Mode, SearchProblem
from treesens.compiler.base.budget import Budget, OutOfTime, check_in

if TYPE_CHECKING:
    from treesens._engine import ProofFacts, SearchFacts

_Facts = TypeVar("_Facts")

HELP_BYTES = 2_000_000_000
"""Memory limit of the engine in a pass that uses it (bound-fixing, warm-start); beyond this limit, the engine declines."""
SLICE = 0.05  # seconds between two checks for signals
_LOOK_SECONDS = 0.1  # seconds between two checks of the limits around a pass
MOMENT = 0.05  # seconds of work that run without a thread
PAUSE = 0.1  # further seconds until work that cannot pause is aborted without effect
UNKNOWN = 2**63 - 1
Method = Literal["auto", "messages", "overlap", "both"]
Status = Literal["open", "witness", "infeasible", "optimal"]
Reason = Literal["", "time", "nodes", "memory", "stopped", "internal"]


@dataclass(frozen=True)
class TierStatistics:
    """Per bound level: the numbers of nodes on which it was tried, of nodes that it pruned, and of its sweeps."""

    tried: int
    pruned: int
    sweeps: int


@dataclass(frozen=True)
class SearchStatistics:
    """The work of the search, summed over all runs on the same bounds."""

    nodes: int
    closed: int
    pruned_by_clauses: int
    multiplier_steps: int
    deepest: int
    parts: int
    restarts: int
    entries: int
    peak_bytes: int
    seconds_build: float
    seconds_factors: float
    seconds_local: float
    seconds_prove: float
    bound_levels: dict[str, TierStatistics]


@dataclass(frozen=True)
class SearchResult:
    """Termination, incumbent and bound are three separate facts.

    status: ``witness`` (decide: an assignment that satisfies everything), ``infeasible`` (proved),
        ``optimal`` (proved within the gap), or ``open``.
    reason: why an ``open`` run ended.
    assignment: [V] the best cells found: a witness, or the best near-miss; None while nothing satisfies the clauses.
    is_witness: True if the assignment satisfies every constraint (exact integers).
    slack: [C] exact slack of every constraint at the assignment.
    objective: exact objective at the assignment (mode ``objective``), else None.
    level: the maximised value: the objective, or the minimum slack over the rows with slack_weight; None without
        assignment.
    upper: no assignment (that satisfies the hard rows) has a larger level; None while nothing is proved.
    bound_level: where the prover stopped.
    fault: an internal inconsistency detected by the engine, if the reason is ``internal``; then nothing is proved.
    audited: pruned nodes that were checked again.
    """

    status: Status
    reason: Reason
    assignment: NDArray[np.int32] | None
    is_witness: bool
    slack: NDArray[np.int64]
    objective: int | None
    level: int | None
    upper: int | None
    bound_level: str
    statistics: SearchStatistics
    fault: str = ""
    audited: int = 0


@dataclass(frozen=True)
class Fixing:
    """Cells and leaves that no solution uses.

    Attributes:
        infeasible: True if no solution exists.
        cells: [N] False where no solution uses the cell; variables one after the other.
        leaves: [L] False where no solution reaches the leaf.
        sweeps, probes: work done.
    """

    infeasible: bool
    cells: NDArray[np.bool_]
    leaves: NDArray[np.bool_]
    sweeps: int
    probes: int


Watch = Callable[[SearchResult], None]


class Solver:
    """One problem, one resumable state.

    ``run`` resumes where the last call stopped. ``reset`` restarts the search with other bounds or in another mode, and keeps
    factors, messages, points and proofs; verdicts are carried over if they are monotone (a witness remains valid for all
    smaller bounds, a proof for all larger bounds). With several ``threads``, a long search is divided among them (ADR 0009):
    verdicts and levels are the same, but the point may differ; a search with one thread is deterministic. For tests, one of
    every ``audit`` pruned nodes is checked again independently (0: none). ``method`` selects the prover: ``messages``,
    ``overlap`` (deep trees), ``both`` in turns, or ``auto``, which selects by the depth of the trees. If ``together`` is not 0,
    trees share factors of this many entries from the beginning, not only in a long search (ADR 0013). With ``parts``, nodes at
    this depth become separate problems from the beginning, not only in a long search (ADR 0016).

    Raises:
        ValueError: the arrays are inconsistent.
        MemoryError: the problem itself does not fit in ``max_bytes``.
    """

    def __init__(
        self,
        problem: SearchProblem,
        *,
        mode: Mode = "decide",
        seed: int = 0,
        max_bytes: int | None = None,
        threads: int = 1,
        audit: int = 0,
        method: Method = "auto",
        together: int | None = None,
        parts: int | None = None,
    ) -> None:
        start = time.perf_counter()
        self.problem = problem
        self.mode: Mode = mode
        self._stopped = False
        self._engine = Search(
            **problem.arrays(), mode=mode, seed=seed, max_bytes=-1 if max_bytes is None else max_bytes
        )
        self._engine.set_threads(threads)
        self._engine.set_audit(audit)
        self._engine.set_method(method)
        if together is not None:
            self._engine.set_together(together)
        if parts is not None:
            self._engine.set_parts(parts)
        self._build = time.perf_counter() - start

    def set_gap(self, *, relative: float = 0.0, absolute: int = 1, reference: int = 0) -> None:
        """Maximisation stops when the bound is within the gap; the relative gap applies to |level + reference|.

        Takes effect before the first ``run`` and after a ``reset``.
        """
        self._engine.set_gap(relative=relative, absolute=absolute, reference=reference)

    def reset(self, bound: Sequence[int] | NDArray[np.int64] | None = None, *, mode: Mode | None = None) -> None:
        """Restarts with other bounds, another mode, or both."""
        self.mode = mode or self.mode
        new = self.problem.bound if bound is None else np.ascontiguousarray(bound, dtype=np.int64)
        self._engine.reset(bound=new, mode=self.mode)

    def stop(self) -> None:
        """Stops a ``run`` in another thread within about a millisecond."""
        self._stopped = True
        self._engine.stop()

    def run(
        self, seconds: float | None = None, *, node_limit: int | None = None, watch: Watch | None = None
    ) -> SearchResult:
        """Searches until there is an answer or a limit is reached; a KeyboardInterrupt leaves the state valid. `watch` sees the
        facts after every slice.
        """
        self._stopped = False
        self._engine.clear_stop()
        limit = float("inf") if seconds is None else seconds
        start = time.perf_counter()
        nodes = -1 if node_limit is None else node_limit
        while True:
            left = limit - (time.perf_counter() - start)
            before = int(self._engine.result().get("nodes", 0)) if node_limit is not None else 0
            self._engine.run(slice=min(SLICE, max(0.0, left)), seconds=max(0.0, left), node_limit=nodes)
            facts = self._engine.result()
            if node_limit is not None:
                nodes = max(0, nodes - (int(facts.get("nodes", 0)) - before))
            result = self._result(facts)
            if watch is not None:
                watch(result)
            if facts["status"] != "open" or facts["reason"] != "time" or left <= SLICE or self._stopped:
                return result

    def run_within(self, budget: Budget, watch: Watch | None = None) -> SearchResult:
        """As `run`, within a budget; the budget's event or a KeyboardInterrupt stops the search within MOMENT + PAUSE seconds.

        After a short first run, a single run does the rest. Consecutive short runs would make no progress: when a run's time is
        over, indivisible work such as setting up a prover is aborted, and the next run restarts it. The first run pauses only
        where the search can resume unchanged, because work aborted by the clock would make the search irreproducible.
        """
        self._stopped = False
        self._engine.clear_stop()
        left = budget.left()
        self._engine.run(slice=min(MOMENT, left), seconds=min(MOMENT + PAUSE, left), node_limit=-1)
        result = self.result()
        if watch is not None:
            watch(result)
        if result.status != "open" or result.reason != "time" or budget.over:
            return result

        def stop_if_asked() -> None:
            if budget.stop is not None and budget.stop.is_set():
                self.stop()

        return beside(lambda: self.run(budget.left(), watch=watch), self.stop, stop_if_asked)

    def fix(self, work: int, *, probe: bool = True) -> Fixing:
        """Cells and leaves whose max-marginal is negative at the bounds of the constraints: a proof, in exact integers.

        The objective is ignored. `work` is measured in accessed entries (about a nanosecond each), so that the result is the
        same on every machine; `probe` also tries runs of cells at the ends of every domain.
        """
        facts = self._beside(lambda: self._engine.fix(work=work, probe=probe))
        return Fixing(
            facts["infeasible"],
            np.array(facts["cells"], bool),
            np.array(facts["leaves"], bool),
            facts["sweeps"],
            facts["probes"],
        )

    def _beside(self, work: Callable[[], _Facts]) -> _Facts:
        return beside(work, self.stop)

    def certify(self, seconds: float, *, level: int = 0, nodes: int = 1 << 40) -> ProofFacts:
        """Proves again that no point reaches the level, as a tree of cuts with multipliers and messages (docs/certificates.md).

        `engine/certify/proof.hpp` describes the arrays. `complete` is False if a limit was reached; `reason` is this limit.
        """
        return certified(
            lambda limit: self._engine.certify(level=level, seconds=limit, node_limit=nodes), seconds, self.stop
        )

    def result(self) -> SearchResult:
        """The current facts."""
        return self._result(self._engine.result())

    def _result(self, facts: SearchFacts) -> SearchResult:
        present = bool(facts["assignment"])
        slack = np.array(facts["slack"], np.int64)
        rows = self.problem.constraints
        level = facts["level"] if present else None
        upper = facts["upper"]
        return SearchResult(
            status=facts["status"],
            reason=facts["reason"],
            assignment=np.array(facts["assignment"], np.int32) if present else None,
            is_witness=facts["is_witness"],
            slack=slack[:rows],
            objective=int(slack[rows]) if present and self.problem.objective else None,
            level=level,
            upper=None if upper == UNKNOWN else upper,
            bound_level=facts.get("bound_level", "local search"),
            fault=facts["fault"],
            audited=facts["audited"],
            statistics=SearchStatistics(
                nodes=facts.get("nodes", 0),
                closed=facts.get("closed", 0),
                pruned_by_clauses=facts.get("pruned_by_clauses", 0),
                multiplier_steps=facts.get("multiplier_steps", 0),
                deepest=facts.get("deepest", 0),
                parts=facts.get("parts", 0),
                restarts=facts["restarts"],
                entries=facts["entries"],
                peak_bytes=facts["peak_bytes"],
                seconds_build=self._build,
                seconds_factors=facts["seconds_factors"],
                seconds_local=facts["seconds_local"],
                seconds_prove=facts["seconds_prove"],
                bound_levels={name: TierStatistics(*row) for name, row in facts["bound_levels"].items()},
            ),
        )


def certified(prove: Callable[[float], ProofFacts], seconds: float, stop: Callable[[], None]) -> ProofFacts:
    """A proof made within `seconds`. The proof starts without a thread, because a thread costs as much as most proofs."""
    found = prove(min(seconds, MOMENT))
    if found["complete"] or found["reason"] != "time" or seconds <= MOMENT:
        return found
    return beside(lambda: prove(seconds), stop)


def beside(work: Callable[[], _Facts], stop: Callable[[], None], look: Callable[[], None] = check_in) -> _Facts:
    """Runs `work`, which cannot be interrupted, in a thread. Meanwhile the main thread handles Ctrl-C and calls `look` ten
    times a second; `look` raises if time runs out.
    """
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            while not future.done():
                look()
                wait([future], timeout=_LOOK_SECONDS)
            return future.result()
        except (KeyboardInterrupt, OutOfTime):
            stop()
            raise
