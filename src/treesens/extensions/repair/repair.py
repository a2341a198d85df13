"""The repair of one model: the possible methods, the choice of the cheapest, and the repaired file."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int64Array
from treesens.errors import ModelError, UsageError
from treesens.extensions.repair.candidate import Editor, on_disk
from treesens.extensions.repair.file_proof import FileProof
from treesens.extensions.repair.forest import Forest
from treesens.extensions.repair.kept_rows import KeptRows
from treesens.extensions.repair.leaves import LeafSearch, Say, Search
from treesens.extensions.repair.order import Direction, Order
from treesens.extensions.repair.program import RIDGE, Aside, Program, Variables, changes_of
from treesens.extensions.repair.proof import Promise, decided_by, possible_inputs, questions_for
from treesens.extensions.repair.study import LEAST_FALL, Method, RepairOptions
from treesens.extensions.studies.losses import Labelled, loss_name
from treesens.extensions.studies.prices import Moved, price_of
from treesens.frontends.base import LoadedModel

_MOST_ENTRIES = 4_000_000
"""Maximum number of leaves that the program's rows reach, added over all rows; if there are more, rows are sampled."""
_ASIDE = 3
"""One training row out of this many is set aside."""
_NUDGES = (0.0, 1e-4, 1e-3, 1e-2, 0.1)
"""Shares of the mean that are blended in; each is tried in turn until the promises are proved for the written file."""


@dataclass
class Repaired:
    """A repaired model of one size: `content` is the file's content, or None if the promise is not proved."""

    size: Fraction
    method: Method
    content: bytes | None
    reason: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """The result as JSON."""
        return {
            "size": float(self.size),
            "method": self.method,
            "proved": self.content is not None,
            "reason": self.reason,
            **self.facts,
        }


