"""Tables of options, errors, rules and the schedule are made from the declarations when the site is built.

docs/solving.md lists the methods that there are, in their order.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.docs.option_tables import DOCS, MARK, METHODS_MARK, decisions, errors, filled, rules, schedule, table
from treesens.cli import command_names
from treesens.compiler.query.cases import MOST_CASES
from treesens.solve.methods.registry import all_methods
from treesens.solve.question import UNSPLIT


def test_one_page_has_the_table_of_every_command_in_its_section() -> None:
    texts = {page.name: page.read_text("utf-8") for page in DOCS.glob("*.md")}
    assert [name for name, text in texts.items() if MARK.search(text)] == ["options.md"]
    text = texts["options.md"]
    assert sorted(MARK.findall(text)) == sorted(set(command_names()) - {"schema"})
    assert re.findall(r"^## (\w+)\n\n<!-- options of (\w+) -->$", text, re.MULTILINE) == [
        (n, n) for n in MARK.findall(text)
    ]
    assert not MARK.search(filled(text))


def test_a_table_has_a_row_for_every_option_and_says_what_it_means() -> None:
    for name in set(command_names()) - {"schema"}:
        rows = [line.strip("|").split(" | ") for line in table(name).splitlines()[2:]]
        assert rows, name
        assert all(row[0].strip().startswith("`--") and row[1].strip() for row in rows), name


@pytest.mark.parametrize(
    ("page", "made", "first"),
    [
        ("language", errors, "| S001 |"),
        ("ir", rules, "| R1 |"),
        ("engine", schedule, "| `local_turn` |"),
        ("adr/README", decisions, "- [0001]"),
    ],
)
def test_a_page_has_the_table_in_place_of_its_mark(page: str, made: Callable[[], str], first: str) -> None:
    text = filled((DOCS / f"{page}.md").read_text("utf-8"))
    assert made() in text
    assert first in made()


PAGE = DOCS / "solving.md"


def test_the_table_is_made_from_the_list() -> None:
    text = PAGE.read_text("utf-8")
    assert text.count(METHODS_MARK) == 1
    head = "| method | kind | for which questions | time | what it proves | file |\n| --- | --- | --- | --- | --- | --- |\n"
    rows = filled(text).partition(head)[2].partition("\n\n")[0].splitlines()
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [method.name for method in all_methods()]


def test_every_method_has_a_name_of_its_own_and_can_be_imported() -> None:
    assert len({method.name for method in all_methods()}) == len(all_methods())
    assert all(callable(method.function()) for method in all_methods())


def test_the_limit_of_cases_is_that_of_the_page() -> None:
    text = " ".join(PAGE.read_text("utf-8").split())
    assert f"more than {MOST_CASES} cases" in text
    assert f"the note {UNSPLIT}" in text
