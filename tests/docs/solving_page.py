"""The table of docs/solving.md, made from the list of methods: python -m tests.docs.solving_page --write."""

from __future__ import annotations

import argparse
import sys
from math import inf
from pathlib import Path

from treesens.solve.method import Method, Stage, time_words
from treesens.solve.methods.registry import METHODS

PAGE = Path(__file__).parents[2] / "docs" / "solving.md"
BEGIN = "<!-- made from solve/methods/registry.py: python -m tests.docs.solving_page --write -->\n"
END = "<!-- end -->\n"


def table() -> str:
    """The methods in their order, as Markdown."""
    lines = [
        "| method | kind | for which questions | time | what it proves | file |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join([*lines, *map(row, METHODS)]) + "\n"


def row(method: Method) -> str:
    time = time_words(method.share, None if method.most == inf else method.most)
    if method.per_leaf:
        time += f" and {method.per_leaf * 1e6:g} µs per leaf"
    kind = "step" if method.stage is Stage.STEP else "search"
    file = method.run.partition(":")[0].replace(".", "/")
    return f"| {method.name} | {kind} | {method.questions} | {time} | {method.proves} | `{file}` |"


def page(text: str) -> str:
    """The page with the table of today."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="writes the page; otherwise it is compared")
    text = PAGE.read_text("utf-8")
    if parser.parse_args().write:
        PAGE.write_text(page(text), "utf-8")
        return 0
    return int(page(text) != text)


if __name__ == "__main__":
    sys.exit(main())
