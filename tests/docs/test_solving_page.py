"""docs/solving.md lists the methods that there are, in their order."""

from __future__ import annotations

from tests.docs.option_tables import DOCS, METHODS_MARK, filled
from treesens.compiler.query.cases import MOST_CASES
from treesens.solve.methods.registry import all_methods
from treesens.solve.question import UNSPLIT

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
