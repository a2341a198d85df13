"""From one question to one result: the only package in which verdicts are formed."""
