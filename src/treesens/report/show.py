"""Answers in a terminal."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import fields
from types import TracebackType
from typing import TYPE_CHECKING, Any

from treesens.binder.file import ResolvedQuestion
from treesens.binder.terms import position_of_class
from treesens.builtin import service
from treesens.compiler.base.tolerance import Closeness
from treesens.compiler.result import ObjectiveValue, Proof, Ranked, Result, RowCount, Verdict
from treesens.grammar.printing.print_terms import expression_text, formula_text
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import nodes_in
from treesens.records.answers import as_expected, found_record, points_of, scores_of, share_record
from treesens.report.changes import Names, change_words, changed_features, row_of
from treesens.report.terminal import Styled, console, display_width, is_quiet, say, say_wrapped, styled, terminal_width
from treesens.solve.plugins import plugins_of
from treesens.values.verify import Witness
from treesens.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

_WIDE = 5_000
_START = ", which started from a solution of the native engine"
COLOURS = {Verdict.FOUND: "yellow", Verdict.NONE: "green", Verdict.UNKNOWN: "magenta"}


def out() -> Console:
    """The console for tables; wide if standard output is not a terminal, so that a file or a pipe receives all columns."""
    return console(soft_wrap=True, width=terminal_width() or _WIDE, quiet=is_quiet())


class Progress:
    """A status line on standard error that names the current question; silent if standard error is not a terminal."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.active = sys.stderr.isatty()
        self.status: Any = None
        self.name = ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def start(self, number: int, name: str) -> None:
        if not self.active:
            return
        self.clear()
        self.name = f"{number + 1}/{self.total} {visible(name)}"
        self.status = console(err=True).status(self.name)
        self.status.start()

    def say(self, text: str) -> None:
        """Describes the current step of the question."""
        if self.status is not None:
            self.status.update(f"{self.name}: {text}")

    def clear(self) -> None:
        if self.status is not None:
            self.status.stop()
            self.status = None


