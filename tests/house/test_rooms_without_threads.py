"""A contract of pyproject.toml keeps threads, processes and sockets out of the language and the compiler."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRACT = "The language and the compiler start no threads and no processes"
PLANTED = {
    "compiler/passes/drop_dead.py": "import threading",
    "compiler/base/budget.py": "def late():\n    from concurrent.futures import ThreadPoolExecutor",
    "binder/file.py": "import multiprocessing.pool",
    "grammar/parsing/parser.py": "from socket import socket",
    "compiler/pipeline.py": "from treesens.runtime import child",
}


def contracts_of(folder: Path) -> str:
    """What import-linter says about a copy of the Python sources."""
    # Without `site`, the hook of an editable installation does not find the sources of the checkout first.
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]; from importlinter.cli import lint_imports as run; run(no_cache=True)"
    )
    command = [sys.executable, "-S", "-c", code, str(folder), sysconfig.get_path("purelib")]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, text=True, timeout=300)
    return done.stdout + done.stderr


def test_the_contract_sees_each_import(tmp_path: Path) -> None:
    pytest.importorskip("importlinter")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(
        ROOT / "src" / "treesens",
        tmp_path / "treesens",
        ignore=lambda _, names: {n for n in names if n == "__pycache__" or n.endswith((".cpp", ".hpp", ".so"))},
    )
    assert "0 broken" in contracts_of(tmp_path)
    for name, line in PLANTED.items():
        with (tmp_path / "treesens" / name).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
    said = contracts_of(tmp_path)
    assert CONTRACT in said
    for name in PLANTED:
        module = ".".join(("treesens", *Path(name).with_suffix("").parts))
        assert f"{module} -> " in said, said
