"""One test file per fault that was found from outside: each failed on the state it was found in.

Expected values come from the language reference and from the library that made the model, never from our own evaluator.
"""
