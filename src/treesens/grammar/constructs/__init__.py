"""Constraints of the language, one file each: grammar rule, node, text, English, and the codes of its errors.

A file ends with `CONSTRUCT` and is found by its location; its semantics are in the file of the same name in
`binder/constructs/`. docs/extending.md shows an example.
"""
