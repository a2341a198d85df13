"""Ctrl-C: the first one asks for the best answer so far, and is in a hurry; the second one ends the program.

Most work looks at the event from time to time. What does not (a library that is imported for the first time, a parser, a
pass) gets `PATIENCE_SECONDS` to come back by itself, and is then left by an exception, so that the command ends at once with
what it has, however busy the machine is.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

PATIENCE_SECONDS = 0.7
"""After the first Ctrl-C, until the work is left if it is."""
AGAIN_SECONDS = 0.4
"""Until it is left again: what finished in its place takes too long as well."""


class Hurry(KeyboardInterrupt):
    """Raised in the main thread when the patience after a Ctrl-C is over: what is known now is the answer."""


@dataclass
class Interruption:
    """What a Ctrl-C has set in motion; `event` is for the searches."""

    event: threading.Event = field(default_factory=threading.Event)
    _left: threading.Event = field(default_factory=threading.Event)
    _due: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def happened(self) -> bool:
        return self.event.is_set()

    @contextmanager
    def giving_up(self) -> Iterator[None]:
        """A block that may be left half done when there is no more time."""
        with suppress(Hurry):
            yield

    def on_signal(self, number: int, frame: Any) -> None:
        del number, frame
        if self._due:
            self._due = False
            if not self._left.is_set():
                raise Hurry
        elif self.happened:
            raise KeyboardInterrupt
        else:
            self.event.set()
            threading.Thread(target=self._hurry, daemon=True).start()
            with suppress(RuntimeError):  # the signal came in the middle of such a line
                print("interrupted: finishing with what is known (once more to quit)", file=sys.stderr, flush=True)

    def _hurry(self) -> None:
        seconds = PATIENCE_SECONDS
        while not self._left.wait(seconds):
            seconds = AGAIN_SECONDS
            with self._lock:
                if self._left.is_set():
                    return
                self._due = True
                _signal_main_thread()

    def leave(self) -> None:
        """From now on nothing is raised any more; a signal that is on its way is waited for."""
        self._left.set()
        with self._lock:
            pass
        until = time.monotonic() + AGAIN_SECONDS
        while self._due and time.monotonic() < until:
            time.sleep(0.001)


def _signal_main_thread() -> None:
    """SIGINT for the main thread, whatever it waits for."""
    if os.name == "posix":
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()


def interruptible() -> AbstractContextManager[Interruption, bool]:
    """Turns SIGINT into a request to stop for the time of the block, which is left when the patience is over."""
    return cast("AbstractContextManager[Interruption, bool]", _interruptible())  # it may swallow a Hurry


@contextmanager
def _interruptible() -> Iterator[Interruption]:
    state = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield state
        return
    previous = signal.signal(signal.SIGINT, state.on_signal)
    try:
        with state.giving_up():
            yield state
    finally:
        state.leave()
        signal.signal(signal.SIGINT, previous)
