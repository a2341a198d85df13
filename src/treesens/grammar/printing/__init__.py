"""From the syntax tree to text, and the colours of editors."""
