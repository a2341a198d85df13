"""The folders of candidates and of the result: the files of a subject, next to the other files that it names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from treesens.compiler.base.files import make_folder, write_atomically
from treesens.errors import OverwriteError
from treesens.extensions.reduce.ddmin import Files


@dataclass
class Candidates:
    """Makes a folder for each candidate within `root`, and removes it. `linked` are files that candidates share."""

    root: Path
    name: str
    linked: Mapping[str, Path]
    _numbers: Iterator[int] = field(default_factory=count)

    @contextmanager
    def written(self, files: Files) -> Iterator[Path]:
        """The path of the main file of a candidate."""
        folder = self.root / str(next(self._numbers))
        folder.mkdir()
        try:
            for name, content in files.items():
                (folder / name).write_bytes(content)
            for name, original in self.linked.items():
                if original.exists():
                    (folder / name).symlink_to(original.resolve(), original.is_dir())
            yield folder / self.name
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def unused_folder(file: Path) -> Path:
    """The default folder of a result, next to the working directory's files. Raises OverwriteError for a folder with files."""
    folder = Path(f"{file.stem}.reduced")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OverwriteError("the folder of the result is not empty", place=str(folder), remedy="give --output")
    return folder


def write_result(folder: Path, name: str, files: Files, linked: Mapping[str, Path]) -> list[str]:
    """Writes a subject, whose main file is the last, and returns the names of all files. Raises UsageError if this fails."""
    make_folder(folder)
    for other, original in linked.items():
        if original.is_dir():
            shutil.copytree(original, folder / other, dirs_exist_ok=True)
        elif original.exists():
            write_atomically(folder / other, original.read_bytes())
    for one in sorted(files, key=lambda one: one == name):
        write_atomically(folder / one, files[one])
    return [name, *sorted({*files, *linked} - {name})]
