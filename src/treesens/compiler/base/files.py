"""Reads regular files up to a size limit, and writes files atomically."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from treesens.compiler.base.diagnostics import Remedy, did_you_mean
from treesens.compiler.base.packages import PURPOSES, imported
from treesens.errors import DataError, OverwriteError, TreesensError, UsageError

MOST_TEXT_BYTES = 50_000_000
"""Size limit of files written by users (sweeps, lists of instances) and of IR text."""

_MARK = b'"schema_version"'
"""The mark in the first lines of treesens records."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True)
class Run:
    """The inputs and planned outputs of a run: real paths of files, and of folders that are inputs as a whole."""

    inputs: set[Path] = field(default_factory=set)
    outputs: set[Path] = field(default_factory=set)


_run: ContextVar[Run | None] = ContextVar("run", default=None)


@contextlib.contextmanager
def one_run(*inputs: str | os.PathLike[str]) -> Iterator[Run]:
    """The scope within which no output may be an input: a command, or a Python call that writes a file or records its input.

    A run starts with the given `inputs`, and ignores earlier runs. A run inside another run is part of the outer run. Outside
    of all runs, files are read and written without these checks.
    """
    run = _run.get()
    if run is not None:
        run.inputs.update(map(_real, inputs))
        yield run
        return
    run = Run(set(map(_real, inputs)))
    token = _run.set(run)
    try:
        yield run
    finally:
        _run.reset(token)


def _real(path: str | os.PathLike[str]) -> Path:
    return Path(os.path.realpath(path))


def open_regular(path: str | os.PathLike[str], *, own: bool = False) -> BinaryIO:
    """Opens a file for reading. Raises OSError for irregular files: a pipe would block, and reading a device may never end.

    The file becomes an input of this run, unless it is a treesens file (`own`) that the run continues.

    Without O_NONBLOCK, a pipe that replaces the file between the check and the opening would block.
    """
    _refuse_others(os.stat(path).st_mode)
    run = _run.get()
    if run is not None and not own:
        if _among(Path(path), run.outputs):
            raise _overwrites(Path(path))
        run.inputs.add(_real(path))
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _refuse_others(os.fstat(descriptor).st_mode)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def near_file(path: str | os.PathLike[str]) -> str:
    """A remedy that suggests the file in the same folder with the most similar name; empty if no name is similar."""
    try:
        names = [entry.name for entry in islice(os.scandir(Path(path).parent), _MOST_NAMES)]
    except (OSError, ValueError):
        return ""
    near = did_you_mean(Path(path).name, names)
    return str(near) if isinstance(near, Remedy) and near.text != Path(path).name else ""


_MOST_NAMES = 10_000


def will_read_folder(path: str | os.PathLike[str]) -> None:
    """Makes a whole folder an input of this run, because an additional file in the folder would change the model.

    Raises OverwriteError if the run will write into the folder.
    """
    run = _run.get()
    if run is None:
        return
    folder = _real(path)
    for output in run.outputs:
        if _lies_in(output, {folder}):
            raise _writes_into(output)
    run.inputs.add(folder)


def read_regular(path: str | os.PathLike[str], most: int, *, own: bool = False) -> bytes:
    """The content of a file. Raises OSError for an irregular file, or for more than `most` bytes."""
    with open_regular(path, own=own) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"the file has more than {most:,} bytes")
    return data


def read_text(path: Path, what: str, remedy: str, *, own: bool = False, error: type[TreesensError] = DataError) -> str:
    """The text of a file; messages call the file `what`. Raises `error` for a file that cannot be read or is not UTF-8."""
    try:
        return read_regular(path, MOST_TEXT_BYTES, own=own).decode("utf-8")
    except OSError as problem:
        raise error(f"the {what} cannot be read: {problem.strerror}", place=str(path)) from None
    except UnicodeDecodeError as problem:
        raise error(f"byte {problem.start} is not UTF-8", place=str(path), remedy=remedy) from None


