"""Tables of options, errors, rules and the schedule are made from the declarations when the site is built."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.docs.option_tables import DOCS, MARK, decisions, errors, filled, rules, schedule, table
from treesens.cli import command_names


def test_every_command_has_the_mark_of_its_table_in_its_section() -> None:
    texts = [page.read_text("utf-8") for page in sorted(DOCS.glob("cli-*.md"))]
    assert sorted(name for text in texts for name in MARK.findall(text)) == sorted(set(command_names()) - {"schema"})
    for text in texts:
        for mark in MARK.finditer(text):
            assert text[: mark.start()].rpartition("\n## ")[2].startswith(f"{mark[1]}\n"), mark[1]
        assert "| `--" in filled(text) or not MARK.search(text)
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
