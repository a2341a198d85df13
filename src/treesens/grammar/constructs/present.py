"""`present(P.f)`: the feature has a value."""

from __future__ import annotations

from typing import ClassVar

from treesens.grammar.constructs.construct import FeaturePredicate, feature_predicate
from treesens.grammar.tree.node import node


@node
class IsPresent(FeaturePredicate):
    """`present(P.f)`"""

    word: ClassVar[str] = "present"
    meaning: ClassVar[str] = "has a value"


CONSTRUCT = feature_predicate(IsPresent)
