"""Ctrl-C: the first signal requests the best answer so far; the second signal terminates the program.

Most work checks an event periodically. Other work (the first import of a library, a parser, a pass) has `PATIENCE_SECONDS` to
return on its own, and is then aborted by an exception, so that the command ends promptly with its results so far, even on a
busy machine.
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
"""Seconds after the first Ctrl-C until uninterruptible work is aborted."""
AGAIN_SECONDS = 0.4
"""Seconds until such work is aborted again, if its cleanup also takes too long."""


class Hurry(KeyboardInterrupt):
    """Raised in the main thread `PATIENCE_SECONDS` after a Ctrl-C: the current results become the answer."""


@dataclass
class Interruption:
    """The state of an interruption. Searches check `event`, which the first Ctrl-C sets."""

    event: threading.Event = field(default_factory=threading.Event)
    _left: threading.Event = field(default_factory=threading.Event)
    _due: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def happened(self) -> bool:
        return self.event.is_set()

    @contextmanager
    def giving_up(self) -> Iterator[None]:
        """A block that may be aborted early when time runs out."""
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
            with suppress(RuntimeError):  # the signal interrupted another `print`
                print("interrupted: finishing with the results so far (once more to quit)", file=sys.stderr, flush=True)

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
        """Waits for a pending signal; after this call no further exception is raised."""
        self._left.set()
        with self._lock:
            pass
        until = time.monotonic() + AGAIN_SECONDS
        while self._due and time.monotonic() < until:
            time.sleep(0.001)


def _signal_main_thread() -> None:
    """Sends SIGINT to the main thread, whatever this thread is waiting for."""
    if os.name == "posix":
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()


def interruptible() -> AbstractContextManager[Interruption, bool]:
    """Turns SIGINT into a stop request during the block, and aborts the block `PATIENCE_SECONDS` later."""
    return cast("AbstractContextManager[Interruption, bool]", _interruptible())  # the block may swallow a Hurry


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
