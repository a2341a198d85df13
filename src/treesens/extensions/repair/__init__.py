"""A model that is less sensitive, in its own library's file, with the proof that it is."""
