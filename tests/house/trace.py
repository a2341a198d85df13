"""Which modules of a room one command enters, and from where: python -m tests.house.trace ROOM ARGUMENTS…

A module is entered when a function of it is called by a function of another module. Imports do not count.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any


def entries(room: str, run: Callable[[], object]) -> Counter[tuple[str, str]]:
    """How often `run` enters each module below `treesens.ROOM`, by (module, function called from outside)."""
    found: Counter[tuple[str, str]] = Counter()
    prefix = f"treesens.{room}."

    def on_event(frame: FrameType, event: str, argument: Any) -> None:
        del argument
        if event != "call":
            return
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(prefix) or frame.f_code.co_name == "<module>":
            return
        caller = frame.f_back
        while caller is not None and not caller.f_globals.get("__name__", "").startswith("treesens."):
            caller = caller.f_back  # a library in between, such as click or dataclasses
        if caller is None or caller.f_globals.get("__name__", "") != module:
            found[module.removeprefix(prefix), frame.f_code.co_qualname] += 1

    previous = sys.getprofile()
    sys.setprofile(on_event)
    try:
        run()
    finally:
        sys.setprofile(previous)
    return found


def main() -> None:
    from treesens.cli import main as treesens

    room, *arguments = sys.argv[1:]
    sys.argv[1:] = arguments

    def run() -> None:
        with suppress(SystemExit):
            treesens()

    for (module, function), count in sorted(entries(room, run).items()):
        print(f"{count:4} {module}.{function}", file=sys.stderr)


if __name__ == "__main__":
    main()
