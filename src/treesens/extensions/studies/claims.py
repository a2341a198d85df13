"""Converts evidence into claims, whose parts can have certificates: one method per kind of result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import singledispatchmethod
from pathlib import Path
from typing import Any

from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query, pinned
from treesens.compiler.result import Certified, Result, Verdict
from treesens.extensions.certify.attach import form_limit, with_more
from treesens.extensions.certify.claims import having, lacking, not_beyond, reason_claim, values_of
from treesens.extensions.certify.share_claim import claim_of_counted, claim_of_interval
from treesens.extensions.certify.together import Claim, Part, between, each, known, open_claim
from treesens.extensions.measure.groups import groups_of
from treesens.extensions.measure.measures import rows_of_domain
from treesens.extensions.studies import evidence as kinds
from treesens.extensions.studies.study import Asking, Found
from treesens.solve.options import Options
from treesens.solve.question import answer


def claims_of(asked: Asking[Any], found: Found[Any]) -> Iterator[Claim]:
    """The claims of all records, in the order of the records, each with the index of its record."""
    options = asked.options
    maker = _Claims(options.time_limit, options.seed, options.certificates)
    for number, pieces in enumerate(found.evidence):
        for piece in pieces:
            for claim in maker.of(piece):
                yield replace(claim, about=number)


@dataclass(frozen=True)
class _Claims:
    """Makes claims. Inputs that an answer lacks are searched for again; each claim has the time limit of one answer."""

    seconds: float
    seed: int
    folder: Path

    def _asking(self, budget: Budget | None = None) -> Callable[[Query], Result]:
        how, mine = Options(time_limit=self.seconds, seed=self.seed, regions=False), budget or Budget.of(self.seconds)
        return lambda query: answer(query, how, mine)

    @singledispatchmethod
    def of(self, piece: kinds.Evidence) -> Iterator[Claim]:
        """The claims of a piece of evidence."""
        raise TypeError(type(piece).__name__)

    @of.register
    def claim_open(self, piece: kinds.Open) -> Iterator[Claim]:
        yield open_claim(piece.title, piece.reason)

    @of.register
    def claim_made(self, piece: kinds.Made) -> Iterator[Claim]:
        yield each(piece.title, [known(query, *made) for query, made in piece.parts])

    @of.register
    def claim_answered(self, piece: kinds.Answered) -> Iterator[Claim]:
        query, result = piece.query, piece.result
        if result.witness is not None:
            yield each(piece.title, [having(query, result.witness)])
        elif result.verdict is Verdict.NONE:
            yield each(piece.title, [lacking(query)])
        else:
            yield open_claim(piece.title, result.reason or "nothing is proved")

    @of.register
    def claim_best(self, piece: kinds.Best) -> Iterator[Claim]:
        query, result, bound, made = piece.query, piece.result, piece.bound, dict[str, list[Certified]]()
        goal, witness = query.objective, None if result is None else result.witness
        for one in () if result is None else result.certificates:
            made.setdefault(one.claim, []).append(one)
        if bound is None and result is not None:
            if result.verdict is Verdict.NONE:
                bare = replace(query, objective=None)
                yield each(piece.title, [known(bare, *made["none"]) if "none" in made else lacking(bare)])
                return
            bound = None if result.objective is None else result.objective.bound
        if goal is None or bound is None:
            yield open_claim(piece.title, (result.reason if result is not None else "") or "no bound is proved")
            return
        limit = bound if piece.bound == 0 else form_limit(goal, bound)
        high = known(query, *made["bound"]) if "bound" in made else not_beyond(query, limit)
        low = None if witness is None else having(query, witness)
        if goal.largest and low is not None:
            yield each(piece.title, [low, high])  # a largest norm cannot be stated as a row
        else:
            yield between(piece.title, low, high)

    @of.register
    def claim_largest_slack(self, piece: kinds.LargestSlack) -> Iterator[Claim]:
        query, result = piece.query, piece.result
        if not result.certificates:
            yield open_claim(piece.title, result.reason or "nothing is proved")
            return
        low: Part | None = None
        if result.witness is not None and piece.value is not None:
            least = max(0.0, piece.value - 1e-9 * (1 + abs(piece.value)))
            low = having(query if query.objective is not None else with_more(query, least), result.witness)
        yield between(piece.title, low, known(query, *result.certificates))

    @of.register
    def claim_beyond(self, piece: kinds.Beyond) -> Iterator[Claim]:
        goal = piece.query.objective
        assert goal is not None
        if piece.bound is None:
            yield open_claim(piece.title, piece.reason or "no bound is proved")
        elif math.isinf(piece.bound):
            bare = replace(piece.query, objective=None)
            yield each(f"{piece.title}: no input of another class", [lacking(bare)])
        else:
            limit = form_limit(goal, piece.bound)
            yield each(f"{piece.title}: no input is nearer than the bound", [not_beyond(piece.query, limit)])

    @of.register
    def claim_counted(self, piece: kinds.Counted) -> Iterator[Claim]:
        if piece.count is None:
            yield open_claim(piece.title, piece.reason or "the share is not known")
            return
        cells = rows_of_domain(piece.query, piece.rows, groups_of(piece.query), piece.data)
        if piece.among not in (None, len(cells)):
            yield open_claim(piece.title, "some rows lie outside the domain")
        else:
            yield claim_of_counted(piece.title, piece.query, cells, piece.count, self._asking())

    @of.register
    def claim_share(self, piece: kinds.Share) -> Iterator[Claim]:
        budget, shown = Budget.of(self.seconds), (piece.low, piece.high)
        ask = self._asking(budget)
        yield claim_of_interval(piece.title, piece.query, piece.measure, shown, ask, budget, self.folder)

    @of.register
    def claim_reason(self, piece: kinds.Reason) -> Iterator[Claim]:
        ask = self._asking()
        yield reason_claim(piece.title, piece.others, piece.cells, piece.features, ask, smallest=piece.smallest)

    @of.register
    def claim_change(self, piece: kinds.Change) -> Iterator[Claim]:
        ask, features, cells = self._asking(), sorted(piece.features), piece.cells
        kept = frozenset(range(len(cells))).difference(features)
        asked = [pinned(query, cells, kept) for query in piece.queries]
        shown = next((having(query, w) for query in asked if (w := ask(query).witness) is not None), None)
        if shown is None:
            yield open_claim(piece.title, "no input was found that shows the change")
        elif not piece.minimal:
            yield each(piece.title, [shown])
        else:
            (query,), fewer = piece.queries, [kept | {f} for f in features]
            parts = [shown, *(lacking(pinned(query, cells, more)) for more in fewer)]
            facts = {"features": features, "row": values_of(query, cells)}
            yield Claim(piece.title, "change", parts, lambda numbers: {**facts, "parts": numbers}, kept=[kept, *fewer])

    @of.register
    def claim_border(self, piece: kinds.Border) -> Iterator[Claim]:
        found = [(query, witness or self._asking()(query).witness) for query, witness in piece.having]
        parts = [lacking(query) if witness is None else having(query, witness) for query, witness in found]
        parts += map(lacking, piece.lacking)
        if piece.complete:
            every = list(piece.every)
            yield Claim(piece.title, "border", parts, lambda numbers: {"features": every, "parts": numbers})
            return
        yield open_claim(piece.title, "not all sets are decided")
        if parts:
            yield each(f"{piece.title}: the decided sets", parts)

    @of.register
    def claim_equal(self, piece: kinds.Equal) -> Iterator[Claim]:
        if piece.models:
            yield Claim(piece.title, "same", say=lambda _: {}, models=piece.models)
        else:
            yield Claim(piece.title, "equal", [not_beyond(query, 0.0) for query in piece.queries])
