"""Editor support for `.sens` files; only `server.py` depends on the Language Server Protocol."""
