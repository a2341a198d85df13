from collections.abc import Callable, Sequence
from typing import Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

SCORE_BITS: int
"""Scores as whole numbers stay below 2**SCORE_BITS: base, rounding, and the largest leaf of every tree, added up. All of the
engine checks the same limit (engine/problem/score_range.hpp)."""

def schedule() -> dict[str, tuple[int, int, int, str]]:
    """By name: (value, default, least value, sentence), see engine/problem/schedule.hpp."""

def set_schedule(text: str) -> None:
    """Changes numbers of the schedule between two searches: ``name=value,name=value``."""

def implied_clauses(
    *,
    variables: int,
    indptr: NDArray[np.int64],
    literals: NDArray[np.int32],
    asked: NDArray[np.int64],
    members: NDArray[np.int32],
    out: NDArray[np.uint8],
) -> None:
    """Sets out[i] to 1 if clause i of (asked, members) follows from the other clauses by unit propagation. Both lists are in
    CSR form; a literal is 2 * variable, plus 1 for a negation. Raises ValueError for an empty known clause.
    """

class CheckedTrees:
    """The trees of a model, checked once, for all of the engine; treesens.compiler.model.cell_trees documents the arrays.

    They are read without a copy, and must not change.
    """

    def __init__(
        self,
        *,
        root: NDArray[np.int32],
        feature: NDArray[np.int32],
        cut: NDArray[np.int32],
        left: NDArray[np.int32],
        right: NDArray[np.int32],
        leaf: NDArray[np.int32],
        default_left: NDArray[np.uint8],
        category_set: NDArray[np.int32],
        set_offset: NDArray[np.int64],
        set_member: NDArray[np.uint8],
        missing_cell: NDArray[np.int32],
        cell_count: NDArray[np.int32],
    ) -> None: ...
    def reach_leaves(
        self, cells: NDArray[np.int32], out: NDArray[np.int32], numbers: NDArray[np.int32] | None = None
    ) -> None:
        """The leaf of every row in every tree, or in those with some numbers."""

    def flip_profiles(
        self,
        cells: NDArray[np.int32],
        leaf_value: NDArray[np.int64],
        flipped: int,
        allowed: NDArray[np.uint8],
        highest: NDArray[np.int64],
        lowest: NDArray[np.int64],
        highest_cell: NDArray[np.int32],
        lowest_cell: NDArray[np.int32],
    ) -> None:
        """The extremes of a sum of leaves over the allowed cells of one feature, for every row."""

Status = Literal["open", "witness", "infeasible", "optimal"]
Reason = Literal["", "time", "nodes", "memory", "stopped", "internal"]

class Ended(TypedDict):
    """How a search did: without a verdict it is `open`, for a `reason` (`time`, `nodes`, `memory`, `stopped`, `internal`, or
    none so far). With a `fault` the engine contradicts itself.
    """

    status: Status
    reason: Reason
    fault: str

class SearchFacts(Ended):
    """What a search knows. Levels and bounds are whole numbers in the units of the rows."""

    audited: int
    assignment: list[int]
    slack: list[int]
    is_witness: bool
    hard: int
    level: int
    upper: int
    restarts: int
    seconds_factors: float
    seconds_local: float
    seconds_prove: float
    peak_bytes: int
    entries: int
    bound_levels: dict[str, tuple[int, int, int]]
    nodes: NotRequired[int]
    closed: NotRequired[int]
    pruned_by_clauses: NotRequired[int]
    multiplier_steps: NotRequired[int]
    deepest: NotRequired[int]
    parts: NotRequired[int]
    bound_level: NotRequired[str]

class FixingFacts(TypedDict):
    infeasible: bool
    cells: list[bool]
    leaves: list[bool]
    sweeps: int
    probes: int

class ProofFacts(TypedDict):
    """A proof as arrays, see engine/certify/proof.hpp; `reason` says why it is not complete."""

    complete: bool
    reason: str
    variable: list[int]
    cut: list[int]
    multiplier: list[int]
    exponent: list[int]
    message_offset: list[int]
    message_factor: list[int]
    message_variable: list[int]
    run_offset: list[int]
    run_start: list[int]
    run_value: list[int]
    factor_offset: list[int]
    factor_group: list[int]
    row_shift: list[int]
    sweeps: int

class RestrictedFacts(Ended):
    point: list[int]
    nodes: int
    seconds_local: float
    seconds_prove: float
    level: int
    upper: int

class LeftFacts(TypedDict):
    """What a box leaves of a problem, see engine/problem/restricted.hpp."""

    problem: bool
    failing_row: int
    variable: list[int]
    cell_offset: list[int]
    cell: list[int]
    group: list[int]

class CostFacts(Ended):
    point: list[int]
    low: int
    high: int
    nodes: int

class LevelFacts(CostFacts):
    decisions: int

