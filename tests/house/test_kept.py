"""What is made of models and questions is kept by one module; what keeps results by itself is named here, and says why."""

from __future__ import annotations

import re
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "treesens"

BY_KEY = {
    "runtime/kept.py": "the one module; results of one answer, which are gone with it, are there too",
    "extensions/editor/reading.py": "files that are open in an editor, by their time stamp",
    "extensions/sweeps/worker.py": "open documents of a worker, loaded by one thread at a time",
    "extensions/sweeps/clusters.py": "documents that a worker of Ray has unpacked",
    "extensions/certify/statement.py": "contents of files that a sweep has sent",
}
"""Modules that keep things under a key until others need the room."""
PURE = {
    "backends/native/boxes.py": "runs of a mask",
    "compiler/base/dyadic.py": "bounds of logarithms and powers of numbers",
}
"""Functions of plain values, with a limit."""
_BY_KEY = r"OrderedDict\[|lru_cache|ContextVar\[_Known|^_\w+: dict\[[^=]*\] = \{\}"


def test_things_are_kept_by_one_module() -> None:
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if re.search(_BY_KEY, path.read_text(), re.MULTILINE)
    }
    assert found == BY_KEY.keys() | PURE.keys()
