"""From the syntax tree to text."""
