"""From text to the syntax tree."""
