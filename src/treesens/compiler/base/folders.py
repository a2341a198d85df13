"""Reads users' folders (regular files only, with limits on number, depth and size), and computes their digests.

The SHA-256 of a folder is computed from the `sha256sum` lines of its files, sorted by the bytes of their names. Names that
start with `.` or `_` are excluded: they belong to file systems and copying programs.

    find . -type f -not -path '*/[._]*' -printf '%P\\0' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from treesens.compiler.base.files import open_regular, will_read_folder
from treesens.errors import ModelError
from treesens.visible import visible

Content = bytes | Mapping[str, bytes]
"""The content of a file, or the files of a folder by their relative names, with `/` between folders."""

MOST_FILES = 10_000
"""Maximum entries in a folder, including excluded files and subfolders."""
MOST_BYTES = 1 << 30
_DEEPEST = 24
_FOLDER = "pass the exact folder that the library wrote"


def read_folder(path: Path) -> dict[str, bytes]:
    """A folder's files by name, in digest order. Raises ModelError, with the location, for a link or an irregular file."""
    will_read_folder(path)
    found: dict[str, bytes] = {}
    total = 0
    for name in sorted(_names(path), key=str.encode):
        place = str(path / name)
        try:
            with open_regular(path / name) as file:
                found[name] = file.read(MOST_BYTES - total + 1)
        except OSError as error:
            raise _unreadable(error, place) from None
        total += len(found[name])
        if total > MOST_BYTES:
            raise ModelError(f"the folder has more than {MOST_BYTES:,} bytes", place=str(path), remedy=_FOLDER)
    return found


def folder_digest(files: Mapping[str, bytes]) -> str:
    """The SHA-256 of a folder, given its files by name."""
    names = sorted(files, key=str.encode)
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in names]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def folder_stamp(path: Path) -> tuple[int, int]:
    """A value that changes with any file in the folder: the latest change time in nanoseconds, and the size in bytes.

    Raises ModelError like `read_folder`.
    """
    try:
        newest, total = path.stat().st_mtime_ns, 0
        for name in _names(path):
            told = (path / name).stat()
            newest, total = max(newest, told.st_mtime_ns), total + told.st_size
    except OSError as error:
        raise _unreadable(error, str(path)) from None
    return newest, total


def read_content(path: Path) -> Content:
    """The content of a file, or the files in a folder by name."""
    return read_folder(path) if path.is_dir() else path.read_bytes()


def write_content(path: Path, content: Content) -> None:
    """Writes a file, or a folder with files, to an unused path."""
    if isinstance(content, bytes):
        path.write_bytes(content)
        return
    for name, data in content.items():
        place = path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


def _names(root: Path) -> Iterator[str]:
    """Yields the names of all files that are not excluded, in any order."""
    waiting = [""]
    entries = 0
    while waiting:
        folder = waiting.pop()
        if folder.count("/") >= _DEEPEST:
            raise ModelError(f"folders are nested more than {_DEEPEST} levels deep", place=str(root), remedy=_FOLDER)
        try:
            with os.scandir(root / folder) as listed:
                for entry in listed:
                    entries += 1
                    if entries > MOST_FILES:
                        raise ModelError(
                            f"the folder has more than {MOST_FILES:,} files", place=str(root), remedy=_FOLDER
                        )
                    if entry.name.startswith((".", "_")):
                        continue
                    name = _checked(f"{folder}{entry.name}", root)
                    if entry.is_symlink():
                        raise ModelError(
                            f"`{name[:80]}` is a link, which may lead anywhere",
                            place=str(root),
                            remedy="copy the folder with the targets of its links: cp -rL FOLDER COPY",
                        )
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{name}/")
                    else:
                        yield name
        except OSError as error:
            raise _unreadable(error, str(root / folder)) from None


def _checked(name: str, root: Path) -> str:
    """The name as `sha256sum` prints it. Raises ModelError if the name is not valid text, or if `sha256sum` would escape it."""
    if not name.isprintable() or "\\" in name:
        raise ModelError(
            f"a file has the name `{visible(name)[:80]}`, which is not plain text", place=str(root), remedy=_FOLDER
        )
    return name


def _unreadable(error: OSError, place: str) -> ModelError:
    return ModelError(f"the model's folder cannot be read: {error.strerror or error}", place=place, remedy=_FOLDER)
