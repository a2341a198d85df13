"""From one question to one result: the only room in which verdicts are formed."""
