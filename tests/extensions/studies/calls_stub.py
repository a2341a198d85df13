"""The type stub of the studies, made from their declarations: python -m tests.extensions.studies.calls_stub --write."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from treesens.extensions.studies.python.study import stub

STUB = Path(__file__).parents[3] / "src" / "treesens" / "extensions" / "studies" / "python" / "calls.pyi"


def formatted() -> str:
    """The stub as the formatter writes it."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(STUB), "-"]
    return subprocess.run(command, input=stub(), capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", required=True, help="writes the stub")
    parser.parse_args()
    STUB.write_text(formatted(), "utf-8")
