"""Constraints of the language, one file each: grammar rule, node, text, English translation, and the codes of the errors.

Each file defines `CONSTRUCT` at its end and is found by its location; the file of the same name in `binder/constructs/` defines
the semantics. docs/extending.md shows an example.
"""
