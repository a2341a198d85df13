"""Floor 0: places and messages, exact arithmetic, float neighbours."""
