"""Answers `count rows of DATA`: the number of rows of a table that the first point can equal.

With one point, all rows are decided at once. With two points, each row needs a partner:

1. Constraints that mention only the first point exclude rows. 2. One sweep over the features that may differ (data/flips.py)
   gives the partners with the extreme scores. The row is counted if one of these partners satisfies all constraints; it is not
   counted if even the extreme scores fail a constraint. 3. If the features that may differ have few combinations of cells, all
   combinations are tried (`partners_of`).
4. The native engine searches for a partner in the cells of each remaining row, with one compiled question for all rows.
5. Remaining rows, and all rows with other backends, are solved one by one as the question with `P = row N of DATA`.

A row counts if exact arithmetic, the library's arithmetic and (if it is run) the library itself agree on this. A row does not
count if exact arithmetic proves this. All other rows are undecided, and the count is given by two bounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array
from treesens.compiler.base.budget import LEAST, Budget
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.model.evaluate import LibraryReplay
from treesens.compiler.query.dependencies import decided_by_cells, points_in
from treesens.compiler.query.evaluate import linear_constraints, reads_scores
from treesens.compiler.query.query import AtLeast, CellSet, Query, RowSet, SameExcept
from treesens.compiler.query.rounding import in_every_order, told_apart_anywhere
from treesens.compiler.query.values import DistanceTerm
from treesens.compiler.result import Result, RowCount, Verdict
from treesens.data.flips import Flips, combined_rows, flips, with_cells
from treesens.data.rows import cells_of_rows
from treesens.errors import BackendError
from treesens.extensions.answers.evaluate_rows import (
    ManyInputs,
    form_values,
    holds_everywhere,
    many_inputs,
    sums_of_cells,
    with_margins,
)
from treesens.extensions.answers.incremental import IncrementalSearch
from treesens.solve.conclude import conclude_found, conclude_none, leave_open
from treesens.solve.options import Options, for_engine
from treesens.values.contradictions import without_clashes
from treesens.values.relations import firm_relations
from treesens.values.verify import Witness, verify_cells, verify_values

_CHUNK = 512
"""Number of rows swept between two checks of the clock."""

_COMBINATIONS = 128
"""Maximum number of combinations of cells of all sensitive features but one for a sweep; above it, a search is faster."""

_ATTEMPTS = 4
"""Maximum number of exact partners per row that the library replays."""

_SLICE = 1.0
"""Maximum number of seconds on the cells of one row in the first round."""

MOST_COMBINATIONS = 2048
"""Maximum number of combinations of cells, over the features that may differ, that are all tried for every row."""


def count_rows(
    query: Query,
    pinned: Callable[[int], Query],
    options: Options,
    one: Callable[[Query, Budget], Result],
    budget: Budget,
    *,
    progress: Callable[[str], None] | None = None,
) -> Result:
    """The answer to a question with `rows`.

    `pinned(N)` is the question about row N of the table, and `one` solves such a question. All rows share the time limit; if
    the limit or a stop ends the count, the answer has bounds.
    """
    start = time.monotonic()
    counter = _Counter(without_clashes(query), options)
    if len(query.points) == 1:
        counter.judge_points()
    else:
        counter.judge_partners(budget)
        if options.backend in {"auto", "native"}:
            counter.search(budget, progress)
    reason = counter.ask(pinned, one, budget, progress)
    result = counter.result(reason)
    return replace(result, seconds={"build": 0.0, "solve": time.monotonic() - start}, pipeline=options.pipeline)


class _Counter:
    """The state of every row: `yes` and `no`, bool[rows], flag decided rows; others are open. `witnesses`: verified pairs."""

    def __init__(self, query: Query, options: Options) -> None:
        assert query.rows is not None
        self.query = query
        self.options = options
        self.rows: RowSet = query.rows
        self.cells: Int32Array = cells_of_rows(query.space.grid, self.rows.values)
        self.yes = np.zeros(len(self.rows.index), bool)
        self.no = np.zeros(len(self.rows.index), bool)
        self.witnesses: dict[int, Witness] = {}
        self.backend = "rows"

    # --- one point ------------------------------------------------------------------------------------------------------

    def judge_points(self) -> None:
        """Decides all rows of a question whose only point is the row itself; only rows inside the numerical band stay open."""
        x = many_inputs(self.query, self.rows.values[None], self.cells[None])
        exact = holds_everywhere(self.query.constraints, x)
        self.no = ~exact
        self._accept(np.flatnonzero(exact), x.take(np.flatnonzero(exact)))

    def _accept(self, places: Int64Array, x: ManyInputs) -> None:
        """Counts rows whose points satisfy the question exactly, and also in the library."""
        if len(places) == 0:
            return
        agrees = self._library_agrees(x, None)
        if self.options.library_predict is not None:
            agrees &= self._library_agrees(x, self.options.library_predict)
        self.yes[places[agrees]] = True
        if agrees.any():
            first = int(np.flatnonzero(agrees)[0])
            verdict = verify_values(self.query, x.values[:, first], library_predict=self.options.library_predict)
            if isinstance(verdict, Witness):
                self.witnesses[int(places[first])] = verdict

    def _library_agrees(self, x: ManyInputs, library_predict: Sequence[LibraryReplay] | None) -> BoolArray:
        """True for rows that satisfy every score constraint with the library's scores, bool[rows]."""
        margins = []
        for number, point in enumerate(self.query.points):
            model = self.query.models[point.model].ensemble
            margins.append(
                (model.margins_emulated if library_predict is None else library_predict[point.model])(x.values[number])
            )
        scored = [
            told_apart_anywhere(self.query, in_every_order(self.query, c))
            for c in self.query.constraints
            if reads_scores(c)
        ]
        return holds_everywhere(scored, with_margins(self.query, x, margins))

    # --- two points -----------------------------------------------------------------------------------------------------

    def judge_partners(self, budget: Budget) -> None:
        """Excludes rows that cannot be the first point, and counts rows that have a partner among the tried points."""
        alone = [c for c in self.query.constraints if points_in(c) <= {0}]
        twice = np.stack([self.rows.values, self.rows.values])
        same = many_inputs(self.query, twice, np.stack([self.cells, self.cells]))
        self.no = ~holds_everywhere(alone, same)
        links = [c for c in self.query.constraints if isinstance(c, SameExcept)]
        places = np.flatnonzero(~self.no)
        self._try(places, same.take(places))
        if not links:
            return
        varied = tuple(sorted(frozenset.intersection(*(link.varied for link in links))))
        if not varied:
            exact = np.flatnonzero(~self.no & ~self.yes)
            self.no[exact[~holds_everywhere(self.query.constraints, same.take(exact))]] = True
            return
        legal = self._legal_of_partner(varied)
        if legal is None:
            self.no[:] = True
            return
        self._sweep(varied, legal, same, budget)
        self._try_all(varied, legal, budget)

    def _legal_of_partner(self, varied: tuple[int, ...]) -> list[BoolArray] | None:
        """The cells that the second point may have, bool[n_cells] per feature; None if a feature has no such cell."""
        legal = list(self.query.space.legal)
        for chosen in self.query.constraints:
            if isinstance(chosen, CellSet) and chosen.point == 1 and chosen.feature in varied:
                legal[chosen.feature] = legal[chosen.feature] & chosen.mask
        return legal if all(legal[f].any() for f in varied) else None

    def _try_all(self, varied: tuple[int, ...], legal: list[BoolArray], budget: Budget) -> None:
        """Decides rows by trying every combination of the partner's cells, if these are few and decide all constraints."""
        waiting = np.flatnonzero(~self.no & ~self.yes)
        for places, holds, combinations in partners_of(self.query, varied, self.cells, waiting, legal, budget):
            self.no[places] = ~holds.any(axis=1)
            # The library's arithmetic may reject one partner and accept another.
            for attempt in range(_ATTEMPTS):
                ranks = np.cumsum(holds, axis=1)
                open_rows = np.flatnonzero((ranks[:, -1] > attempt) & ~self.yes[places])
                if len(open_rows) == 0:
                    break
                chosen = combinations[(ranks[open_rows] > attempt).argmax(axis=1)]
                self._try(places[open_rows], self._partners(varied, places[open_rows], chosen))

    def _try(self, places: Int64Array, x: ManyInputs) -> None:
        """Counts the rows at `places` for which the points `x` satisfy all constraints."""
        good = np.flatnonzero(holds_everywhere(self.query.constraints, x))
        self._accept(places[good], x.take(good))

    def _sweep(self, varied: tuple[int, ...], legal: list[BoolArray], same: ManyInputs, budget: Budget) -> None:
        """Tries the partners with the highest and the lowest score of every output constrained at the second point."""
        query, model = self.query, self.query.points[1].model
        outputs = {t.output for row in linear_constraints(query.constraints) for t in row.form.scores if t.point == 1}
        for output in sorted(outputs):
            for chunk in np.split(np.arange(len(self.yes)), range(_CHUNK, len(self.yes), _CHUNK)):
                if budget.over:
                    return
                places = chunk[~self.no[chunk] & ~self.yes[chunk]]
                if len(places) == 0:
                    continue
                cells, found_in = self.cells[places], query.models[model]
                found = flips(found_in, cells, varied, legal, index=places, output=output, limit=_COMBINATIONS)
                self._rule_out(found, output, same.take(places))
                for reached in (found.highest_cells, found.lowest_cells):
                    waits = ~self.no[places] & ~self.yes[places]
                    self._try(places[waits], self._partners(varied, places[waits], reached[waits]))

    def _partners(self, varied: tuple[int, ...], places: Int64Array, reached: Int32Array) -> ManyInputs:
        """The rows at `places`, with the cells `reached`, int32[places, varied], at the second point."""
        rows, cells = self.rows.values[places], np.stack([self.cells[places]] * 2)
        cells[1][:, varied] = reached
        near = rows.copy()
        for relation in firm_relations(self.query.constraints):
            for term in relation.terms:
                if isinstance(term, DistanceTerm) and term.point == 1 and term.other is None and not np.isnan(term.row):
                    near[:, term.feature] = term.row  # the distance to a row is that of the nearest value in the cell
        values = np.stack([rows, with_cells(self.query.space, rows, varied, reached, near)])
        return many_inputs(self.query, values, cells)

    def _rule_out(self, found: Flips, output: int, same: ManyInputs) -> None:
        """Excludes the rows for which even the partner's best score violates a constraint."""
        if not found.complete:
            return
        for row in self.query.constraints:
            if not isinstance(row, AtLeast) or row.form.changes or row.form.pairs or row.form.levels:
                continue
            if any(c.point == 1 for c in row.form.costs) or any(t.point == 1 for t in row.form.forests):
                continue
            partner = [t for t in row.form.scores if t.point == 1]
            if len(partner) != 1 or partner[0].output != output:
                continue
            rest = replace(row.form, scores=tuple(t for t in row.form.scores if t.point == 0))
            fixed, shift, whole = form_values(rest, same)
            factor = partner[0].coefficient
            # Scores are rounded down by less than `slack`, so the true score may be higher.
            best = found.highest + found.slack if factor > 0 else found.lowest
            unit = Unit(found.shift).size * factor
            low = row.bound.enclose(128)[0]
            for i, place in enumerate(found.index):
                if Fraction(int(fixed[i]), whole << shift) + int(best[i]) * unit < low:
                    self.no[place] = True

    def search(self, budget: Budget, progress: Callable[[str], None] | None) -> None:
        """Searches for partners in the cells of the open rows. Rows whose cells are proved empty are excluded."""
        places = np.flatnonzero(~self.no & ~self.yes)
        if len(places) == 0:
            return
        bare = replace(self.query, rows=None, objective=None)
        features = range(len(self.query.space.names))
        try:
            engine = IncrementalSearch(bare, 0, features, **for_engine(self.options))
        except BackendError:
            return  # solved one by one
        if engine.decided is not None:
            self.no[places] = True
            return
        distinct, group = np.unique(self.cells[places], axis=0, return_inverse=True)
        for number, cells in enumerate(distinct):
            if not budget.worthwhile:
                return
            if progress is not None:
                progress(f"rows {number + 1} of {len(distinct)} that need a search")
            inside = {f: np.where(np.arange(len(bare.space.legal[f])) == cells[f], 0.0, np.inf) for f in features}
            solved = engine.solve(inside, 0.0, min(budget.left(), _SLICE), budget.stop, optimize=False)
            places_of_group = places[group == number]
            self.no[places_of_group] = solved.empty
            if solved.cells is not None:
                self.backend = "native"
                for equal in self._equal(places_of_group):
                    self._verify(bare, equal, solved.cells)

    def _equal(self, places: Int64Array) -> list[list[int]]:
        """The places of the open rows in groups of equal rows; a result for one row holds for its whole group."""
        found: dict[bytes, list[int]] = {}
        for place in places:
            found.setdefault(self.rows.values[place].tobytes(), []).append(int(place))
        return list(found.values())

    def _verify(self, bare: Query, equal: list[int], cells: Int32Array) -> None:
        """Counts equal rows if the first point, in these cells, can equal the row exactly."""
        row = self.rows.values[equal[0]]
        verdict = verify_cells(bare, cells, near=row, library_predict=self.options.library_predict)
        if isinstance(verdict, Witness) and np.array_equal(verdict.values[0], row, equal_nan=True):
            self.yes[equal] = True
            self.witnesses[equal[0]] = verdict

    # --- row by row -----------------------------------------------------------------------------------------------------

    def ask(
        self,
        pinned: Callable[[int], Query],
        one: Callable[[Query, Budget], Result],
        budget: Budget,
        progress: Callable[[str], None] | None,
    ) -> str:
        """Solves the open rows, once per group of equal rows; returns the reason why some rows stay open."""
        waiting = np.flatnonzero(~self.no & ~self.yes)
        left_open, reason = 0, ""
        if len(self.query.points) == 1:
            # The row determines every value, so no search is needed.
            return "numerical band" if len(waiting) else ""
        equal = self._equal(waiting)
        for done, places in enumerate(equal):
            if not budget.worthwhile:
                return budget.reason
            left = budget.left()
            if progress is not None:
                progress(f"row {done + 1} of {len(equal)} that need a search")
            share = max(LEAST, left / (len(equal) - done), min(left, 1.0))
            result = one(pinned(int(self.rows.index[places[0]])), budget.within(share))
            self.backend = result.backend
            self.no[places] = result.verdict is Verdict.NONE
            self.yes[places] = result.verdict is Verdict.FOUND
            if result.witness is not None:
                self.witnesses[places[0]] = result.witness
            if result.verdict is Verdict.UNKNOWN:
                left_open, reason = left_open + 1, result.reason
        return reason if left_open else ""

    def result(self, reason: str) -> Result:
        """The count: `found` if a row counts, `none` if it is proved that no row counts."""
        index = self.rows.index
        first = min(self.witnesses, default=0)
        count = RowCount(
            rows=tuple(int(i) for i in index[self.yes]),
            undecided=tuple(int(i) for i in index[~self.yes & ~self.no]),
            total=len(index) + self.rows.outside,
            outside=self.rows.outside,
            shown=int(index[first]) if self.witnesses else None,
        )
        witness = self.witnesses.get(first)
        bare = leave_open(self.query.name, reason, witness=witness, backend=self.backend, count=count)
        if count.rows:
            return conclude_found(bare, "verified" if not count.undecided else f"between two numbers: {reason}")
        return bare if count.undecided else conclude_none(bare, "no row counts")


