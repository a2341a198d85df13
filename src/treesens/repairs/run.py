"""The repair of one model: methods, the proof on the written file, and prices."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.files import check_writable, write_atomically
from treesens.compiler.result import Certified, Verdict
from treesens.data.alignment import align_table
from treesens.data.tables import Table
from treesens.errors import InternalError, ModelError, UsageError
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.records.answers import certificate_record
from treesens.records.plain import recorded
from treesens.repairs.candidate import Editor, on_disk
from treesens.repairs.forest import Forest
from treesens.repairs.loss import Labelled, labelled, loss_name, losses
from treesens.repairs.pairs import Climber, Pairs
from treesens.repairs.prices import prices_of
from treesens.repairs.program import ROOM, Program, Variables
from treesens.repairs.proof import Asking, Decided, Promise, largest_swing, questions_for, settle
from treesens.repairs.written import contributions
from treesens.studies import study
from treesens.studies.repair import Method, RepairOptions, RepairRecord

_HALVINGS = 8
_MOST_ENTRIES = 1_000_000
"""Leaves that the rows of the program reach, in all; of more rows so many are drawn."""
_STEPS = 5
"""Of the program, before the engine is asked again."""
_QUESTIONS = 20
"""To the engine, before the program goes on."""
_NEAR = 1e-9
"""Of the squares of changes of margins: what is proved is as good as what known pairs allow."""
_NUDGES = (0.0, 1e-4, 1e-3, 1e-2, 0.1)
"""Parts of the mean that are blended in, one after the other, until the written file is proved."""
_CHECKED_ROWS = 1000
_SWING_SECONDS = 10.0


@dataclass
class Repaired:
    """A repaired model of one size: `content` of its file, None if the promise was not proved of it."""

    size: Fraction
    method: Method
    content: bytes | None
    reason: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """The facts for JSON."""
        return {
            "size": float(self.size),
            "method": self.method,
            "proved": self.content is not None,
            "reason": self.reason,
            **self.facts,
        }


Say = Callable[[str], None]


class Repair:
    """The repair of one model on the rows of one table; `stop` ends the search, and what is proved by then is kept.

    UsageError and ModelError for models and promises that cannot be repaired.
    """

    def __init__(
        self, model: LoadedModel, train: Labelled, test: Labelled | None, options: RepairOptions, stop: threading.Event
    ) -> None:
        self.model, self.train, self.test, self.stop = model, train, test, stop
        self.options = options = replace(
            options, domain=(*options.domain, *_possible(model, train, test, options.domain))
        )
        self.loss = loss_name(model.ensemble)
        self.random = np.random.default_rng(options.seed)
        names = model.ensemble.feature_names
        self._known("--keep", options.keep)
        questions_for(model, self.promises(options.sizes[0]), decided_by(options))
        varied = sorted({names.index(name) for group in options.groups for name in group})
        if both := sorted({names[f] for f in varied} & set(options.keep)):
            raise UsageError(f"`{both[0]}` is both varied and kept", remedy="leave it out of --keep")
        self.forest = Forest(model.ensemble, varied, [names.index(name) for name in options.keep])
        self.cells = self.forest.rows(train.rows)
        copies = [copy for tree in self.forest.changed for copy in self.forest.copies(tree, self.cells)]
        self.variables = Variables(self.forest, copies)
        if self.variables.width > 1 and options.method == "leaves":
            raise UsageError(
                "the leaves of this forest hold probabilities, which other leaves need not add up to",
                remedy="choose --method blend or average: means of probabilities are probabilities",
            )
        self.editor = Editor(model, self.variables)
        self._program: Program | None = None
        self._swings: dict[tuple[str, int], tuple[float | None, float | None]] = {}

    def _known(self, option: str, names: Sequence[str]) -> None:
        for name in names:
            if name not in self.model.ensemble.feature_names:
                raise UsageError(f"{option}: the model has no feature `{name}`", remedy="name features of the model")

    def promises(self, size: Fraction) -> list[Promise]:
        """A promise per set of features."""
        return [Promise(group, self.options.kind, size) for group in self.options.groups]

    def reach(self, size: Fraction, say: Say) -> Repaired:
        """The repaired model of one size. UsageError if no method can reach it."""
        start = time.monotonic()
        search = _Search(self, size, say)
        found = self._values(search)
        result = Repaired(size, self.options.method, None, "interrupted")
        if found is not None:
            result = self._proved(search, *found)
        result.facts["seconds"] = round(time.monotonic() - start, 3)
        return result

    def _values(self, search: _Search) -> tuple[Method, FloatArray, bool] | None:
        """The method that is cheapest, its leaves, and whether copies replace their trees; None if an
        interruption came before anything was proved.
        """
        method, original = self.options.method, self.variables.original
        if search.holds(original, self.options.proof_time):
            search.say("the promise holds already")
            return "blend" if method == "auto" else method, original, False
        mean = self.variables.blended(original, 1.0)
        if not search.holds(mean, self.options.proof_time):
            if self.stop.is_set():
                return None
            kept = f" with {', '.join(self.options.keep)} kept" if self.options.keep else ""
            raise UsageError(
                f"{search.words} cannot be reached{kept}: {search.reason}",
                remedy="keep fewer features, vary fewer, or raise the size"
                if self.options.keep
                else "raise --proof-time, or the size",
            )
        searched = method == "leaves" or (method == "auto" and self.variables.width == 1)
        found: list[tuple[Method, FloatArray, bool]] = []
        if method in ("auto", "average"):
            found.append(("average", mean, True))
        if method in ("auto", "blend", "leaves"):
            blend = search.blended(original)
            if method != "leaves":
                found.append(("blend", blend, False))
            if searched:
                found.append(("leaves", search.best_leaves(blend), False))
        return min(found, key=lambda one: self._cost(one[1]))

    def _cost(self, values: FloatArray) -> float:
        margins = self.margins(self.editor.candidate(values), self.train.rows)
        return float(losses(self.loss, margins, self.train.labels).mean())

    @staticmethod
    def margins(model: LoadedModel, rows: FloatArray) -> FloatArray:
        """The library's margins of rows, float64[rows, outputs], by its arithmetic."""
        return np.asarray(model.ensemble.margins_emulated(rows), dtype=np.float64)

    def program(self) -> Program:
        """The convex program of the training rows, or of so many of them."""
        if self._program is None:
            columns = len(self.forest.changed) + len(self.variables.copies)
            most = max(200, _MOST_ENTRIES // max(1, columns))
            rows = np.arange(len(self.cells))
            if len(rows) > most:
                rows = np.sort(self.random.choice(rows, most, replace=False))
            margins = self.margins(self.model, self.train.rows[rows])
            self._program = Program(self.variables, self.loss, self.cells[rows], margins)
        return self._program

    def _proved(self, search: _Search, method: Method, values: FloatArray, alone: bool) -> Repaired:
        """The written file, read again by both readers and proved; blended a little more where rounding has broken it."""
        reason = ""
        for part in _NUDGES:
            if part:
                values = self.variables.blended(values, part)
            content = self.editor.content(values, alone=alone)
            with on_disk(content, self.model.ensemble.name, self.editor.suffix) as model:
                self._check_library(model)
                reason, facts = self._prove_file(search, model)
                if not reason:
                    facts.update(prices_of(self.model, model, self.train, self.test, self.forest.varied))
                    facts.update(self._changes(values, alone), sha256=model.ensemble.source.sha256)
                    return Repaired(search.size, method, content, facts=facts)
            search.say(f"the written file is not proved yet: {reason}")
            if alone or np.array_equal(values, self.variables.original):
                break
        return Repaired(search.size, method, None, reason)

    def _prove_file(self, search: _Search, model: LoadedModel) -> tuple[str, dict[str, Any]]:
        """Why a file does not keep its promise, or an empty text and the proofs. A proof counts if its certificate is accepted;
        the certificates of a file that keeps all promises go into the folder that is named.
        """
        options, proofs = self.options, []
        decided, going_on = (
            decided_by(options),
            threading.Event(),
        )  # a Ctrl-C has ended the search; what it found is proved
        with tempfile.TemporaryDirectory() as made:
            for number, asking in enumerate(questions_for(model, self.promises(search.size), decided)):
                found = settle(
                    asking, model, seconds=options.proof_time, stop=going_on, certificates=Path(made), final=True
                )
                if found.verdict is not Verdict.NONE:
                    return f"{asking.promise.words()}: {found.verdict}, {found.reason}", {}
                before = self._swing(number, asking, decided)
                after = largest_swing(model, asking, decided, seconds=_SWING_SECONDS, stop=self.stop)
                swing = {"before": before[0], "before_bound": before[1], "after": after[0], "after_bound": after[1]}
                proofs.append(
                    {
                        "varied": list(asking.promise.varied),
                        **asking.decision.record(),
                        "verdict": str(found.verdict),
                        "method": found.reason,
                        "certificates": [_placed(claim, options.certificates) for claim in found.certificates],
                        "largest_swing": swing,
                    }
                )
            if options.certificates is not None:
                options.certificates.mkdir(parents=True, exist_ok=True)
                for file in sorted(Path(made).iterdir()):
                    write_atomically(options.certificates / file.name, file.read_bytes())
        return "", {"proofs": proofs}

    def _swing(self, number: int, asking: Asking, decided: Decided) -> tuple[float | None, float | None]:
        key = (" ".join(asking.promise.varied), number)
        if key not in self._swings:
            self._swings[key] = largest_swing(self.model, asking, decided, seconds=_SWING_SECONDS, stop=self.stop)
        return self._swings[key]

    def _changes(self, values: FloatArray, alone: bool) -> dict[str, Any]:
        """Which trees and leaves are others than before, and by how much."""
        n = len(self.variables.own)
        ensemble = self.model.ensemble
        moved = np.abs(values[:n] - self.variables.own).reshape(-1, self.variables.width).max(axis=1, initial=0.0)
        trees = np.unique(ensemble.leaf_tree[self.variables.leaf[moved > 0]])
        copies = sum(
            bool(values[start : start + len(copy.leaves)].any())
            for copy, start in zip(self.variables.copies, self.variables.start.tolist(), strict=False)
        )
        return {
            "changes": {
                "trees": ensemble.n_trees,
                "trees_that_ask": len(self.forest.concerned),
                "trees_changed": len(trees),
                "trees_replaced": alone,
                "trees_added": copies,
                "leaves": ensemble.n_leaves,
                "leaves_changed": int((moved > 0).sum()),
                "largest_change_of_a_leaf": float(moved.max(initial=0.0)),
            }
        }

    def _check_library(self, model: LoadedModel) -> None:
        """InternalError unless the stock library, which loads the file here, predicts what treesens reads from it: on rows of
        the table, and at and beside thresholds.
        """
        rows = self.train.rows
        if len(rows) > _CHECKED_ROWS:
            rows = rows[self.random.choice(len(rows), _CHECKED_ROWS, replace=False)]
        edges = rows[self.random.integers(len(rows), size=_CHECKED_ROWS)].copy()
        grid = self.forest.cells.grid
        for row in edges:
            for f in self.random.choice(len(grid), min(3, len(grid)), replace=False).tolist():
                low, high = grid[f].interval(int(self.random.integers(grid[f].n_cells)))
                row[f] = low if self.random.random() < 0.5 else high
        edges[np.abs(edges) >= model.ensemble.number_type.max] = 0.0
        if np.isnan(edges).any() and not _takes_missing(self.model, edges[np.isnan(edges).any(axis=1)][:1]):
            edges = np.nan_to_num(edges)
        both = np.concatenate([rows, edges])
        ours, theirs = model.ensemble.margins_emulated(both), model.margins(both)
        if not np.array_equal(np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)):
            at = int(np.flatnonzero((np.asarray(ours) != np.asarray(theirs)).any(axis=1))[0])
            raise InternalError(
                f"the library predicts {theirs[at].tolist()} from the repaired file, treesens reads {ours[at].tolist()}",
                remedy="nothing was written; please report this with the model",
            )


