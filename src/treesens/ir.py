"""The public functions of the constraint IR (docs/ir.md): modules, and their text."""

from __future__ import annotations

from treesens.compiler.ir.module import Module
from treesens.compiler.ir.text import parse_module, print_module
from treesens.compiler.ir.verifier import verify

__all__ = ["Module", "parse", "print"]


def parse(text: str) -> Module:
    """The module in the text of a `.sir` file. Raises `IRError` with the line, or with the broken rules of the IR."""
    module = parse_module(text)
    verify(module)
    return module


def print(module: Module) -> str:
    """The full text of a module, from which `parse` makes an equal module."""
    return print_module(module, full=True)
