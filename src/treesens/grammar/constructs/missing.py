"""`missing(P.f)`: the feature has no value."""

from __future__ import annotations

from typing import ClassVar

from treesens.compiler.base.diagnostics import Code
from treesens.grammar.constructs.construct import FeaturePredicate, feature_predicate
from treesens.grammar.tree.node import node

NEVER_MISSING = Code(
    "E210",
    "never missing",
    "the domain of the feature does not allow a missing value",
    "declare the feature `or missing`",
)


@node
class IsMissing(FeaturePredicate):
    """`missing(P.f)`"""

    word: ClassVar[str] = "missing"
    meaning: ClassVar[str] = "is missing"


CONSTRUCT = feature_predicate(IsMissing, NEVER_MISSING)