@contextmanager
def tracker(what: str, total: int) -> Iterator[Callable[..., None]]:
    """A progress bar on standard error. The block calls the yielded function after every record, optionally with a text that is
    shown next to the bar. If standard error is not a terminal, the progress is printed once a minute.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    if not sys.stderr.isatty():
        yield _log_of(what, total)
        return
    with Bar(*columns, console=console(err=True), transient=True) as bar:
        task = bar.add_task("", total=total)

        def advance(words: str = "") -> None:
            bar.update(task, advance=1, description=words)

        yield advance


_EVERY = 60.0
"""Seconds between two progress lines."""


def _log_of(what: str, total: int) -> Callable[..., None]:
    """A function that counts records and prints a line per minute on standard error."""
    start = last = time.monotonic()
    done = 0

    def advance(words: str = "") -> None:
        nonlocal last, done
        done, now = done + 1, time.monotonic()
        if now - last >= _EVERY:
            last = now
            more = f" ({words})" if words else ""
            say(f"{what}: {done} of {total} after {(now - start) / 60:.0f} min{more}", err=True)

    return advance


def show_result(bound: ResolvedQuestion, result: Result) -> None:
    """Prints one answer: the verdict, the pair with the changed values marked, the scores, the objective, the reason.

    The display uses only click: most answers arrive faster than table libraries can be imported.
    """
    query = bound.query
    line: list[str] = [styled(f"{result.query}: ", bold=True)]
    line.append(styled(str(result.verdict), bold=True, fg=COLOURS[result.verdict]))
    how = _how(result)
    width, fits = terminal_width(), len(result.query) + len(str(result.verdict)) + len(how) + 2
    line += [how] if width is None or fits <= width else []
    if as_expected(query, result) is False:
        line += [styled(f"  expected {query.expect}", bold=True, fg="red")]
    say(*line)
    if how not in line:
        say_wrapped(how)
    if isinstance(bound.node.body, ast.Sensitive | ast.Monotone) and isinstance(bound.find, ast.Find):
        asked = (formula_text(part) for part in bound.find.constraints if not isinstance(part, ast.PointsEqual))
        say_wrapped(f"  asked: {', '.join(asked)}")
    if result.count is not None:
        say_wrapped(f"  {_counted(result.count)}")
        if result.witness is not None:
            say(f"  for example row {result.count.shown}:")
    if result.share is not None:
        say_wrapped(f"  {service('measures').share_words(share_record(result.share))}")
    if result.explanation is not None and query.explained is not None:
        from treesens.records.answers import explanation_of

        words = service("answers").reason_words(explanation_of(query, query.explained, result, result.explanation))
        say("\n".join(f"  {line}" for line in words.splitlines()))
    elif result.ranked is None:
        _show_found(bound, result)
    else:
        for number, one in enumerate(result.ranked.answers, 1):
            say(f"  answer {number} of {len(result.ranked.answers)}")
            _show_found(bound, one)
        if result.ranked.answers:
            say_wrapped(f"  {_how_many(result, result.ranked)}")
    if plugins := plugins_of(query, result):
        say_wrapped(f"  plug-ins: {', '.join(map(str, plugins))}")
    if result.core is not None:
        from treesens.solve.tasks.unsat_core import diagnostic_of

        say(diagnostic_of(result.core).render())
    for note in result.notes:
        say_wrapped(f"  note: {note}")
    for claim in result.certificates:
        made = f"{claim.path} ({claim.size:,} bytes, checked in {claim.checked_in:.2f} s)"
        say_wrapped(f"  certificate of `{claim.claim}`: {made if claim.path else 'none: ' + claim.reason}")
    if result.near_miss:
        say_wrapped("  best so far: " + ", ".join(f"{k} {v:.6g}" for k, v in result.near_miss.to_dict().items()))
    say("")


def result_text(bound: ResolvedQuestion, result: Result) -> str:
    """The output of `show_result`, without styles."""
    return printed(lambda: show_result(bound, result))


def printed(show: Callable[[], object]) -> str:
    """The text that a function prints on standard output, without styles."""
    with io.StringIO() as file, redirect_stdout(file):
        show()
        return file.getvalue().strip("\n")


def _show_found(bound: ResolvedQuestion, result: Result) -> None:
    """Prints one witness with its objective and its nearest row."""
    if result.witness is not None:
        if words := change_words(
            found_record(bound.query, result), row_of(bound, result.witness), Names.of(bound.models[0])
        ):
            say_wrapped(f"  {words}")
        for line in _pair_lines(bound, result):
            say(line)
    if result.objective is not None:
        o = result.objective
        say_wrapped(
            f"  {o.sense} {_objective_words(bound, o.kind)}: {o.value:.6g} ({proved_words(o)}{by_pass(result)})"
        )
    if result.nearest is not None:
        n = result.nearest
        where = "is" if n.distance == 0 else f"lies {n.distance:.3g} away from"
        say_wrapped(
            f"  nearest row: {n.index} of {n.data}, which {where} "
            + ("inside the region" if n.distance == 0 else "the region")
        )


def by_pass(result: Result) -> str:
    """The unvalidated passes on which the bound of an objective depends."""
    return f", {result.proof_text}" if result.proof is Proof.UNVALIDATED else ""


def proved_words(objective: ObjectiveValue) -> str:
    """The proof status of a value. A value that is only close to its bound is never called `optimal`."""
    if objective.bound is None:
        return "no bound"
    if objective.status is Closeness.OPTIMAL:
        return "optimal"
    end = f"closed within {objective.tolerance.words()}" if objective.status is Closeness.WITHIN else "open"
    return f"bound {objective.bound:.6g}, gap {objective.gap:.2g}: {end}"


def _objective_words(bound: ResolvedQuestion, kind: str) -> str:
    """The objective as it is written in the question, or the kind of a quantity that the question leaves out."""
    objective = bound.find.objective if isinstance(bound.find, ast.Find) else None
    return kind if objective is None else expression_text(objective.expression)


def _counted(count: RowCount) -> str:
    """A count in words, with its bounds and its first rows."""
    outside = f" ({count.outside} outside the domain)" if count.outside else ""
    between = "" if not count.undecided else f" to {count.at_most}"
    listed = ", ".join(map(str, count.rows[:10])) + (", …" if len(count.rows) > 10 else "")
    return f"{count.at_least}{between} of {count.total} rows{outside}" + (f": {listed}" if listed else "")


def _how_many(result: Result, ranked: Ranked) -> str:
    """The number of answers, with the reason if there are no more answers."""
    found, regions = len(ranked.answers), "region" if len(ranked.answers) == 1 else "regions"
    if found == ranked.wanted:
        return f"{found} answers, each in a separate region"
    if ranked.complete:
        proof = f"{result.words_of(ranked.proof)}{'' if ranked.proof is Proof.UNVALIDATED else ' proof'}"
        return f"only {found} {regions} ({proof}), {ranked.wanted} were wanted"
    return f"{found} {regions} found, {ranked.wanted} were wanted; there may be more: {ranked.reason}"


def _how(result: Result) -> str:
    seconds = sum(result.seconds.values())
    proved = result.verdict is Verdict.NONE or (result.verdict is Verdict.FOUND and result.explanation is not None)
    if proved:
        unvalidated = result.proof is Proof.UNVALIDATED
        who = f"{result.proof_text}{',' if unvalidated else ' proof'} by {result.backend}"
        premises = [part for part in result.proof_dependencies if not part.startswith(Proof.UNVALIDATED)]
        if len(premises) == 1 and result.backend == "native" and not unvalidated:
            who += ", whose bound refutes the question before a solver runs"
        elif premises:
            who += f", resting on {' and '.join(premises)}"
    elif result.verdict is Verdict.FOUND:
        replay = result.witness.replay if result.witness is not None else ""
        who = f"verified ({replay} replay), by {result.backend}{_START if result.warm_started else ''}"
    else:
        who = result.reason
    confirmed = f", confirmed by {result.confirmed_by}" if result.confirmed_by else ""
    return f"  {who}{confirmed}{_of_journal(result)}, {seconds:.2f} s"


def _of_journal(result: Result) -> str:
    """The remark on an answer from a journal."""
    if not result.from_journal:
        return ""
    again = "" if result.verdict is Verdict.UNKNOWN else ", verified again" if result.witness else ", not proved again"
    return f", from the journal of {result.from_journal[:10]}{again}"


def _pair_lines(bound: ResolvedQuestion, result: Result) -> Iterator[Styled]:
    """The points side by side, a line per feature, then their scores; features that differ come first and are marked."""
    query, witness = bound.query, result.witness
    assert witness is not None
    points = points_of(query, witness)
    names = list(points)
    rows: list[tuple[list[str], dict[str, Any]]] = [(["feature", *names], {"bold": True})]
    changed = set(changed_features(points)) if len(names) > 1 else set()
    for feature in sorted(query.space.names, key=lambda name: name not in changed):
        values = [points[name][feature] for name in names]
        style: dict[str, Any] = {"bold": True, "fg": "yellow"} if feature in changed else {}
        rows.append(([visible(feature), *map(_value, values)], style))
    rows += [
        ([f"→ {visible(key)}", *map(_score, scores)], {"bold": True}) for key, scores in score_rows(bound, witness)
    ]
    return side_by_side(rows, terminal_width())


def side_by_side(rows: list[tuple[list[str], dict[str, Any]]], most: int | None) -> Iterator[Styled]:
    """Rows of cells in columns; if lines would exceed `most`, the labels, and if needed the values, are on separate lines."""
    widths = [max(display_width(cells[i]) for cells, _ in rows) for i in range(len(rows[0][0]))]
    room = None if most is None else most - 2 - 4 * (len(widths) - 1)
    apart, stacked = room is not None and sum(widths) > room, room is not None and sum(widths[1:]) > room
    names = rows[0][0][1:]
    for number, ((label, *cells), style) in enumerate(rows):
        if apart:
            yield styled(f"  {label}", **style)
        if stacked:
            for name, cell in zip(names, cells, strict=True) if number else ():
                yield styled(f"      {name} = {cell}", **style)
        else:
            padded = [_padding(cell, width) + cell for cell, width in zip(cells, widths[1:], strict=True)]
            first = [] if apart else [label + _padding(label, widths[0])]
            yield styled(f"  {'    '.join(first or ['']) + '    '}{'    '.join(padded)}", **style)


def _padding(text: str, width: int) -> str:
    return " " * (width - display_width(text))


def _value(value: Any) -> str:
    """A feature's value: a number as the shortest text that parses to the same input."""
    if value is None:
        return "missing"
    return repr(value) if isinstance(value, float) else visible(str(value))


