"""Why rows of a table have their classes: features whose values alone decide them, and changes that undo them.

Reasons are those of `solve/reasons/reason.py`. Beside them stand, if asked, the box around the values of a reason in which the
class stands, the distance to the nearest input of another class, the cheapest change, and what TreeSHAP says.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from treesens.compiler.base.budget import Budget
from treesens.compiler.result import Region
from treesens.data.tables import Table
from treesens.errors import UsageError
from treesens.frontends.base import LoadedModel
from treesens.records.answers import label_of, points_of, region_of
from treesens.solve.afterwards import answered
from treesens.solve.options import Options
from treesens.solve.question import answer
from treesens.solve.reasons.decisions import Features, RowDecisions
from treesens.solve.reasons.reason import RowReason, Wanted, reason_of
from treesens.studies.contributions import Contributions
from treesens.studies.robustness import RobustOptions, RowQuestions, nearest_input
from treesens.values.verify import verify_cells
from treesens.values.witness import Witness

ALSO = ("box", "radius", "recourse", "shap")
"""What can stand beside a reason: the box in which the class stands, the distance to another class by linf, the cheapest change
by l1, and TreeSHAP.
"""


@dataclass(frozen=True)
class ReasonOptions:
    """Which reasons: of as few features as possible (`smallest`), the `most` smallest ones, `without` some features; and what
    is wanted beside them (`also`, of ALSO).
    """

    smallest: bool = False
    most: int = 1
    without: Sequence[str] = ()
    also: Sequence[str] = ()


@dataclass(frozen=True)
class Reason:
    """Why a row has its class. `features` decide it (None: those that may be used do not); `minimal` if none of them can be
    left out, `smallest` if no fewer features decide it. `contrast` names features whose change gives another class, at `point`.
    `several` are the smallest reasons, if more than one was asked for, and `complete` says whether there are no others. `also`
    has what was asked for beside.
    """

    row: int
    predicted: str
    features: dict[str, Any] | None
    minimal: bool
    smallest: bool
    contrast: tuple[str, ...] | None
    point: dict[str, Any] | None
    decisions: int
    reason: str
    seconds: float
    several: tuple[dict[str, Any], ...] | None = None
    complete: bool = False
    also: dict[str, Any] | None = None

    def record(self) -> dict[str, Any]:
        """The facts for JSON."""
        several = {} if self.several is None else {"reasons": list(self.several), "complete": self.complete}
        return {
            "row": self.row,
            "class": self.predicted,
            "sufficient": self.features,
            "minimal": self.minimal,
            "smallest": self.smallest,
            **several,
            "contrast": None if self.contrast is None else list(self.contrast),
            "point": self.point,
            **(self.also or {}),
            "decisions": self.decisions,
            "reason": self.reason,
            "seconds": round(self.seconds, 6),
        }


def reasons(
    model: LoadedModel,
    table: Table,
    rows: Sequence[int],
    wanted: ReasonOptions | None = None,
    *,
    options: RobustOptions | None = None,
    stop: threading.Event | None = None,
    on_result: Callable[[Reason], None] | None = None,
) -> list[Reason]:
    """Why rows have their classes. A set event keeps what is known by then.

    Raises UsageError for rows and features that there are not, and for what cannot stand beside a reason.
    """
    study = _Study(RowQuestions(model, table, options or RobustOptions()), wanted or ReasonOptions(), stop)
    result: list[Reason] = []
    for row in rows:
        if not 0 <= row < table.rows:
            raise UsageError(f"the table has no row {row}", remedy=f"its rows are 0 to {table.rows - 1}")
        if stop is not None and stop.is_set():
            break
        result.append(answered(f"row {row}", partial(study.row, row), partial(_no_reason, row)))
        if on_result is not None:
            on_result(result[-1])
    return result


def _no_reason(row: int, why: str = "") -> Reason:
    """Nothing is known of a row."""
    return Reason(row, "", None, False, False, None, None, 0, why, 0.0)


class _Study:
    """The reasons of rows over one binding of model and table."""

    def __init__(self, questions: RowQuestions, wanted: ReasonOptions, stop: threading.Event | None) -> None:
        self.questions, self.asked, self.stop = questions, wanted, stop
        self.space = questions.of_class[0].query.space
        self.ensemble = questions.of_class[0].models[0].ensemble
        names = self.space.names
        unknown = [name for name in wanted.without if name not in names]
        if unknown:
            raise UsageError(
                f"the model has no feature `{unknown[0]}`", remedy="its features are " + ", ".join(names[:12])
            )
        for word in wanted.also:
            if word not in ALSO:
                raise UsageError(f"`{word}` cannot stand beside a reason", remedy="use " + ", ".join(ALSO))
        if "shap" in wanted.also:
            self.contributions.of(questions.rows[0], 0)  # what it lacks is said before the first row
        used = questions.model.ensemble.used_features
        self.wanted = Wanted(
            order=sorted(range(len(names)), key=lambda f: (names[f] in used, f)),
            smallest=wanted.smallest,
            most=wanted.most,
            barred=frozenset(names.index(name) for name in wanted.without),
            box="box" in wanted.also,
        )

    @cached_property
    def contributions(self) -> Contributions:
        return Contributions(self.ensemble, self.questions.rows)

    def row(self, row: int) -> Reason:
        """Why a row has its class."""
        start = time.perf_counter()
        questions, options = self.questions, self.questions.options
        budget = Budget.of(options.time_limit, self.stop)
        predicted = questions.predicted(row)
        bare = _no_reason(row)
        if predicted is None:
            return replace(bare, reason="a value is missing that the domain does not allow")
        bare = replace(bare, predicted=str(questions.model.ensemble.classes[predicted]))
        cells = self.space.grid.cells(questions.rows[row : row + 1])[0].astype(np.int32)
        outside = [self.space.names[f] for f, cell in enumerate(cells) if not self.space.legal[f][cell]]
        if outside:
            return replace(bare, reason=f"`{outside[0]}` lies outside of its domain")
        others = [asked.query for c, asked in enumerate(questions.of_class) if c != predicted]
        judge = RowDecisions(others, cells, budget, Options(time_limit=options.time_limit, seed=options.seed), answer)
        known = reason_of(judge, self.wanted)
        found = self._told(known, row, replace(bare, reason=budget.reason if known.open else ""))
        found = replace(found, also=self._beside(known, row, predicted) if self.asked.also else None)
        return replace(found, decisions=judge.decisions, seconds=time.perf_counter() - start)

    def _told(self, known: RowReason, row: int, bare: Reason) -> Reason:
        """What is known in names and labels."""
        several = tuple(self._shown(one, row) for one in known.several)
        if known.other is not None:
            query, cells = known.other
            witness = verify_cells(query, cells, near=self.questions.rows[row])
            bare = replace(bare, point=points_of(query, witness)["a"] if isinstance(witness, Witness) else None)
        if known.within is not None:
            bare = replace(bare, reason="the class depends on features that are left out")
        return replace(
            bare,
            features=several[0] if several else None,
            minimal=bool(several),
            smallest=known.smallest,
            contrast=None if known.contrast is None else tuple(self.space.names[f] for f in sorted(known.contrast)),
            several=several if self.asked.most > 1 else None,
            complete=known.complete,
        )

    def _shown(self, features: Features, row: int) -> dict[str, Any]:
        """The values of a row by feature."""
        space, values = self.space, self.questions.rows[row]
        return {
            space.names[f]: label_of(space.domains[f], float(values[f]), space.grid[f].number_type.dtype)
            for f in sorted(features)
        }

    def _beside(self, known: RowReason, row: int, predicted: int) -> dict[str, Any]:
        """What was asked for beside the reason, by its name."""
        found: dict[str, Any] = {}
        if "box" in self.asked.also:
            found["box"] = self._box(known)
        for word, norm in (("radius", "linf"), ("recourse", "l1")):
            if word in self.asked.also:
                found[word] = self._nearest(row, predicted, norm)
        if "shap" in self.asked.also:
            found["shap"] = self._shap(known, row, predicted)
        return found

    def _box(self, known: RowReason) -> dict[str, list[Any]] | None:
        """The values of every feature of the reason with which the class stands, as regions of answers have them."""
        if known.box is None:
            return None
        masks = tuple(known.box.get(f, legal) for f, legal in enumerate(self.space.legal))
        query = self.questions.of_class[0].query
        return region_of(query, Region((masks,), frozenset())).get(query.points[0].name, {})

    def _nearest(self, row: int, predicted: int, norm: str) -> dict[str, Any]:
        """The nearest input of another class by a norm, with what it changes."""
        limits = self.questions.options
        mine = Options(time_limit=limits.time_limit, seed=limits.seed, regions=False)
        found = nearest_input(self.questions, row, predicted, mine, norm=norm, stop=self.stop)
        own = self._shown(frozenset(range(len(self.space.names))), row)
        changes = [] if found.point is None else [name for name, value in found.point.items() if value != own[name]]
        bound = None if found.bound is None or math.isinf(found.bound) else found.bound
        return {
            "norm": norm,
            "verdict": str(found.verdict),
            "distance": found.distance,
            "bound": bound,
            "closed": found.closed,
            "changes": changes,
            "point": found.point,
        }

    def _shap(self, known: RowReason, row: int, predicted: int) -> dict[str, Any]:
        """TreeSHAP of every feature, and the part of a reason that is among as many features of the greatest values."""
        output = predicted if self.ensemble.n_outputs > 1 else 0
        values = self.contributions.of(self.questions.rows[row], output)
        order = np.argsort(-np.abs(values), kind="stable")
        found: dict[str, Any] = {"values": {self.space.names[f]: float(values[f]) for f in order}, "agreement": None}
        if known.several and known.several[0]:
            reason = known.several[0]
            found["agreement"] = len(reason & set(order[: len(reason)].tolist())) / len(reason)
        return found