class _Search:
    """The search for leaves that keep the promises of one size."""

    def __init__(self, repair: Repair, size: Fraction, say: Say) -> None:
        self.repair, self.size, self.say = repair, size, say
        self.words = "; ".join(promise.words() for promise in repair.promises(size))
        self.reason = ""
        self.broken: tuple[int, FloatArray] | None = None
        self.pairs: list[tuple[int, FloatArray, FloatArray]] = []
        self._first = 0

    def holds(self, values: FloatArray, seconds: float | None = None) -> bool:
        """Whether all promises are proved of leaves within so many seconds each (by default those of a search, so that the
        written file is proved easily); a pair that breaks one is kept in `broken`.
        """
        options, self.broken = self.repair.options, None
        seconds = min(options.proof_time, max(1.0, options.time_limit / 30)) if seconds is None else seconds
        model = self.repair.editor.candidate(values)
        asked = list(enumerate(questions_for(model, self.repair.promises(self.size), decided_by(options))))
        for number, asking in asked[self._first :] + asked[: self._first]:
            result = settle(asking, model, seconds=seconds, stop=self.repair.stop)
            if result.verdict is not Verdict.NONE:
                self._first = number
                self.reason = f"{asking.promise.words()}: {result.verdict}, {result.reason}"
                if result.witness is not None:
                    self.broken = number, result.witness.values
                return False
        return True

    def blended(self, values: FloatArray) -> FloatArray:
        """As little of the mean as the proofs allow."""
        low, high, options = 0.0, 1.0, self.repair.options
        seconds = min(options.proof_time, max(1.0, options.time_limit / 10))  # few proofs, on which all else rests
        for _ in range(_HALVINGS):
            if self.repair.stop.is_set():
                break
            middle = (low + high) / 2
            if self.holds(self.repair.variables.blended(values, middle), seconds):
                high = middle
            else:
                low = middle
        self.say(f"{self.words}: blend proved with {high:.1%} of the mean")
        return self.repair.variables.blended(values, high)

    def best_leaves(self, inside: FloatArray) -> FloatArray:
        """Leaves nearer to the model than those `inside`, proved: between what is proved and the best that known pairs allow,
        the engine proves the middle or gives a pair that cuts it off.
        """
        repair = self.repair
        deadline = time.monotonic() + repair.options.time_limit
        program = repair.program()
        program.forget()
        model = repair.editor.candidate(repair.variables.original)
        asked = questions_for(model, repair.promises(self.size), decided_by(repair.options))
        climbers = [Climber(asking, model.ensemble, repair.options.seed + n) for n, asking in enumerate(asked)]
        rows = repair.train.rows
        sample = rows[repair.random.choice(len(rows), min(len(rows), 2000), replace=False)]
        for climber in climbers:
            self._cut(program, climber, climber.of_rows(model.ensemble, sample, 50))
        blend = inside
        outside, rounds, proved = repair.variables.original, 0, 0
        while time.monotonic() < deadline and not repair.stop.is_set():
            rounds += 1
            outside = program.solve(outside, _STEPS)
            if float(program.metric @ (outside - inside) ** 2) < _NEAR:
                break
            for _ in range(_QUESTIONS):
                if time.monotonic() > deadline or repair.stop.is_set():
                    break
                middle = inside + (outside - inside) / 2
                if self._known_to_break(program, climbers, middle):
                    outside = program.projected(outside)
                elif self.holds(middle):
                    inside, proved = middle, proved + 1
                elif self.broken is None:
                    break
                else:
                    number, pair = self.broken
                    climber, candidate = climbers[number], repair.editor.candidate(middle).ensemble
                    self.pairs.append((number, pair[0], pair[1]))
                    self._cut(program, climber, Pairs(pair[:1], pair[1:2]))
                    self._cut(program, climber, climber.climb(candidate, pair[0], pair[1]))
                    outside = program.projected(outside)
            if rounds % 5 == 0:
                self.say(f"{self.words}: {len(program.forms)} pairs, {proved} better models proved, round {rounds}")
        return min(inside, blend, key=program.value)

    def _known_to_break(self, program: Program, climbers: Sequence[Climber], values: FloatArray) -> bool:
        """Whether a climb from a pair that the engine has given leads to one that breaks a promise: that spares the engine."""
        if not self.pairs:
            return False
        number, high, low = self.pairs[int(self.repair.random.integers(len(self.pairs)))]
        found = climbers[number].climb(self.repair.editor.candidate(values).ensemble, high, low)
        self._cut(program, climbers[number], found)
        return len(found) > 0

    def _cut(self, program: Program, climber: Climber, pairs: Pairs) -> None:
        """Pairs become rows of the program: the difference of their scores stays below the limit."""
        forest, weights = self.repair.forest, climber.weights
        high, low = forest.rows(pairs.high), forest.rows(pairs.low)
        limit = climber.asking.limit * (1 - ROOM)
        fixed = [t for t in forest.concerned if t not in set(forest.changed)]
        for one, two in zip(high, low, strict=True):
            kept = 0.0
            if fixed:
                reached = forest.cells.leaves(np.stack([one, two]))[:, fixed]
                held = contributions(forest.ensemble)[reached]
                wide = held.shape[2] > 1
                signs = weights if wide else weights[forest.ensemble.tree_output[fixed]][:, None]
                kept = float((held[0] * signs).sum() - (held[1] * signs).sum())
            program.add(self.repair.variables.row(weights, one, two), limit - kept)


