"""Reports answers of `check` to CI tools, and runs `.sens` files as pytest tests."""
