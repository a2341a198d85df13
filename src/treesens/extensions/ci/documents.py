"""Writes answers of `check` for CI tools as JUnit XML, SARIF 2.1.0 and GitHub-flavoured Markdown."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import treesens
from treesens.visible import visible

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

RULES = {
    "violated": ("error", "An expectation is violated, as a verified witness or a proof shows."),
    "inconclusive": ("warning", "A question could not be decided within its limits."),
    "broken": ("error", "A question is invalid, or could not be solved."),
}
"""The kinds of problems with a question, each with its level and its meaning."""


@dataclass(frozen=True)
class Case:
    """One question: its file and line (from 1), its problem (a key of RULES, or None), and the reason."""

    file: str
    line: int
    name: str
    problem: str | None
    message: str
    seconds: float = 0.0


def junit(cases: Sequence[Case]) -> str:
    """JUnit XML with a suite per file; violated expectations are failures, and undecided or invalid questions are errors."""
    root = ElementTree.Element("testsuites", {"name": "treesens", **_counts(cases)})
    for file in dict.fromkeys(case.file for case in cases):
        mine = [case for case in cases if case.file == file]
        suite = ElementTree.SubElement(root, "testsuite", {"name": _plain(file), **_counts(mine)})
        for case in mine:
            element = ElementTree.SubElement(
                suite,
                "testcase",
                classname=_plain(file),
                name=_plain(case.name),
                file=_plain(file),
                line=str(case.line),
                time=f"{case.seconds:.3f}",
            )
            if case.problem is not None:
                kind = "failure" if case.problem == "violated" else "error"
                child = ElementTree.SubElement(element, kind, message=_plain(case.message), type=case.problem)
                child.text = visible(case.message, lines=True)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    failures = sum(case.problem == "violated" for case in cases)
    errors = sum(case.problem not in {None, "violated"} for case in cases)
    seconds = sum(case.seconds for case in cases)
    return {"tests": str(len(cases)), "failures": str(failures), "errors": str(errors), "time": f"{seconds:.3f}"}


def sarif(cases: Sequence[Case]) -> str:
    """SARIF 2.1.0 (OASIS) with one run, which contains a result for every question with a problem."""
    results = [_sarif_result(case) for case in cases if case.problem is not None]
    rules = [
        {"id": name, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}
        for name, (level, text) in RULES.items()
    ]
    driver = {"name": "treesens", "version": treesens.__version__, "rules": rules}
    document = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _sarif_result(case: Case) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": _plain(case.file)}, "region": {"startLine": max(1, case.line)}}
    return {
        "ruleId": case.problem,
        "ruleIndex": list(RULES).index(str(case.problem)),
        "level": RULES[str(case.problem)][0],
        "message": {"text": visible(f"{case.name}: {case.message}", lines=True)},
        "locations": [{"physicalLocation": place}],
    }


def _plain(text: str) -> str:
    """The text on one line, without control characters, for an XML attribute."""
    return visible(" ".join(text.split()))


_MARKUP = re.compile(r"[^\w\s.,()/=-]|_", re.ASCII)


def case_page(cases: Sequence[Case]) -> str:
    """A sentence, a table with a line per question, and below the table a folded list of the problems."""
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
    """The details as HTML without empty lines, because Markdown would resume after an empty line."""
    text = html.escape(visible(case.message, lines=True))
    message = "\n".join(line for line in text.splitlines() if line.strip())
    about = html.escape(RULES[str(case.problem)][1])
    name = html.escape(_one_line(case.name))
    return [f"<details><summary><code>{name}</code>: {about}</summary>", f"<pre>{message}</pre>", "</details>"]


def _code(text: str) -> str:
    """Text in a table cell, with all markup characters as character references."""
    return f"<code>{_MARKUP.sub(lambda sign: f'&#{ord(sign[0])};', _one_line(text))}</code>"


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))


DOCUMENTS: Mapping[str, Callable[[Sequence[Case]], str]] = {"junit": junit, "sarif": sarif, "markdown": case_page}
"""The function that writes the document, by kind."""
