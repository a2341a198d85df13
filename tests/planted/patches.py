"""Patches of planted errors.

A patch is a unified diff of one file, which `git apply` takes too. Two lines come before it:

    Error: parts of a domain may leave a hole
    Found by: tests/extensions/certify/test_manifests.py::test_rows_of_other_sets_are_rejected

A finder is the node of a test, `oracle` with its options, `engine_tests` with the name of a C++ unit test, or `run_modules`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent
CHECKER = "verify/src/treesens_verify/"
PACKAGE = "src/treesens/"


class StalePatch(ValueError):
    """The lines of a patch are missing from its file, or are there more than once."""


@dataclass(frozen=True)
class Patch:
    """A planted error: in `file`, each text of `changes` becomes another one."""

    path: Path
    error: str
    finder: str
    file: str
    changes: tuple[tuple[str, str], ...]

    @property
    def in_engine(self) -> bool:
        """True if the engine has to be compiled for this error."""
        return self.file.startswith(f"{PACKAGE}engine/") and self.file.endswith("pp")

    def applied(self) -> str:
        """The text of the file with the error. The lines may have moved, but each must occur once.

        Raises:
            StalePatch: The file is gone or its lines have changed.
        """
        remedy = (
            f"plant the error again in the sources as they are, and write {self.path.name} anew with `git diff -U1`"
        )
        if not (ROOT / self.file).exists():
            raise StalePatch(f"{self.path.name}: {self.file} is gone; change its path in the patch, or {remedy}")
        text = (ROOT / self.file).read_text()
        for old, new in self.changes:
            places = [m.start() for m in re.finditer(f"^{re.escape(old)}", text, re.MULTILINE)]
            if len(places) != 1:
                raise StalePatch(f"{self.path.name}: {self.file} has the patched lines {len(places)} times; {remedy}")
            text = text[: places[0]] + new + text[places[0] + len(old) :]
        return text

    def record(self, finder: str) -> None:
        """Writes another finder into the patch."""
        self.path.write_text(
            re.sub(r"^Found by: .*", lambda _: f"Found by: {finder}", self.path.read_text(), flags=re.MULTILINE)
        )


def read(path: Path) -> Patch:
    """The patch of a file."""
    head, *hunks = re.split(r"^@@ .*\n", path.read_text(), flags=re.MULTILINE)
    stated = re.fullmatch(r"Error: (.+)\nFound by: (.*)\n--- a/(.+)\n\+\+\+ b/(.+)\n", head)
    if stated is None or stated[3] != stated[4] or not hunks:
        raise StalePatch(f"{path.name}: expected the lines `Error: ..` and `Found by: ..`, and a diff of one file")
    lines = [hunk.splitlines(keepends=True) for hunk in hunks]
    sides = [tuple("".join(x[1:] for x in hunk if x[0] != without) for without in "+-") for hunk in lines]
    return Patch(path, stated[1], stated[2], stated[3], tuple((old, new) for old, new in sides))


def all_patches() -> list[Patch]:
    """All planted errors, by name."""
    return [read(path) for path in sorted(FOLDER.glob("*.patch"))]
