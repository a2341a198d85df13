"""The type stub of the studies is that of their declarations."""

from __future__ import annotations

from tests.extensions.studies.calls_stub import STUB, formatted


def test_the_stub_is_made_from_the_declarations() -> None:
    assert STUB.read_text("utf-8") == formatted(), "python -m tests.extensions.studies.calls_stub --write"
