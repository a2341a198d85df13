"""The methods that answer a question, one per file; `registry` lists them (docs/solving.md)."""
