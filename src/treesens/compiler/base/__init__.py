"""Source locations and messages, exact arithmetic, float neighbours."""
