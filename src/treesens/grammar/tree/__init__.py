"""The syntax tree of the language and its words."""