def _takes_missing(model: LoadedModel, rows: FloatArray) -> bool:
    """Whether the library predicts of rows with missing values."""
    try:
        model.margins(rows)
    except ModelError:
        return False
    return True


def _placed(claim: Certified, folder: Path | None) -> dict[str, Any]:
    """The record of a certificate in the folder where it is kept; without one it was made and checked, and has no file."""
    record = certificate_record(claim)
    record["file"] = None if folder is None or not claim.path else str(folder / Path(claim.path).name)
    return record


def _possible(
    model: LoadedModel, train: Labelled, test: Labelled | None, domain: Sequence[ast.Declaration]
) -> list[ast.Declaration]:
    """What the domain leaves open: every code of a category without names, also codes that no split lists (they all go one
    way), and missing values of features that miss some in a table.
    """
    rows = train.rows if test is None else np.concatenate([train.rows, test.rows])
    stated = {item.name.text for item in domain if isinstance(item, ast.Feature)}
    found: list[ast.Declaration] = []
    for feature, column in zip(model.ensemble.features, rows.T, strict=True):
        missing = bool(np.isnan(column).any())
        if feature.name in stated:
            continue
        name, kind = ast.Name(feature.name), cast(ast.FeatureType, ast.Numeric("real"))
        if feature.categories and feature.labels:
            if missing:
                raise UsageError(
                    f"the category `{feature.name}` misses values in the rows",
                    remedy=f"say in a file for --domain: `feature {feature.name}: category {{..}} or missing`",
                )
            continue
        if feature.categories:
            codes = range(feature.categories + 1)
            kind = ast.Category(tuple(ast.CategoryItem(None, ast.Number(Fraction(code))) for code in codes))
        elif not missing:
            continue
        found.append(ast.Feature(name, kind, missing=missing))
    return found


