"""Runs a function in a child process; returns the child's messages and the function's value, or the reason why it is missing.

On Linux the process is a fork of a server that has loaded the function's modules (`fork_server.py`): the fork starts within
milliseconds, while starting Python and loading a library take 0.4 to 1 s. On other systems, or if no server can be started, the
child is a new interpreter.

Messages are pickled and preceded by their size. The parent writes messages to the child's standard input. The child writes
messages to a private pipe, because libraries print to standard output, which is redirected to standard error; the last lines of
standard error are kept. A child is terminated with its parent, and the parent handles Ctrl-C.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from treesens.runtime.fork_server import Forked, Place, Servers, serve
from treesens.runtime.processes import die_with_starter, environment

GRACE_SECONDS = 2.0
"""Seconds within which a process must exit by itself after it has closed its pipe."""
_HEADER = struct.Struct("<Q")
_LINES = 20
"""Number of lines kept from the end of the child's standard error."""
_THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip

servers = Servers(__name__)
_news = threading.Condition()


if sys.platform == "linux":
    # A fork has none of the parent's threads; if one of these holds the lock, the fork would wait forever.
    os.register_at_fork(after_in_child=lambda: globals().update(_news=threading.Condition()))


@dataclass(frozen=True)
class Value:
    """The last message of a child: the function's return value."""

    value: Any


class NoValue(Exception):
    """The reason why a function returned no value: the call was `late`, or the process ended. `words` holds the last lines of
    the process's standard error.
    """

    def __init__(self, reason: str, words: str = "", *, late: bool = False) -> None:
        super().__init__(reason)
        self.words, self.late = words, late


