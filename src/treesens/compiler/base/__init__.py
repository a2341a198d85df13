"""Places and messages, exact arithmetic, float neighbours."""