def _refuse_others(mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
        raise OSError(errno.EINVAL, f"this is {kind}, not a regular file")


def will_write(path: Path, *, derived: bool = False, force: bool = False) -> Path:
    """Raises OverwriteError for a file that this run (`one_run`) reads under any name, and for a file in a folder that the run
    reads as a model. After the call, the run cannot read the file.

    With `derived`, the name was derived from another name: an existing file is replaced only if it is a treesens record, or if
    `force` is set. Every output of every command and call is checked here, before the work starts and when it is written.
    """
    run = _run.get()
    if run is not None and _among(path, run.inputs):
        raise _overwrites(path)
    if run is not None and _lies_in(path, run.inputs):
        raise _writes_into(path)
    if derived and not force and path.is_file() and not _is_ours(path):
        raise OverwriteError(
            "a file of this name exists, and treesens did not write the file",
            place=str(path),
            remedy="pass another output, or move the file away",
        )
    if run is not None:
        run.outputs.add(_real(path))
    return path


def _among(path: Path, known: set[Path]) -> bool:
    """True if the operating system identifies a path with a known file, so that links and spelling do not matter."""
    for other in tuple(known):
        with contextlib.suppress(OSError, ValueError):
            if other.is_file() and os.path.samefile(path, other):
                return True
    return False


def _lies_in(path: Path, known: set[Path]) -> bool:
    """True if a path is a known folder, or lies inside a known folder."""
    real = _real(path)
    for other in tuple(known):
        with contextlib.suppress(OSError, ValueError):
            if other.is_dir() and any(os.path.samefile(p, other) for p in (real, *real.parents) if p.exists()):
                return True
    return False


def _writes_into(path: Path) -> OverwriteError:
    words = "this run reads the file's folder as a model, and writing the file would change the model"
    return OverwriteError(words, place=str(path), remedy="pass an output outside of that folder")


def _overwrites(path: Path) -> OverwriteError:
    return OverwriteError(
        "the file is an input of this run and would be overwritten", place=str(path), remedy="name another output"
    )


def _is_ours(path: Path) -> bool:
    with contextlib.suppress(OSError), path.open("rb") as file:
        return _MARK in file.read(200)
    return False


def write_atomically(
    path: Path, content: str | bytes, *, in_place: bool = False, derived: bool = False, force: bool = False
) -> None:
    """Writes a file under a temporary name and renames it, so that readers get the old or the new content, even on a full disk.

    Links are followed, and the permissions of a replaced file are kept. Raises UsageError if the file cannot be written, and
    OverwriteError as in `will_write`, unless the file is changed `in_place`.
    """
    if not in_place:
        will_write(path, derived=derived, force=force)
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    with _told(path):
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            # A device such as /dev/stdout is written to directly; a folder is an error.
            target.write_bytes(data)
            return
        beside = target.with_name(f".{target.name[:80]}.{os.urandom(4).hex()}.tmp")
        try:
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                os.chmod(beside, stat.S_IMODE(target.stat().st_mode))
            os.replace(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    if (run := _run.get()) is not None:
        run.outputs.discard(target)


def check_writable(path: Path | None) -> None:
    """Raises UsageError, before the work starts, if a file cannot be written at this path."""
    if path is None:
        return
    will_write(path)
    with _told(path):
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():
            return
        probe = target.with_name(f".{target.name[:80]}.{os.urandom(4).hex()}.tmp")
        with probe.open("xb"):
            pass
        probe.unlink()
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def check_output(path: Path, needs: str | None = None) -> None:
    """Raises UsageError if an output cannot be written, and MissingPackageError if the package that the output `needs`
    (`PURPOSES`) is missing, in both cases before the work starts.
    """
    if needs is not None:
        imported(needs, PURPOSES[needs], place=str(path))
    check_writable(path)


def make_folder(path: Path) -> None:
    """Creates a folder and its parents if they do not exist. Raises UsageError if this fails."""
    with _told(path, "the folder cannot be created", "name another folder"):
        path.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def _told(
    path: Path, what: str = "the file cannot be written", remedy: str = "pass a file in an existing folder"
) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{what}: {reason}", place=str(path), remedy=remedy) from None
