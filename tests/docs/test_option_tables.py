"""The option tables of the pages about commands are those of the declarations."""

from __future__ import annotations

from tests.docs.option_tables import pages


def test_tables_of_options_are_made_from_the_declarations() -> None:
    for page, text in pages().items():
        assert page.read_text("utf-8") == text, "python -m tests.docs.option_tables --write"
