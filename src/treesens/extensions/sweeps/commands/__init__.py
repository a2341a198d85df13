"""The commands `sweep` and `bench`, and `check` in parts."""
