"""What may be spent on a piece of work: seconds until a deadline, unless somebody asks to stop."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace

LEAST = 0.05
"""Fewest seconds that are worth a search."""


@dataclass(frozen=True)
class Budget:
    """`deadline` on the monotonic clock, in seconds; `stop` is an event that ends the work early. Parts share the event."""

    deadline: float
    stop: threading.Event | None = None

    @staticmethod
    def of(seconds: float, stop: threading.Event | None = None) -> Budget:
        """A budget that begins now."""
        return Budget(time.monotonic() + seconds, stop)

    @property
    def stopped(self) -> bool:
        """Whether somebody asked to stop."""
        return self.stop is not None and self.stop.is_set()

    def left(self) -> float:
        """Seconds until the deadline; 0 past it, or once somebody asked to stop."""
        return 0.0 if self.stopped else max(0.0, self.deadline - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self.left() <= 0

    @property
    def worthwhile(self) -> bool:
        """Whether what is left is worth a search."""
        return self.left() >= LEAST

    @property
    def reason(self) -> str:
        """Why work ended early, in a word."""
        return "interrupted" if self.stopped else "time"

    def within(self, seconds: float) -> Budget:
        """A part of at most so many seconds from now."""
        return replace(self, deadline=min(self.deadline, time.monotonic() + seconds))

    def share(self, part: float) -> Budget:
        """A part of what is left, 0 <= part <= 1."""
        return self.within(part * self.left())

    def at_least(self, seconds: float) -> Budget:
        """The same budget, or so many seconds from now if that is later: a search needs a moment to say anything."""
        return replace(self, deadline=max(self.deadline, time.monotonic() + seconds))
