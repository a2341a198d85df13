"""Files of other people: regular files only, up to a size. And our own: whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from treesens.errors import OverwriteError, UsageError

MOST_TEXT_BYTES = 50_000_000
"""Of files that people write (sweeps, lists of instances) and of the IR's text."""

_inputs: set[Path] = set()
_outputs: set[Path] = set()
"""What this run has read, and what it will write (`will_write`). A command is a run; so is a process that calls from Python."""

_MARK = b'"schema_version"'
"""Stands in the first lines of our own records."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_regular(path: str | os.PathLike[str], *, own: bool = False) -> BinaryIO:
    """A file for reading. OSError for what is none: a pipe would be waited for, a device may never end.

    It is an input of this run from now on, unless it is a file of our `own` that the run goes on with.

    Without O_NONBLOCK a pipe that takes a file's place between the look and the opening would still be waited for.
    """
    _refuse_others(os.stat(path).st_mode)
    if not own:
        if _among(Path(path), _outputs):
            raise _overwrites(Path(path))
        _inputs.add(Path(os.path.realpath(path)))
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _refuse_others(os.fstat(descriptor).st_mode)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: str | os.PathLike[str], most: int, *, own: bool = False) -> bytes:
    """The content of a regular file of at most `most` bytes; OSError for any other."""
    with open_regular(path, own=own) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"the file has more than {most:,} bytes")
    return data


def _refuse_others(mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
        raise OSError(errno.EINVAL, f"this is {kind}, not a regular file")


def new_run() -> None:
    """Forgets what was read and what was to be written: a command begins."""
    _inputs.clear()
    _outputs.clear()


def will_write(path: Path, *, derived: bool = False, force: bool = False) -> Path:
    """OverwriteError for a file that this run reads, whatever name it has there; from now on it cannot be read either.

    With `derived` the name follows from another one: a file that is there is replaced only if it is a record of ours, or with
    `force`. Every output of every command and call goes through here, before the work and when it is written.
    """
    if _among(path, _inputs):
        raise _overwrites(path)
    if derived and not force and path.is_file() and not _is_ours(path):
        raise OverwriteError(
            "there is a file of this name, which treesens did not write",
            place=str(path),
            remedy="name another output, or move the file away",
        )
    _outputs.add(Path(os.path.realpath(path)))
    return path


def _among(path: Path, known: set[Path]) -> bool:
    """Whether a path is one of some files: by what the system says, so that links and spelling do not matter."""
    for other in known:
        with contextlib.suppress(OSError, ValueError):
            if other.is_file() and os.path.samefile(path, other):
                return True
    return False


def _overwrites(path: Path) -> OverwriteError:
    return OverwriteError(
        "the file is an input of this run, and would be written over", place=str(path), remedy="name another output"
    )


def _is_ours(path: Path) -> bool:
    with contextlib.suppress(OSError), path.open("rb") as file:
        return _MARK in file.read(200)
    return False


def write_atomically(
    path: Path, content: str | bytes, *, in_place: bool = False, derived: bool = False, force: bool = False
) -> None:
    """Writes a file beside its place and renames it: whoever reads, and a full disk, meets the old content or the new one.

    A link is followed, and the permissions of a file that is replaced are kept. UsageError where it cannot be written;
    OverwriteError as `will_write` says, unless a file is to be changed `in_place`.
    """
    if not in_place:
        will_write(path, derived=derived, force=force)
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    with _told(path):
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            # A device such as /dev/stdout is written to; a folder refuses.
            target.write_bytes(data)
            return
        beside = target.with_name(f".{target.name[:80]}.{secrets.token_hex(4)}.tmp")
        try:
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                os.chmod(beside, stat.S_IMODE(target.stat().st_mode))
            os.replace(beside, target)
            _outputs.discard(target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise


def check_writable(path: Path | None) -> None:
    """UsageError where a file cannot be written here: before the work that is to be written, not after it."""
    if path is None:
        return
    will_write(path)
    with _told(path):
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():
            return
        probe = target.with_name(f".{target.name[:80]}.{secrets.token_hex(4)}.tmp")
        with probe.open("xb"):
            pass
        probe.unlink()
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"the file cannot be written: {reason}", place=str(path), remedy="name a file in a folder that is there"
        ) from None
