"""What an editor shows while a `.sens` file is written; `server.py` alone knows the Language Server Protocol."""
