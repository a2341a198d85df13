"""Threads, processes and signals: child processes, Ctrl-C, and the cache that threads share."""