def _score(value: Any) -> str:
    """A score for display, or a dash if a point's model has no such score; `--json` has all digits."""
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else visible(str(value))


ALL_SHOWN = 4
"""Up to this number, all classes are shown; beyond it, only classes named in the question or predicted are shown."""


def score_rows(bound: ResolvedQuestion, witness: Witness) -> list[tuple[str, list[Any]]]:
    """A label and a value per point (None if a point's model has no such score): `margin`, and `prob` or `value`, for models
    with one score; `class`, then a line per class, for models with several scores. Classes show probabilities, unless the
    question is only about margins.
    """
    query, nodes = bound.query, list(nodes_in(bound.find))
    labels = [label for node in nodes for label in _labels(node)]
    wanted = {kind for kind, about in _ABOUT.items() if any(isinstance(node, about) for node in nodes)} or {"prob"}
    of_points: list[dict[str, Any]] = []
    shown: set[str] = set()
    for i, point in enumerate(query.points):
        ensemble = query.models[point.model].ensemble
        scores = scores_of(query, witness, i)
        of_points.append(scores)
        shown |= _shown(scores, ensemble.classes, labels)
    flat = [_flat(scores, wanted, shown) for scores in of_points]
    return [(key, [one.get(key) for one in flat]) for key in dict.fromkeys(key for one in flat for key in one)]


