"""The option tables of docs/cli-study.md are those of the declarations."""

from __future__ import annotations

from tests.docs.option_tables import PAGE, page


def test_tables_of_options_are_made_from_the_declarations() -> None:
    text = PAGE.read_text("utf-8")
    assert text == page(text), "python -m tests.docs.option_tables --write"
