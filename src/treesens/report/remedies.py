"""The remedy of a note in the words of the command that was used: an option in place of a declaration."""

from __future__ import annotations

import re

REAL = re.compile(r"declare `feature (.+): real` if fractions can occur")


def at_command(note: str) -> str:
    """A note whose remedy is an option of the command instead of a declaration."""
    return REAL.sub(lambda found: f"add `--real {found[1]}` if fractions can occur", note)
