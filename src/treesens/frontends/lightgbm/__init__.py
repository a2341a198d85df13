"""LightGBM: text and JSON dumps, live boosters."""
