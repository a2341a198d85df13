"""What is favourable: a class of the model, or what reaches a cut-off; for studies about people who get a decision or not."""

from __future__ import annotations

from fractions import Fraction

from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.model import Ensemble
from treesens.errors import UsageError
from treesens.extensions.studies.decisions import label_of_class
from treesens.frontends.meaning import NOTHING_SAID, Meaning
from treesens.grammar.tree import ast


def favourable_class(ensemble: Ensemble, name: str | None, meaning: Meaning = NOTHING_SAID) -> int:
    """The place of the favourable class: the one with this label, or with this given name (`meaning`); without either, the
    one stated to be favourable. UsageError if nothing states which one is: a guess would explain the decisions of the wrong
    people. UsageError if the model has no class of that name, or decides nothing.
    """
    called = {said: label for label, said in meaning.classes.items()}
    name = meaning.favourable if name is None else called.get(name, name)
    known = [str(c) for c in ensemble.classes]
    if not known:
        raise UsageError("a regressor decides nothing", remedy="ask about a classifier")
    if name is None:
        classes = [f"{label} ({meaning.classes[label]})" if label in meaning.classes else label for label in known[:8]]
        raise UsageError(
            "which class is favourable? Nothing says so",
            remedy=f'add --favourable, one of {", ".join(classes)}, or write favourable = "{known[0]}" into treesens.toml',
        )
    if name not in known:
        raise UsageError(f"the model has no class `{name}`", remedy=did_you_mean(name, [*known, *called]))
    return known.index(name)


def favourable_clause(ensemble: Ensemble, favourable: int, threshold: Fraction | None) -> ast.Formula:
    """The point `a` gets the favourable decision."""
    point, label = ast.Name("a"), label_of_class(ensemble, favourable)
    if threshold is None:
        return ast.ClassIs(point, label)
    return ast.Comparison(ast.Prob(point, label), ">=", ast.Number(threshold))