class Repair:
    """The repair of one model on the rows of one table; if `stop` is set, the search ends and proved results are kept.

    Raises UsageError or ModelError for models and promises that cannot be repaired.
    """

    def __init__(
        self,
        model: LoadedModel,
        train: Labelled,
        test: Labelled | None,
        options: RepairOptions,
        stop: threading.Event,
        kept: FloatArray | None = None,
    ) -> None:
        if names := model.ensemble.open_features:
            raise ModelError(
                f"`{names[0]}` enters the score with a coefficient: a repair changes leaves, not coefficients",
                place=model.ensemble.source.path,
                remedy="repair a model of trees; fit a linear model again without the columns that must not affect decisions",
            )
        self.model, self.train, self.test, self.stop = model, train, test, stop
        rows = train.rows if test is None else np.concatenate([train.rows, test.rows])
        possible = possible_inputs(model, np.isnan(rows).any(axis=0), options.domain)
        self.options = options = replace(options, domain=(*options.domain, *possible))
        self.loss = loss_name(model.ensemble)
        self.random = np.random.default_rng(options.seed)
        names = model.ensemble.feature_names
        for option in ("keep", "increasing", "decreasing"):
            self._known(f"--{option}", getattr(options, option))
        questions_for(model, self.promises(options.sizes[0]), decided_by(options))
        ordered = sorted(names.index(name) for name in options.directions)
        varied = sorted({names.index(name) for group in options.groups for name in group}) or ordered
        if both := sorted({names[f] for f in varied} & set(options.keep)):
            raise UsageError(f"`{both[0]}` is both varied and kept", remedy="leave it out of --keep")
        self.forest = Forest(model.ensemble, varied, [names.index(name) for name in options.keep], ordered)
        self.cells = self.forest.rows(train.rows)
        copies = [copy for tree in self.forest.averaged for copy in self.forest.copies(tree, self.cells)]
        self.variables = Variables(self.forest, copies)
        if self.variables.width > 1 and options.method == "leaves":
            raise UsageError(
                "the leaves of this forest are probabilities, and after a change they might not add up to 1",
                remedy="choose --method blend or average: means of probabilities are probabilities",
            )
        self.editor = Editor(model, self.variables)
        self._program: Program | None = None
        self._aside: Aside | None = None
        self.kept = None if kept is None else KeptRows.of(self.variables, kept)
        if self.kept is not None and ordered:
            raise UsageError(
                "--keep-rows cannot be combined with a direction",
                remedy="pass --keep-rows or a direction, not both",
            )
        self.proofs = FileProof(model, self.forest, train.rows, options, stop, kept)
        self.order = self._order()
        original = self.variables.original
        self.start = original if self.order is None else self.order.kept(original)
        self.mean = self.variables.averaged(self.start)
        if self.kept is not None:
            self.mean = self.kept.kept(self.mean, self._metric())

    def _known(self, option: str, names: Sequence[str]) -> None:
        for name in names:
            if name not in self.model.ensemble.feature_names:
                raise UsageError(f"{option}: the model has no feature `{name}`", remedy="name features of the model")

    def promises(self, size: Fraction) -> list[Promise]:
        """A promise per set of features and per direction."""
        options = self.options
        found = [Promise(group, options.kind, size) for group in options.groups]
        if (swing := options.swing_besides) is not None:
            found += [Promise(group, "swing", swing) for group in options.groups]
        return [*found, *(Promise((name,), kind, LEAST_FALL) for name, kind in options.directions.items())]

    def toward_mean(self, values: FloatArray, part: float) -> FloatArray:
        """The blend (1 - part) * values + part * mean, which preserves the order of leaves and the scores of kept rows."""
        return np.asarray((1 - part) * values + part * self.mean)

    def _metric(self) -> FloatArray:
        """Weights of squared changes of leaves, float64[variables]: the number of training rows per leaf, plus RIDGE."""
        reached = self.variables.columns(self.cells[self._split()[0]]).variable
        return np.bincount(reached.ravel(), minlength=self.variables.count).astype(np.float64) + RIDGE

    def _order(self) -> Order | None:
        """The order of leaves that directions require; None without directions."""
        promises = [promise for promise in self.promises(self.options.sizes[0]) if promise.is_direction]
        if not promises:
            return None
        names = self.model.ensemble.feature_names
        directions = [
            Direction(names.index(a.promise.varied[0]), 1 if a.promise.kind == "increasing" else -1, a.weights)
            for a in questions_for(self.model, promises, decided_by(self.options))
        ]
        if self.variables.width > 2:
            raise UsageError(
                "a forest with probabilities of several classes does not support directions",
                remedy="leave out --increasing and --decreasing",
            )
        return Order(self.variables, directions, self._metric())

    def reach(self, size: Fraction, say: Say) -> Repaired:
        """The repaired model of one size. Raises UsageError if no method can attain the size."""
        start = time.monotonic()
        search = Search(self, size, say)
        found = self._values(search)
        result = Repaired(size, self.options.method, None, "interrupted")
        if found is not None:
            result = self._proved(search, *found)
        result.facts["seconds"] = round(time.monotonic() - start, 3)
        return result

    def _values(self, search: Search) -> tuple[Method, FloatArray, bool] | None:
        """The cheapest method, its leaves, and whether copies replace trees; None if interrupted before any proof."""
        method, original = self.options.method, self.variables.original
        if search.holds(original, self.options.proof_time):
            search.say("the promise holds already")
            return "blend" if method == "auto" else method, original, False
        if not search.holds(self.mean, self.options.proof_time):
            if self.stop.is_set():
                return None
            kept = f" with {', '.join(self.options.keep)} kept" if self.options.keep else ""
            raise UsageError(
                f"{search.words} cannot be reached{kept}: {search.reason}",
                remedy="keep fewer features, vary fewer features, or raise the size"
                if self.options.keep
                else "raise --proof-time, or the size",
            )
        searched = method == "leaves" or (method == "auto" and self.variables.width == 1)
        found: list[tuple[Method, FloatArray, bool]] = []
        if method in ("auto", "average"):
            found.append(("average", self.mean, True))
        if method in ("auto", "blend", "leaves"):
            blend = search.blended()
            if method != "leaves":
                found.append(("blend", blend, False))
            if searched:
                found.append(("leaves", LeafSearch(self, search).best(blend), False))
        if len(found) == 1:
            return found[0]
        # The first of several equal losses wins, so that leaves equal to the blend are reported as the blend.
        return min(found, key=lambda one: float(self.aside().losses(one[1]).mean()))

    def aside(self) -> Aside:
        """The training rows that are set aside, and not used in the program."""
        if self._aside is None:
            rows = self._split()[1]
            part = Labelled(self.train.rows[rows], self.train.labels[rows])
            margins = self.margins(self.model, part.rows)
            self._aside = Aside(Program(self.variables, self.loss, self.cells[rows], margins), part.labels)
        return self._aside

    def _prices(self, model: LoadedModel) -> dict[str, Any]:
        """The prices of `model` on the training rows, and on held-out rows if there are any."""
        moved = Moved.of(sorted(self.forest.varied), self.train.rows)
        parts = {"train": self.train} if self.test is None else {"train": self.train, "test": self.test}
        return {name: price_of(self.model.ensemble, model.ensemble, part, moved) for name, part in parts.items()}

    @staticmethod
    def margins(model: LoadedModel, rows: FloatArray) -> FloatArray:
        """The margins of rows in the library's arithmetic, float64[rows, outputs]."""
        return np.asarray(model.ensemble.margins_emulated(rows), dtype=np.float64)

    def program(self) -> Program:
        """The convex program for the training rows."""
        if self._program is None:
            rows = self._split()[0]
            margins = self.margins(self.model, self.train.rows[rows])
            self._program = Program(self.variables, self.loss, self.cells[rows], margins, self.order)
            if self.kept is not None:
                self._program.limits.equal(self.kept.forms, self.kept.sums)
        return self._program

    def _split(self) -> tuple[Int64Array, Int64Array]:
        """The indices of the training rows for the program and of the rows set aside, or fixed samples of these rows."""
        columns = len(self.forest.changed) + len(self.variables.copies)
        most, count = max(200, _MOST_ENTRIES // max(1, columns)), len(self.cells)
        order = np.random.default_rng(self.options.seed).permutation(count)
        first = min(most, count - count // _ASIDE)
        aside = order[first:][:most]
        return np.sort(order[:first]), np.sort(aside if len(aside) else order)

    def _proved(self, search: Search, method: Method, values: FloatArray, alone: bool) -> Repaired:
        """Writes, rereads and proves the file; if rounding breaks a promise, a little more of the mean is blended in."""
        reason = ""
        for part in _NUDGES:
            if part:
                values = self.toward_mean(values, part)
            content = self.editor.content(values, alone=alone)
            with on_disk(content, self.model.ensemble.name, self.editor.suffix) as model:
                self.proofs.check_library(model)
                reason, facts = self.proofs.prove(self.promises(search.size), model)
                if not reason:
                    facts.update(prices=self._prices(model))
                    facts.update(changes_of(self.variables, values, alone=alone), sha256=model.ensemble.source.sha256)
                    return Repaired(search.size, method, content, facts=facts)
            search.say(f"the promises are not proved yet for the written file: {reason}")
            if alone or np.array_equal(values, self.variables.original):
                break
        return Repaired(search.size, method, None, reason)
