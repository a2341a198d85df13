"""Source locations and messages, exact arithmetic, and float neighbours."""
