"""A server process that loads modules once and forks itself for each task (Linux).

Starting Python and loading a library takes 0.3 to 1 s. Forking a process after both steps takes milliseconds, and creates a
separate process, whose limits, crashes and exit affect no other process. The server itself does no work, so that all forks
start from the same state. Unlike `multiprocessing.forkserver`, each fork has its own pipes, like a `Popen`.

Protocol: the client sends `fork` with three file descriptors (input, output, errors of the new process), and the server replies
with the process id; or the client sends `wait` and an id, and the server replies with the state (`RUNNING` or the exit code)
and the CPU time. A finished process keeps its id until it is queried, so that no signal can reach an unrelated process. The
server exits when the client's end of the socket is closed.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import IO

_REQUEST = struct.Struct("<cq")
_ANSWER = struct.Struct("<qd")
_FORK, _WAIT = b"f", b"w"
PATIENCE = 20.0
"""Seconds without a reply after which the client abandons a server. Loading a library takes a few seconds on a busy machine."""
RUNNING = 1 << 32
"""The state of a running process; any other state is the process's return code, as in `subprocess`."""

Place = tuple[str, tuple[tuple[str, str], ...]]
"""A working directory and an environment, which forks inherit."""


@dataclass
class _Used:
    """CPU seconds of all forks that have ended."""

    seconds: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, seconds: float) -> None:
        with self.lock:
            self.seconds += seconds


_used = _Used()


def cpu_seconds() -> float:
    """CPU seconds used by this process, its finished children, and the finished forks of its servers."""
    return sum(os.times()[:4]) + _used.seconds


@dataclass
class Forked:
    """A process forked by a server, with the parts of the `Popen` interface that a worker uses."""

    pid: int
    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]
    server: ForkServer
    returncode: int | None = None
    cpu_seconds: float = 0.0
    """CPU seconds of the process and its finished children, available once the process has ended."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def poll(self) -> int | None:
        """The return code, or None while the process runs."""
        with self._lock:
            if self.returncode is None:
                state, seconds = self.server.state_of(self.pid)
                if state != RUNNING:
                    self.returncode, self.cpu_seconds = state, seconds
                    _used.add(seconds)
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the process and returns its return code. Raises `subprocess.TimeoutExpired` after this many seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = 0.0005
        while (code := self.poll()) is None:
            if deadline is not None and timeout is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
        return code

    def kill(self) -> None:
        """Ends the process at once."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


