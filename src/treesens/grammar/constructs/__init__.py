"""Constraints of the language, one file each: grammar rule, node, text, English, and the codes of its errors.

Each file defines `CONSTRUCT` at its end and is found by its location; the semantics are in the file of the same name in
`binder/constructs/`. docs/extending.md shows an example.
"""
