"""Repaired models that are less sensitive, in their own library's file format, with the proof of it."""
