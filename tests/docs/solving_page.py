"""The table of methods in docs/solving.md, made from their list when the site is built (website/hooks.py)."""

from __future__ import annotations

from math import inf

from treesens.solve.method import Method, Stage, time_words
from treesens.solve.methods.registry import all_methods


def table() -> str:
    """The methods in their order, as Markdown."""
    lines = [
        "| method | kind | for which questions | time | what it proves | file |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join([*lines, *map(row, all_methods())])


def row(method: Method) -> str:
    time = time_words(method.share, None if method.most == inf else method.most)
    if method.per_leaf:
        time += f" and {method.per_leaf * 1e6:g} µs per leaf"
    kind = "step" if method.stage is Stage.STEP else "search"
    file = method.run.partition(":")[0].removeprefix("treesens.").replace(".", "/")
    return f"| {method.name} | {kind} | {method.questions} | {time} | {method.proves} | `{file}` |"
