"""How studies speak of the classes of a model: by labels as nodes, and by the score that a two-sided question is about."""

from __future__ import annotations

import re
from fractions import Fraction

from treesens.binder.terms import predicts_probabilities
from treesens.compiler.model.ensemble import Ensemble
from treesens.compiler.model.kinds import Link
from treesens.errors import UsageError
from treesens.grammar.tree import ast

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")


def label_of_class(ensemble: Ensemble, index: int) -> ast.Label:
    """The label of a class as the language writes it."""
    label = str(ensemble.classes[index])
    return ast.Number(Fraction(label)) if _NUMBER.fullmatch(label) else ast.Name(label)


def second_class(ensemble: Ensemble, refusal: str, remedy: str) -> ast.Label | None:
    """Whose score a two-sided question is about: None where the model has one; the second of two classes where the outputs
    are their probabilities (forests that average votes). UsageError for other models.
    """
    if predicts_probabilities(ensemble) and len(ensemble.classes) == 2:
        return label_of_class(ensemble, 1)
    if ensemble.n_outputs > 1 or ensemble.link is Link.SOFTMAX:
        raise UsageError(refusal, remedy=remedy)
    return None
