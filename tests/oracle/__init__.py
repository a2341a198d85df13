"""An oracle from outside: models trained and evaluated by their own libraries, and the reference read a second time.

Nothing here imports how treesens answers (`test_imports.py` holds that). Models are trained by the real libraries
(`models*.py`) over small domains (`spaces.py`); questions are drawn over the whole language (`questions.py`), written as text
(`language.py`) and interpreted from docs/language.md by arrays over the complete domain (`meaning.py`, `brute.py`);
`judge.py` compares. `python -m tests.oracle --help` runs it.
"""
