"""One file per command. Results go to standard output, progress and messages to standard error."""