def repair_all(
    model: LoadedModel,
    train: Table,
    test: Table | None,
    label: str,
    options: RepairOptions,
    stop: threading.Event,
    say: Say,
) -> list[Repaired]:
    """A repaired model per size, the largest first; those that an interruption left out are not there."""
    rows = labelled(model, align_table(model, train), label)
    held_out = None if test is None else labelled(model, align_table(model, test), label)
    repair = Repair(model, rows, held_out, options, stop)
    found: list[Repaired] = []
    for size in sorted(options.sizes, reverse=True):
        if stop.is_set():
            break
        found.append(repair.reach(size, say))
    return found


def decided_by(options: RepairOptions) -> Decided:
    """What decides."""
    return Decided(options.threshold, tuple(options.classes), tuple(options.domain))


def ask(asked: study.Asking[RepairOptions]) -> study.Found[RepairRecord]:
    """What the study finds; files that are proved are written."""
    options, train = asked.options, asked.table
    if train is None or train.label is None:
        raise UsageError("the training rows have no column of labels", remedy="name it: label='COLUMN'")
    held_out = cast("Table | None", options.test)
    for size in options.sizes if options.output is not None else ():
        assert options.output is not None
        check_writable(place_of(options.output, size, options))
    found = repair_all(asked.model, train, held_out, train.label, options, asked.stop, asked.say)
    if options.output is not None:
        write_all(options.output, found, options)
    records: list[RepairRecord] = [recorded(RepairRecord, one.record()) for one in found]
    return study.Found(records, (), asked.stop.is_set(), all(one.proved for one in records), found)


def place_of(output: Path, size: Fraction, options: RepairOptions) -> Path:
    """Where the model of one size is written: the output, with the size in its name if there are several."""
    if len(options.sizes) == 1:
        return output
    return output.with_name(f"{output.stem}-{float(size):g}{output.suffix}")


def write_all(output: Path, found: Sequence[Repaired], options: RepairOptions) -> None:
    """Writes what was proved, and the place into its facts."""
    for one in found:
        if one.content is not None:
            place = place_of(output, one.size, options)
            write_atomically(place, one.content)
            one.facts["file"] = str(place)