@dataclass
class ForkServer:
    """A server process, with the client's end of the socket."""

    place: Place
    process: subprocess.Popen[bytes]
    channel: socket.socket
    lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def start(module: str, arguments: Sequence[str], place: Place) -> ForkServer:
        """Runs a module with these arguments and the descriptor of its end of the socket; the module then calls `serve`."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, *arguments, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=place[0],
                env=dict(place[1]),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        ours.settimeout(PATIENCE)
        return ForkServer(place, process, ours)

    def fork(self) -> Forked:
        """Forks a new process, which waits for its job. Raises OSError if the server has ended."""
        pipes = [os.pipe() for _ in range(3)]
        (their_in, our_in), (our_out, their_out), (our_err, their_err) = pipes
        mine = os.fdopen(our_in, "wb"), os.fdopen(our_out, "rb", 0), os.fdopen(our_err, "rb")
        try:
            with self.lock:
                socket.send_fds(self.channel, [_REQUEST.pack(_FORK, 0)], [their_in, their_out, their_err])
                answer = self.channel.recv(_ANSWER.size)
            if len(answer) != _ANSWER.size:
                raise BrokenPipeError("the process server has ended")
        except BaseException:
            for pipe in mine:
                pipe.close()
            raise
        finally:
            for descriptor in (their_in, their_out, their_err):
                os.close(descriptor)
        return Forked(_ANSWER.unpack(answer)[0], *mine, self)

    def state_of(self, pid: int) -> tuple[int, float]:
        """The state of a fork, with its CPU seconds if it has ended; a fork counts as killed if the server has ended."""
        try:
            with self.lock:
                self.channel.send(_REQUEST.pack(_WAIT, pid))
                answer = self.channel.recv(_ANSWER.size)
        except OSError:
            answer = b""
        if len(answer) != _ANSWER.size:
            self.process.kill()  # an unresponsive server's forks end with it
            return -signal.SIGKILL, 0.0
        state, seconds = _ANSWER.unpack(answer)
        return int(state), float(seconds)

    def end(self) -> None:
        """Kills the server in any state, and abandons its forks."""
        self.channel.close()
        self.process.kill()
        self.process.wait()

    def __del__(self) -> None:
        self.end()


@dataclass
class Servers:
    """The servers of this process that run a module, by key. A fork of this process starts without servers, so that it neither
    uses its parent's servers nor keeps them alive.
    """

    module: str
    servers: dict[Hashable, ForkServer] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if sys.platform == "linux":
            os.register_at_fork(after_in_child=self._forget)
            atexit.register(self._end)

    def server(self, key: Hashable, arguments: Sequence[str], place: Place) -> ForkServer:
        """The server for a key; it is started if no server for the key runs in this place. Raises OSError if this fails."""
        with self.lock:
            known = self.servers.get(key)
            if known is None or known.place != place or known.process.poll() is not None:
                known = self.servers[key] = ForkServer.start(self.module, arguments, place)
            return known

    def fork(self, key: Hashable, arguments: Sequence[str], place: Callable[[], Place]) -> Forked | None:
        """Forks a process from the server for a key; None if this system does not support servers or cannot start one.

        The server is started at the first fork, and restarted if the environment or the working directory has changed.
        """
        if sys.platform != "linux":
            return None
        for _ in range(2):
            server = None
            try:
                server = self.server(key, arguments, place())
                return server.fork()
            except (
                OSError
            ):  # The server was killed from outside, and is restarted; or the working directory was deleted.
                self._drop(key, server)
        return None

    def _drop(self, key: Hashable, server: ForkServer | None) -> None:
        """Kills an unresponsive server, and unregisters it unless a new server has the key."""
        with self.lock:
            if server is not None and self.servers.get(key) is server:
                del self.servers[key]
        if server is not None:
            server.process.kill()

    def _forget(self) -> None:
        for server in self.servers.values():
            server.channel.close()
        self.servers.clear()
        self.lock = threading.Lock()

    def _end(self) -> None:
        while self.servers:
            self.servers.popitem()[1].end()


def serve(work: Callable[[], None]) -> None:
    """The server's loop after loading: forks on request until the client exits. Each fork runs `work` with its pipes as the
    first three descriptors, and then exits.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the client
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[-1])) as channel:
        _fork_on_request(channel)
    try:
        work()
        code = 0
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise  # Python prints the error
        code = ended.code or 0
    _leave(code)


def _leave(code: int) -> None:
    """Exits like Python, but without the cleanup, which takes most of a short process's time if libraries are large."""
    threading._shutdown()  # type: ignore[attr-defined] # waits for the threads that Python waits for
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(code)  # Python reports output that it cannot write
    os._exit(code)


def _fork_on_request(channel: socket.socket) -> None:
    """Serves requests until the other end is closed; returns only in new processes."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(channel, _REQUEST.size, 3)
        if len(request) != _REQUEST.size:
            os._exit(0)
        what, number = _REQUEST.unpack(request)
        if what == _WAIT:
            ended, status, used = os.wait4(number, os.WNOHANG)
            state = os.waitstatus_to_exitcode(status) if ended else RUNNING
            channel.send(_ANSWER.pack(state, used.ru_utime + used.ru_stime))
            continue
        pid = os.fork()
        if pid:
            for descriptor in descriptors:
                os.close(descriptor)
            channel.send(_ANSWER.pack(pid, 0.0))
            continue
        os.setsid()
        for place, descriptor in enumerate(descriptors):
            os.dup2(descriptor, place)
            os.close(descriptor)
        # New objects: those of the server may treat its descriptors as seekable files.
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
        return