_ABOUT: dict[str, type[ast.Node]] = {"margin": ast.Margin, "prob": ast.Prob}


def _labels(node: ast.Node) -> Iterator[ast.Label]:
    """The classes that a node names, as in `prob(a, C)`, `class(a) = C`, `class(a) != C`, `class(a) in {C, D}`."""
    if isinstance(node, ast.Prob | ast.Margin | ast.ClassIs):
        yield from () if node.label is None else (node.label,)
        return
    parts = [getattr(node, field.name) for field in fields(node)]
    if not isinstance(node, ast.ClassOf) and any(isinstance(part, ast.ClassOf) for part in parts):
        parts += [label for part in parts if isinstance(part, ast.ValueSet) for label in part.values]
        yield from (part for part in parts if isinstance(part, ast.Name | ast.Number))


def _shown(scores: dict[str, Any], classes: Sequence[str | int], labels: Sequence[ast.Label]) -> set[str]:
    """The classes of one point that are shown."""
    names = list(next((score for score in scores.values() if isinstance(score, dict)), ()))
    if len(names) <= ALL_SHOWN:
        return set(names)
    places = {position_of_class(classes, label) for label in labels} - {None}
    return {name for place, name in enumerate(names) if place in places or name == scores.get("class")}


def _flat(scores: dict[str, Any], wanted: set[str], shown: set[str]) -> dict[str, Any]:
    """A point's scores of the requested kinds, with a line for each displayed class."""
    known = {kind for kind, score in scores.items() if isinstance(score, dict)}
    kinds = known & wanted or known
    result: dict[str, Any] = {}
    for kind, score in scores.items():
        if not isinstance(score, dict):
            result[kind] = score
        elif kind in kinds:
            result |= {f"{kind} {name}": value for name, value in score.items() if name in shown}
    return result
