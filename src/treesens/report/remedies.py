"""The remedy of a note in the words of the command that was used: an option in place of a declaration."""

from __future__ import annotations

import re
import shlex

REAL = re.compile(r"declare (?:`feature (.+): real`|`` feature `(.+)`: real ``) if fractions can occur")


def at_command(note: str) -> str:
    """A note whose remedy is an option of the command instead of a declaration; the shell sees a name as one word."""
    return REAL.sub(lambda found: f"add `--real {shlex.quote(found[1] or found[2])}` if fractions can occur", note)
