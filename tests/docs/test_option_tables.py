"""The option tables of the pages about commands are made from the declarations when the site is built."""

from __future__ import annotations

from tests.docs.option_tables import DOCS, MARK, OPTIONS, filled, table
from treesens.builtin import STUDIES

COMMANDS = sorted([*STUDIES.names(), *OPTIONS])


def test_every_command_has_the_mark_of_its_table_in_its_section() -> None:
    texts = [page.read_text("utf-8") for page in sorted(DOCS.glob("cli-*.md"))]
    assert sorted(name for text in texts for name in MARK.findall(text)) == COMMANDS
    for text in texts:
        for mark in MARK.finditer(text):
            assert text[: mark.start()].rpartition("\n## ")[2].startswith(f"{mark[1]}\n"), mark[1]
        assert "| `--" in filled(text) or not MARK.search(text)
        assert not MARK.search(filled(text))


def test_a_table_has_a_row_for_every_option_and_says_what_it_means() -> None:
    for name in COMMANDS:
        rows = [line.strip("|").split(" | ") for line in table(name).splitlines()[2:]]
        assert rows
        assert all(row[0].strip().startswith("`--") and row[1].strip() for row in rows), name
