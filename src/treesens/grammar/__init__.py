"""The `.sens` language: grammar, syntax tree, parser, formatter."""
