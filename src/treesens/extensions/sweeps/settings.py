"""The settings of a sweep: the options of its questions, and options of the sweep itself."""

from __future__ import annotations

import json
from dataclasses import dataclass

from treesens.compiler.base.option_kinds import Declared, Door, Flag, Option, Seconds, declared, given
from treesens.solve.options import BACKEND, Options


@dataclass(frozen=True)
class Settings(Options):
    """Options of every question of a sweep, and options of the sweep itself. Times are in seconds."""

    backend: str = given(BACKEND, "native")
    total_limit: float | None = given(
        Option(Seconds(), "Seconds for all questions.", door=Door.SPEC | Door.SWEEP), None
    )
    share: bool = given(Option(Flag(), None, door=Door.SPEC), True)
    retry: bool = given(
        Option(
            Flag(),
            "Repeat the questions that failed in an earlier run (lost workers, errors); otherwise they stay unknown.",
            door=Door.SWEEP,
        ),
        False,
    )


def settings_of(door: Door) -> list[Declared]:
    """The settings available through one interface, in order of declaration."""
    return declared(Settings, door)


def settings_text(settings: Settings) -> str:
    """The settings as JSON, for the journal."""
    known = settings_of(Door.SPEC | Door.SWEEP)
    return json.dumps({one.field: getattr(settings, one.field) for one in known}, sort_keys=True, default=str)