@dataclass(eq=False)
class Child:
    """A process that runs a function; the function's first argument is the channel to the parent process (`Parent`)."""

    process: subprocess.Popen[bytes] | Forked
    started: float
    news: deque[Any] = field(default_factory=deque)
    """The unread messages."""
    ended: bool = False
    """True once the child's pipe is closed: no more messages will arrive."""
    _lines: deque[bytes] = field(default_factory=lambda: deque(maxlen=_LINES))
    _listeners: list[threading.Thread] = field(default_factory=list)

    @staticmethod
    def start(
        function: Callable[..., Any],
        *arguments: Any,
        loads: Sequence[str] = (),
        threads: int = 1,
        memory: int | None = None,
        fork: bool = True,
    ) -> Child:
        """Starts a child that imports `function` by name and runs it. `loads` lists modules that the server imports once;
        `memory` is the memory limit of the process, in bytes.
        """
        started = time.monotonic()
        forked = servers.fork((tuple(loads), threads), loads, lambda: _place(threads)) if fork else None
        process = forked or subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(threads),
            start_new_session=os.name == "posix",
        )
        child = Child(process, started)
        child.send((function.__module__, function.__qualname__, arguments, memory))
        for listen in (child._read, child._drain):
            child._listeners.append(threading.Thread(target=listen, daemon=True))
            child._listeners[-1].start()
        return child

    def send(self, message: Any) -> None:
        """Sends a message from a thread, so that a large message does not block while the child is still importing."""
        data = pickle.dumps(message)

        def write() -> None:
            assert self.process.stdin is not None
            # The pipe stays open: for the child, a closed pipe means that its parent has ended.
            with contextlib.suppress(OSError, ValueError):
                self.process.stdin.write(_HEADER.pack(len(data)) + data)
                self.process.stdin.flush()

        threading.Thread(target=write, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        try:
            for data in _messages(self.process.stdout.fileno()):
                message = pickle.loads(data)  # noqa: S301 (our own child)
                with _news:
                    self.news.append(message)
                    _news.notify_all()
        finally:
            with _news:
                self.ended = True
                _news.notify_all()

    def _drain(self) -> None:
        assert self.process.stderr is not None
        self._lines.extend(self.process.stderr)

    @property
    def seconds(self) -> float:
        """Seconds since the child was started."""
        return time.monotonic() - self.started

    def kill(self) -> None:
        """Kills the process and all its child processes immediately."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                if os.name == "posix":
                    os.killpg(self.process.pid, signal.SIGKILL)
                else:
                    self.process.kill()
        self.process.wait()

    def why(self) -> NoValue:
        """The reason why a process closed its pipe without sending a value."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=GRACE_SECONDS)  # if the process exits by itself, its status is the reason
        self.kill()
        self._listeners[-1].join(timeout=GRACE_SECONDS)
        words = b"".join(self._lines).decode(errors="replace").strip()
        return NoValue(f"the process ended with code {self.process.wait()}", words)

    def close(self) -> None:
        """Kills the process in any state, and closes its pipes."""
        self.kill()
        for listener in self._listeners:
            listener.join(timeout=GRACE_SECONDS)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def wait_for_news(children: Sequence[Child], seconds: float) -> None:
    """Returns as soon as one of the children has a message or has ended, or after this many seconds."""
    with _news:
        _news.wait_for(lambda: any(child.news or child.ended for child in children), seconds)


def run(function: Callable[..., Any], *arguments: Any, seconds: float, **how: Any) -> Any:
    """The value of a function (see `Child.start`). Raises NoValue after this many seconds, or if the process ends first."""
    child = Child.start(function, *arguments, **how)
    try:
        while (left := seconds - child.seconds) > 0:
            wait_for_news([child], left)
            ended = child.ended
            while child.news:
                message = child.news.popleft()
                if isinstance(message, Value):
                    return message.value
            if ended:
                raise child.why()
        raise NoValue(f"no value in {seconds:.0f} s", late=True)
    finally:
        child.close()


def start_loading(loads: Sequence[str], threads: int) -> None:
    """Starts a server in the background, which imports the modules in `loads`."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # a child works without it
            servers.server((tuple(loads), threads), loads, _place(threads))


def _environment(threads: int) -> dict[str, str]:
    return environment(**dict.fromkeys(_THREADS, str(threads)))


def _place(threads: int) -> Place:
    return os.getcwd(), tuple(sorted(_environment(threads).items()))


def _messages(descriptor: int) -> Iterator[bytes]:
    """Yields messages until the other end is closed."""
    buffer = bytearray()
    while chunk := os.read(descriptor, 1 << 20):
        buffer += chunk
        while len(buffer) >= _HEADER.size:
            end = _HEADER.size + _HEADER.unpack_from(buffer)[0]
            if len(buffer) < end:
                break
            yield bytes(buffer[_HEADER.size : end])
            del buffer[:end]


class Parent:
    """The child's end of the channel to its parent."""

    def __init__(self, source: int, target: int) -> None:
        self._pipe, self._lock = os.fdopen(target, "wb"), threading.Lock()
        self._arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(source,), daemon=True).start()

    def _listen(self, source: int) -> None:
        try:
            for data in _messages(source):
                self._arrived.put(data)
        finally:
            os._exit(3)  # the parent has closed its end

    def send(self, message: Any) -> None:
        """Sends a message; any thread may call this."""
        data = pickle.dumps(message)
        with self._lock:
            self._pipe.write(_HEADER.pack(len(data)) + data)
            self._pipe.flush()

    def receive(self, seconds: float | None = None) -> Any:
        """The next message, or None if no message arrives within this many seconds."""
        try:
            return pickle.loads(self._arrived.get(timeout=seconds))  # noqa: S301 (written by our own parent)
        except queue.Empty:
            return None


def _limit_memory(limit: int | None) -> None:
    if limit is None or os.name != "posix":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def work() -> None:
    """Runs the requested function. Standard output, to which libraries print, is redirected to standard error."""
    target = os.dup(1)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_starter()
    parent = Parent(0, target)
    module, name, arguments, memory = parent.receive()
    _limit_memory(memory)
    parent.send(Value(getattr(importlib.import_module(module), name)(parent, *arguments)))
    os._exit(0)  # the value is sent; destructors of libraries take time, and may crash


def main() -> None:
    """Runs a server, which loads modules, or (without arguments) a single child process."""
    if len(sys.argv) == 1:
        work()
    for module in sys.argv[1:-1]:
        # A failed import fails again in the fork, which can report the error.
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    serve(work)


if __name__ == "__main__":
    # Messages are instances of the module's classes, not of the script's.
    importlib.import_module("treesens.runtime.child").main()
