"""The native engine: Python around one small C++ extension."""
