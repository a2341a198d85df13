"""Studies that ask many questions about one model: the audit, and the largest certified gap."""
