"""Answers for people, in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from treesens.compiler.result import Ranked, Result, RowCount, Verdict
from treesens.cores import diagnostic_of
from treesens.frontends.query import BoundQuery
from treesens.report.records import as_expected, points_of, scores_of

_START = ", which was given a solution of the native engine to start from"
COLOURS = {Verdict.FOUND: "yellow", Verdict.NONE: "green", Verdict.UNKNOWN: "magenta"}


def out() -> Console:
    """Standard output; wide where it is no terminal, so that nothing is cut in a file or a pipe."""
    return Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)


class Progress:
    """One line on standard error that says which question is being asked; nothing where that is no terminal."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self.total = total
        self.console = Console(stderr=True, highlight=False)
        self.active = self.console.is_terminal and not (quiet and not sys.stderr.isatty())
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
        self.name = f"[{number + 1}/{self.total}] {name}"
        self.status = self.console.status(self.name)
        self.status.start()

    def say(self, text: str) -> None:
        """What is being done about the question."""
        if self.status is not None:
            self.status.update(f"{self.name}: {text}")

    def clear(self) -> None:
        if self.status is not None:
            self.status.stop()
            self.status = None


@contextmanager
def tracker(what: str, total: int) -> Iterator[Callable[..., None]]:
    """A progress bar on standard error; the value of the block is called after every record, perhaps with words that are
    shown beside the bar. Nothing is shown where that is no terminal.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=total)

        def advance(words: str = "") -> None:
            bar.update(task, advance=1, description=words)

        yield advance


def show_result(bound: BoundQuery, result: Result) -> None:
    """One answer: the verdict, the pair with the changed values marked, the scores, the objective, the reason."""
    console = out()
    query = bound.query
    line = Text()
    line.append(f"{result.query}: ", style="bold")
    line.append(str(result.verdict), style=f"bold {COLOURS[result.verdict]}")
    line.append(_how(result))
    if as_expected(query, result) is False:
        line.append(f"  expected {query.expect}", style="bold red")
    console.print(line)
    if result.count is not None:
        console.print(f"  {_counted(result.count)}")
        if result.witness is not None:
            console.print(f"  for example row {result.count.shown}:")
    if result.ranked is None:
        _show_found(console, bound, result)
    else:
        for number, one in enumerate(result.ranked.answers, 1):
            console.print(f"  answer {number} of {len(result.ranked.answers)}")
            _show_found(console, bound, one)
        if result.ranked.answers:
            console.print(f"  {_how_many(result.ranked)}")
    if result.core is not None:
        console.print(diagnostic_of(result.core).render(), markup=False)
    for note in result.notes:
        console.print(f"  note: {note}")
    if result.near_miss:
        console.print("  best so far: " + ", ".join(f"{k} {v:.6g}" for k, v in result.near_miss.items()))
    console.print()


def _show_found(console: Console, bound: BoundQuery, result: Result) -> None:
    """One witness with its objective and its nearest row."""
    if result.witness is not None:
        console.print(_pair_table(bound, result))
    if result.objective is not None:
        o = result.objective
        bound_text = "no bound" if o.bound is None else f"bound {o.bound:.6g}, gap {o.gap:.2g}"
        console.print(f"  {o.sense} {o.kind}: {o.value:.6g} ({bound_text})")
    if result.nearest is not None:
        n = result.nearest
        where = "is" if n.distance == 0 else f"lies {n.distance:.3g} away from"
        console.print(
            f"  nearest row: {n.index} of {n.data}, which {where} "
            + ("inside the region" if n.distance == 0 else "the region")
        )


def _counted(count: RowCount) -> str:
    """A count in words, with its bounds and the first of its rows."""
    outside = f" ({count.outside} outside the domain)" if count.outside else ""
    between = "" if not count.undecided else f" to {count.at_most}"
    listed = ", ".join(map(str, count.rows[:10])) + (", …" if len(count.rows) > 10 else "")
    return f"{count.at_least}{between} of {count.total} rows{outside}" + (f": {listed}" if listed else "")


def _how_many(ranked: Ranked) -> str:
    """How many answers there are, and why no more of them."""
    found, regions = len(ranked.answers), "region" if len(ranked.answers) == 1 else "regions"
    if found == ranked.wanted:
        return f"{found} answers, each in a region of its own"
    if ranked.complete:
        return f"only {found} {regions} ({ranked.proof} proof), {ranked.wanted} were wanted"
    return f"{found} {regions} found, {ranked.wanted} were wanted; there may be more: {ranked.reason}"


def _how(result: Result) -> str:
    seconds = sum(result.seconds.values())
    if result.verdict is Verdict.NONE:
        who = f"{result.proof} proof by {result.backend}"
        if len(result.rests_on) > 1:
            who += f", resting on {' and '.join(result.rests_on)}"
        elif result.rests_on:
            who += ", whose bound refutes the question before a solver is asked"
    elif result.verdict is Verdict.FOUND:
        replay = result.witness.replay if result.witness is not None else ""
        who = f"verified ({replay} replay), by {result.backend}{_START if result.started else ''}"
    else:
        who = result.reason
    confirmed = f", confirmed by {result.confirmed_by}" if result.confirmed_by else ""
    return f"  {who}{confirmed}, {seconds:.2f} s"


def _pair_table(bound: BoundQuery, result: Result) -> Table:
    query, witness = bound.query, result.witness
    assert witness is not None
    points = points_of(query, witness)
    names = list(points)
    table = Table(box=None, pad_edge=False, padding=(0, 2), show_header=True, header_style="bold")
    table.add_column("  feature")
    for name in names:
        table.add_column(name, justify="right")
    for feature in query.space.names:
        values = [points[name][feature] for name in names]
        differs = len(names) > 1 and any(v != values[0] for v in values)
        cells = [Text(_value(v), style="bold yellow" if differs else "") for v in values]
        table.add_row(Text(f"  {feature}", style="bold yellow" if differs else ""), *cells)
    scores = [
        scores_of(query.models[p.model].ensemble, witness.margins[i], witness.probabilities[i])
        for i, p in enumerate(query.points)
    ]
    for key in scores[0]:
        if not isinstance(scores[0][key], dict):
            table.add_row(f"  → {key}", *[_value(s.get(key)) for s in scores], style="bold")
    return table


def _value(value: Any) -> str:
    if value is None:
        return "missing"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
