"""Progress of a study in a notebook: a bar of the page itself, which is gone when the study is done."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_SECONDS = 0.2
"""Between two looks at the bar: a page that is drawn for every record is slower than the study."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, and no terminal or program."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[Callable[[Any], None]]:
    """The value of the block is called with every record that is done; outside of a notebook it does nothing."""
    if not in_notebook():
        yield lambda _: None
        return
    from IPython.display import HTML, display

    place = display(HTML(_bar(what, 0, total)), display_id=True)
    done, shown = 0, time.monotonic()

    def advance(_: Any) -> None:
        nonlocal done, shown
        done += 1
        if time.monotonic() - shown >= _SECONDS:
            shown = time.monotonic()
            place.update(HTML(_bar(what, done, total)))

    try:
        yield advance
    finally:
        place.update(HTML(""))


def _bar(what: str, done: int, total: int | None) -> str:
    words = f"{html.escape(what)}: {done}" + (f" of {total}" if total is not None else " done")
    limits = "" if total is None else f' value="{done}" max="{max(total, 1)}"'
    return f'<label>{words} <progress{limits} aria-label="{html.escape(what)}"></progress></label>'
