"""Link functions, which map raw scores to predictions: one file each, with the base class `Link`.

A reader uses the link of its format; a new link is a subclass of `Link` next to its reader. No other code refers to a concrete
link (`tests/house/test_links.py`).
"""

from treesens.links.exp import Exp
from treesens.links.identity import Identity
from treesens.links.link import ClassRule, Link, Raw, ScorePlace
from treesens.links.logistic import Logistic
from treesens.links.softmax import Softmax

__all__ = [
    "ClassRule",
    "Exp",
    "Identity",
    "Link",
    "Logistic",
    "Raw",
    "ScorePlace",
    "Softmax",
]
