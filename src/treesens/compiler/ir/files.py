"""Modules in files (`.sir`)."""

from __future__ import annotations

from pathlib import Path

from treesens.compiler.base.files import open_regular, read_text
from treesens.compiler.ir.module import Module
from treesens.compiler.ir.text import is_module_text, parse_module
from treesens.compiler.ir.verifier import verify
from treesens.errors import IRError

_FIRST_LINE = 64
"""Bytes that contain the version line."""


def is_module_file(path: Path) -> bool:
    """True if the file is named `.sir`, or starts with the version line of a module; other files contain questions."""
    if path.suffix == ".sir":
        return True
    try:
        if not path.is_file():  # opening a pipe would take its content away
            return False
        with open_regular(path) as file:
            return is_module_text(file.read(_FIRST_LINE).decode("utf-8", "replace"))
    except (OSError, ValueError):  # the reader of questions reports the fault
        return False


def read_module(path: Path) -> Module:
    """The module in a `.sir` file, checked against the rules of the IR. Raises IRError with the file and the line or rule."""
    text = read_text(path, "module", "pass opt --full output", error=IRError)
    try:
        module = parse_module(text)
        verify(module)
    except IRError as error:
        raise IRError(error.message, remedy=error.remedy, place=f"{path}, {error.place}") from error
    return module
