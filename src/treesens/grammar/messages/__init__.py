"""Messages for syntax errors, and the list of all error codes."""
