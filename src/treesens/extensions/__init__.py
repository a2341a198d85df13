"""What comes with the compiler and is not part of its core; each extension registers in `treesens/builtin.py`."""
