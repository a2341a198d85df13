"""Answers to modules (`.sir`) in a terminal."""

from __future__ import annotations

from typing import Any

from treesens.compiler.ir import Module
from treesens.compiler.result import Result, Verdict
from treesens.records.modules import NO_MODEL, cells_of
from treesens.report.show import COLOURS, by_pass, proved_words, side_by_side
from treesens.report.terminal import say, say_wrapped, styled, terminal_width
from treesens.solve.plugins import plugins_of
from treesens.visible import visible


def show_module(module: Module, result: Result) -> None:
    """Prints the verdict, the value with its bound, and the cells of the features that have several."""
    say(
        styled(f"{visible(result.query)}: ", bold=True),
        styled(str(result.verdict), bold=True, fg=COLOURS[result.verdict]),
    )
    say_wrapped(f"  {_how(result)}, {sum(result.seconds.values()):.2f} s")
    if result.objective is not None:
        goal = result.objective
        say_wrapped(f"  {goal.sense} {goal.kind}: {goal.value:.6g} ({proved_words(goal)}{by_pass(result)})")
    several = [feature.name for feature in module.features if feature.cells > 1]
    if result.solution is not None and several and module.points:
        cells = cells_of(module, result.solution.assignment)
        head = (["cell of", *map(visible, cells)], {"bold": True})
        rows: list[tuple[list[str], dict[str, Any]]] = [
            ([visible(name), *(str(row[name]) for row in cells.values())], {}) for name in several
        ]
        for line in side_by_side([head, *rows], terminal_width()):
            say(line)
    for note in result.notes:
        say_wrapped(f"  note: {note}")
    if plugins := plugins_of(None, result):
        say_wrapped(f"  plug-ins: {', '.join(map(str, plugins))}")
    say_wrapped(f"  {NO_MODEL}")
    say("")


def _how(result: Result) -> str:
    if result.verdict is Verdict.NONE:
        parts = f", resting on {' and '.join(result.proof_dependencies)}" if result.proof_dependencies else ""
        return f"{result.proof_text} proof by {result.backend}{parts}"
    return f"verified (exact), by {result.backend}" if result.verdict is Verdict.FOUND else result.reason
