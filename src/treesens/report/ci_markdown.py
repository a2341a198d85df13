"""Answers of `check` as GitHub-flavoured Markdown, for a summary or a comment."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from treesens.report.ci import RULES, Case
from treesens.visible import visible

_MARKUP = re.compile(r"[^\w\s.,()/=-]|_", re.ASCII)


def case_page(cases: Sequence[Case]) -> str:
    """A sentence, a table with a line per question, and below it what is wrong with a question, folded."""
    good = sum(case.problem is None for case in cases)
    lines = [f"### treesens: {good} of {len(cases)} questions are answered as expected", ""]
    lines += ["| | question | file |", "| --- | --- | --- |", *map(_line, cases), ""]
    for case in cases:
        if case.problem is not None:
            lines += [*_details(case), ""]
    return "\n".join(lines)


def _line(case: Case) -> str:
    answer = "as expected" if case.problem is None else f"**{case.problem}**"
    return f"| {answer} | {_code(case.name)} | {_code(f'{case.file}:{case.line}')} |"


def _details(case: Case) -> list[str]:
    """HTML without an empty line, at which Markdown would begin again."""
    text = html.escape(visible(case.message, lines=True))
    message = "\n".join(line for line in text.splitlines() if line.strip())
    about = html.escape(RULES[str(case.problem)][1])
    name = html.escape(_one_line(case.name))
    return [f"<details><summary><code>{name}</code>: {about}</summary>", f"<pre>{message}</pre>", "</details>"]


def _code(text: str) -> str:
    """Text in a cell: every sign that could be markup is written by its number."""
    return f"<code>{_MARKUP.sub(lambda sign: f'&#{ord(sign[0])};', _one_line(text))}</code>"


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))
