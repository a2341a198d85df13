"""Floor 5: the `.sens` language: grammar, syntax tree, parser, formatter."""
