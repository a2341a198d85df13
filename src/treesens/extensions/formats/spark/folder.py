"""Reads a folder written by Spark, or its zip archive: metadata as JSON, tables as Parquet, and folders of parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from treesens.errors import ModelError
from treesens.frontends.archives import Archive, Files, FolderFiles
from treesens.frontends.documents import Field, parse_document

DAMAGED = "save the model again with Spark, and pass its whole folder"
_MOST_OF_METADATA = 1 << 24


@dataclass(frozen=True)
class Folder:
    """The files of a model below `path`, which is empty or ends with a `/`."""

    archive: Files
    path: str = ""

    @property
    def place(self) -> str:
        """The path of the archive or the model's folder, and the path of this folder inside it."""
        return f"{self.archive.place}: {self.path}" if self.path else self.archive.place

    def inside(self, name: str) -> Folder:
        """The subfolder `name` of this folder."""
        return Folder(self.archive, f"{self.path}{name}/")

    def folders(self) -> list[str]:
        """The names of the subfolders of this folder."""
        below = [name[len(self.path) :].split("/") for name in self.archive.names if name.startswith(self.path)]
        return sorted({parts[0] for parts in below if len(parts) > 1})

    def files(self) -> list[str]:
        """The names of the files that Spark reads: names that begin with `_` or `.` are skipped."""
        below = [name[len(self.path) :] for name in self.archive.names if name.startswith(self.path)]
        return sorted(name for name in below if "/" not in name and not name.startswith(("_", ".")))

    def blobs(self) -> list[bytes]:
        """The Parquet files of a table, in the order of their names. Raises ModelError for other files, or if none exist."""
        found = self.files()
        others = [name for name in found if not name.endswith(".parquet")] + self.folders()
        if others or not found:
            what = f"`{others[0][:60]}` is not a Parquet file" if others else "there is no Parquet file"
            raise ModelError(what, place=self.place, remedy=DAMAGED)
        return [self.archive.blob(self.path + name) for name in found]

    def metadata(self) -> Field:
        """The JSON object in the only line of `metadata/part-*`. Raises ModelError if there is not exactly one line."""
        written = self.inside("metadata")
        parts = [name for name in written.files() if name.startswith("part-")]
        lines = [line for name in parts for line in self.archive.text(written.path + name).split("\n") if line.strip()]
        if len(lines) != 1 or len(lines[0]) > _MOST_OF_METADATA:
            raise ModelError(
                f"found {len(lines)} lines of metadata; expected one, of at most {_MOST_OF_METADATA:,} characters",
                place=written.place,
                remedy=DAMAGED,
            )
        place = f"{self.archive.place}: {written.path}{parts[0]}"
        return Field(parse_document(lines[0].encode(), place), place)


def folder_of(files: Mapping[str, bytes], place: str) -> Folder:
    """The folder of a model, from all of its files by name."""
    return Folder(FolderFiles(files, place, DAMAGED))


def open_folder(data: bytes, place: str) -> Folder:
    """The outermost folder with metadata in a zip archive. Raises ModelError if there is not exactly one such folder."""
    archive = Archive(data, place, DAMAGED)
    found = set()
    for name in archive.names:
        parts = name.split("/")
        if "metadata" in parts[:-1] and not parts[-1].startswith(("_", ".")):
            found.add(tuple(parts[: parts.index("metadata")]))
    least = min(map(len, found), default=0)
    roots = [parts for parts in found if len(parts) == least]
    if len(roots) != 1:
        what = "several models" if roots else "no model: there is no folder `metadata`"
        raise ModelError(f"the archive contains {what}", place=place, remedy="pass the folder of one model, or zip it")
    return Folder(archive, "".join(f"{part}/" for part in roots[0]))
