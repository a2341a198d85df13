"""Editor support for `.sens` files; `server.py` alone knows the Language Server Protocol."""