class PointTrees(TypedDict):
    """What one point of a question sees, see engine/levels/cell_problem.hpp."""

    trees: CheckedTrees
    variable: NDArray[np.int32]
    first_leaf: NDArray[np.int64]
    first_tree: int
    rows: list[tuple[int, NDArray[np.int64]]]

class ShareFacts(TypedDict):
    nodes: int
    open_boxes: int
    full_boxes: int
    full: float
    open: float
    stuck: float
    relative_error: float

class NearestPairs:
    """Branch and bound around rows; treesens.extensions.answers.pair_search.RowSearch documents the arrays."""

    def __init__(
        self,
        *,
        trees: CheckedTrees,
        leaf_value: NDArray[np.int64],
        varied: NDArray[np.uint8],
        legal: NDArray[np.uint8],
        value_low: NDArray[np.float64],
        value_high: NDArray[np.float64],
        unit: NDArray[np.float64],
        same_or_not: NDArray[np.uint8],
        norm: int,
        has_sides: bool,
        top: int,
        bottom: int,
        has_swing: bool,
        swing: int,
        slack: int,
        values: NDArray[np.float64],
        own: NDArray[np.int32],
    ) -> None: ...
    def run(
        self,
        active: NDArray[np.uint8],
        first: int,
        cutoff: float,
        boxes: int,
        seconds: float,
        stopped: Callable[[], bool],
        closed: NDArray[np.uint8],
        pair: NDArray[np.int32],
    ) -> tuple[int, int, float, bool]: ...
    def around(
        self,
        row: int,
        cutoff: float,
        boxes: int,
        seconds: float,
        stopped: Callable[[], bool],
        pair: NDArray[np.int32],
    ) -> tuple[int, int, float, bool]: ...
    def descend(
        self,
        order: NDArray[np.int64],
        first: int,
        cutoff: float,
        seconds: float,
        stopped: Callable[[], bool],
        pair: NDArray[np.int32],
    ) -> tuple[int, int, float, bool]: ...

class Search:
    """Raw form of treesens.backends.native.solver.Solver, which documents it; SearchProblem documents the arrays."""

    def __init__(
        self,
        *,
        size: NDArray[np.int32],
        feature: NDArray[np.int32],
        allowed: NDArray[np.uint8],
        group_tree: NDArray[np.int32],
        group_offset: NDArray[np.int64],
        leaf_offset: NDArray[np.int64],
        box_offset: NDArray[np.int64],
        literal_variable: NDArray[np.int32],
        literal_low: NDArray[np.int32],
        literal_high: NDArray[np.int32],
        coefficient_offset: NDArray[np.int64],
        coefficient_row: NDArray[np.int32],
        coefficient_value: NDArray[np.int64],
        bound: NDArray[np.int64],
        slack_weight: NDArray[np.uint8],
        objective: bool,
        unary_row: NDArray[np.int32],
        unary_variable: NDArray[np.int32],
        unary_cell: NDArray[np.int32],
        unary_value: NDArray[np.int64],
        clause_offset: NDArray[np.int64],
        clause_variable: NDArray[np.int32],
        clause_low: NDArray[np.int32],
        clause_high: NDArray[np.int32],
        hints: NDArray[np.int32],
        mode: str,
        seed: int,
        max_bytes: int,
    ) -> None: ...
    def run(self, slice: float, seconds: float, node_limit: int) -> None: ...
    def stop(self) -> None: ...
    def clear_stop(self) -> None: ...
    def reset(self, bound: NDArray[np.int64], mode: str) -> None: ...
    def set_threads(self, threads: int) -> None: ...
    def set_audit(self, every: int) -> None: ...
    def set_method(self, name: str) -> None: ...
    def set_together(self, entries: int) -> None: ...
    def set_parts(self, depth: int) -> None: ...
    def set_gap(self, relative: float, absolute: int, reference: int) -> None: ...
    def fix(self, work: int, probe: bool) -> FixingFacts: ...
    def certify(self, level: int, seconds: float, node_limit: int) -> ProofFacts: ...
    def result(self) -> SearchFacts: ...

class CellProblem:
    """A problem straight from trees over cells; treesens.backends.native.tree_question documents the arrays."""

    def __init__(
        self,
        *,
        points: Sequence[PointTrees],
        size: NDArray[np.int32],
        feature: NDArray[np.int32],
        bound: NDArray[np.int64],
        clause_offset: NDArray[np.int64],
        clause_variable: NDArray[np.int32],
        clause_low: NDArray[np.int32],
        clause_high: NDArray[np.int32],
        objective: bool = False,
    ) -> None: ...
    def groups(self) -> list[tuple[list[int], int]]: ...
    def nodes(self) -> int: ...

class SharedProblem:
    """The problem of a search, or one from trees over cells, that many restricted searches ask."""

    def __init__(self, problem: Search | CellProblem) -> None: ...

