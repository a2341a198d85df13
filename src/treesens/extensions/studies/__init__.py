"""Studies of one model by many questions: the audit, and the largest certified gap."""
