"""The remedy of a note in the words of the interface that was used: an option of the command, an argument of the call."""

from __future__ import annotations

import re

_REAL = re.compile(r"declare `feature (.+): real` if fractions can occur")


def in_python(note: str) -> str:
    """A note whose remedy is an argument of the call instead of a declaration."""
    return _REAL.sub(lambda found: f"give real=[{found[1]!r}] if fractions can occur", note)


def at_command(note: str) -> str:
    """A note whose remedy is an option of the command instead of a declaration."""
    return _REAL.sub(lambda found: f"add `--real {found[1]}` if fractions can occur", note)