class RestrictedSearch:
    """Is there a solution within a box of cells, or which one is best?"""

    def __init__(
        self,
        problem: SharedProblem,
        allowed: NDArray[np.uint8],
        bound: NDArray[np.int64],
        hints: NDArray[np.int32],
        seed: int,
        max_bytes: int,
        first_look: int,
        threads: int = 1,
        objective: bool = False,
    ) -> None: ...
    def set_gap(self, relative: float, absolute: int, reference: int) -> None: ...
    def run(self, slice: float, seconds: float) -> None: ...
    def stop(self) -> None: ...
    def clear_stop(self) -> None: ...
    def left(self) -> LeftFacts: ...
    def certify(self, seconds: float, node_limit: int) -> ProofFacts: ...
    def result(self) -> RestrictedFacts: ...

class LevelSearch:
    """The least level of a solution."""

    def __init__(
        self,
        problem: SharedProblem,
        level: NDArray[np.int32],
        bound: NDArray[np.int64],
        hints: NDArray[np.int32],
        seed: int,
        max_bytes: int,
    ) -> None: ...
    def run(self, slice: float, seconds: float) -> None: ...
    def stop(self) -> None: ...
    def clear_stop(self) -> None: ...
    def result(self) -> LevelFacts: ...

class CostSearch:
    """The solution of least cost, a sum over cells."""

    def __init__(
        self,
        problem: SharedProblem,
        cost: NDArray[np.int64],
        bound: NDArray[np.int64],
        hints: NDArray[np.int32],
        most: int,
        seed: int,
        max_bytes: int,
    ) -> None: ...
    def run(self, slice: float, seconds: float) -> None: ...
    def stop(self) -> None: ...
    def clear_stop(self) -> None: ...
    def result(self) -> CostFacts: ...

class ValueTrees:
    """The trees of a model, with the values of one output; treesens.extensions.answers.regions.value_trees gives the arrays."""

    def __init__(
        self,
        *,
        trees: CheckedTrees,
        leaf_value: NDArray[np.int64],
        base: int,
        slack: int,
    ) -> None: ...

class RegionGrower:
    """Regions of one question: rows are (scores, costs, bound >> 62, rest of the bound), see extensions/answers/regions.py."""

    def __init__(
        self,
        *,
        scores: list[ValueTrees],
        score_point: NDArray[np.int32],
        points: int,
        shared: NDArray[np.uint8],
        ordered: NDArray[np.uint8],
        legal: NDArray[np.uint8],
        rows: list[tuple[list[tuple[int, int]], list[tuple[int, int, NDArray[np.int64]]], int, int]],
        sets: list[list[tuple[int, NDArray[np.uint8]]]],
        avoided: list[tuple[int, NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]],
        cells: NDArray[np.int32],
        missing_cell: NDArray[np.int32],
    ) -> None: ...
    def leaf_region(self, cells: NDArray[np.int32]) -> bytes: ...
    def region(self, cells: NDArray[np.int32]) -> bytes: ...

class ShareSearch:
    """Branch and bound for a share of a measure; treesens.extensions.measure documents the arrays."""

    def __init__(
        self,
        *,
        trees: CheckedTrees,
        values: NDArray[np.int64],
        base: NDArray[np.int64],
        varied: NDArray[np.int32],
        choices: NDArray[np.int32],
        first: NDArray[np.int64],
        second: NDArray[np.int64],
        compared: NDArray[np.int32],
        apart_counts: bool,
        apart: NDArray[np.int64],
        allowed: NDArray[np.uint8],
        bin: NDArray[np.int32],
        weight: NDArray[np.int64],
        parent: NDArray[np.int32],
        order: NDArray[np.int32],
        table: NDArray[np.float64],
    ) -> None: ...
    def run(self, enough: float, most_boxes: int, most_nodes: int, seconds: float) -> None: ...
    def progress(self) -> ShareFacts: ...
    def propose(
        self,
        part: NDArray[np.float64],
        cell_count: NDArray[np.int32],
        bin: NDArray[np.int32],
        weight: NDArray[np.int64],
        parent: NDArray[np.int32],
        order: NDArray[np.int32],
        table: NDArray[np.float64],
        ratio: NDArray[np.float64],
    ) -> None: ...
    def heaviest(self) -> float: ...
    def sample(
        self, count: int, most_hits: int, seed: int
    ) -> tuple[int, NDArray[np.float64], NDArray[np.float64], NDArray[np.int32], NDArray[np.float64]]: ...
    def shortfalls(self, cells: NDArray[np.int32], cell_count: NDArray[np.int32], out: NDArray[np.float64]) -> None: ...
    def draw_full(self, count: int, seed: int) -> list[int]: ...
    def largest_full(self, count: int) -> list[tuple[list[int], list[int], float]]: ...
    def answers(self, cells: NDArray[np.int32], cell_count: NDArray[np.int32], out: NDArray[np.uint8]) -> None: ...
    def mass(self, low: NDArray[np.int32], high: NDArray[np.int32], cell_count: NDArray[np.int32]) -> float: ...
