"""An answer that lies in a file while its certificates are made: they are printed with it, and a process can be killed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from treesens.compiler.base.files import write_atomically
from treesens.errors import TreesensError

ANSWER = ".answer.json"


@contextmanager
def kept_answer(document: dict[str, Any], folder: Path, name: str) -> Iterator[None]:
    """Keeps the document as a file of the folder, which is removed at the end unless that is never reached."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, default=str, indent=2) + "\n"
    path = folder / f"{name}.{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}{ANSWER}"
    written = False
    with suppress(TreesensError, OSError):  # what cannot be written here costs no answer: it is printed all the same
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
        written = True
    yield
    if written:
        path.unlink(missing_ok=True)