def partners_of(
    query: Query,
    varied: tuple[int, ...],
    cells: Int32Array,
    places: Int64Array,
    legal: Sequence[BoolArray],
    budget: Budget,
) -> Iterator[tuple[Int64Array, BoolArray, Int32Array]]:
    """Decides the rows at `places` of `cells`, int32[rows, features], in batches until the time limit. Yields places, flags of
    combinations that hold, bool[rows, combinations], and the combinations' cells, int32[combinations, varied].

    No extreme score decides a disjunction, and a search for each row is slow. If cells alone decide whether a pair satisfies
    the question, all combinations of cells are tried at once. If no combination holds for a row, exact arithmetic proves that
    the row does not count; a combination that holds is a partner to be replayed. Yields nothing if values decide a constraint,
    or if there are too many combinations. `legal[f]` flags the cells of feature f that the second point may have.
    """
    constraints = [c for c in query.constraints if not isinstance(c, SameExcept)]
    size = math.prod(int(legal[f].sum()) for f in varied)
    if len(query.points) != 2 or size > MOST_COMBINATIONS or not all(map(decided_by_cells, constraints)):
        return
    options = [np.flatnonzero(legal[f]) for f in varied]
    for batch, combinations, tried in combined_rows(cells[places], varied, options, budget):
        other = tried.reshape(-1, tried.shape[2])
        own = np.repeat(tried[:, 0], tried.shape[1], axis=0)
        # The row's own scores are the same in all of its pairs and are computed once. No constraint depends on values.
        first, second = (
            sums_of_cells(query, p.model, x) for p, x in zip(query.points, (tried[:, 0], other), strict=True)
        )
        scores = first[np.repeat(np.arange(len(batch)), tried.shape[1])], second
        pairs = ManyInputs(np.empty((2, len(own), 0)), np.stack([own, other]), scores)
        yield places[batch], holds_everywhere(constraints, pairs).reshape(tried.shape[:2])[:, 1:], combinations
