"""What is said about text that does not parse, and the list of all error codes."""
