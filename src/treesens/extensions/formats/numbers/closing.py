"""Numbers that reach a model's score by a coefficient, over the domain of a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from treesens.binder.declarations import Declarations
from treesens.binder.domains import FeatureSpec
from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.diagnostics import Span
from treesens.compiler.model.numbers import MOST_VALUES, Steps
from treesens.compiler.query.domain import ValueDomain, whole_range
from treesens.errors import ModelError
from treesens.extensions.formats.numbers.tables import closed_over
from treesens.frontends.base import LoadedModel
from treesens.grammar.constructs.avoid import Avoid, AvoidListed
from treesens.grammar.constructs.decided import Decided, DecidedAlike
from treesens.grammar.constructs.typical import Typical
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import nodes_in
from treesens.visible import declaration

_LEARNT = (ast.Likelihood, ast.NearestRow, ast.Typicality, Avoid, AvoidListed, Decided, DecidedAlike, Typical)
"""Studies that depend on the models' cells, or on more than scores and values."""


def close_over(found: Declarations, model: LoadedModel, specs: Mapping[str, FeatureSpec], span: Span) -> LoadedModel:
    """The model over its numbers' domain; unchanged without open numbers. Unbound after a message if a domain is not finite."""
    names = model.ensemble.open_features
    values = {name: _values_here(found, specs[name]) for name in names}
    wrong = [name for name, known in values.items() if known is None]
    if wrong:
        raise found.fail("E314", _why(specs[wrong[0]], wrong), span, _remedy(specs[wrong[0]], found))
    try:
        return replace(model, ensemble=closed_over(model.ensemble, {n: v for n, v in values.items() if v is not None}))
    except ModelError as error:
        raise found.fail(error.code, error.message, span, error.remedy) from None


def _values_here(found: Declarations, spec: FeatureSpec) -> FloatArray | Steps | None:
    """The values of a number in this question: all of them, chosen ones, or steps; None if it is unbounded."""
    values = values_of(spec)
    if values is not None:
        return values
    if spec.name in found.chosen:
        return found.chosen[spec.name]
    low, high = spec.ends
    if not found.steps or spec.width is None:
        return None
    edges = np.linspace(low, high, found.steps + 1)
    inside = edges[(edges > low) & (edges < high)]
    return Steps(np.concatenate([[low], np.unique(inside), [high]]))


def values_of(spec: FeatureSpec) -> FloatArray | None:
    """All values of a domain, float64[n] ascending; None for more than MOST_VALUES, such as any real interval."""
    domain = spec.domain
    if isinstance(domain, ValueDomain):
        return domain.values if len(domain.values) <= MOST_VALUES else None
    if domain.low == domain.high:
        return np.array([domain.low]) + 0.0
    low, high = whole_range(domain.low, domain.high)
    if not domain.whole or high - low >= MOST_VALUES:
        return None
    return np.arange(low, high + 1, dtype=np.float64) + 0.0


def check_asks_in_steps(found: Declarations, find: ast.Find | ast.Count | ast.Explain, names: Sequence[str]) -> None:
    """Unbound after a message about a question that steps of numbers cannot answer: one with several answers, or about facts
    learnt from cells, as steps are cells.
    """
    said = None
    if not isinstance(find, ast.Find) or find.top is not None or find.share is not None:
        said = "counts, shares, lists and reasons need"
    elif other := next((node for node in nodes_in(find) if isinstance(node, _LEARNT)), None):
        said = f"`{other.span.text}` needs"
    if said is not None:
        message = f"{said} a table of `{names[0]}`, which reaches the score as a number"
        raise found.fail(
            "E314", message, find.span, f"declare whole numbers: {declaration(names[0], 'integer in [LOW, HIGH]')}"
        )


def _why(spec: FeatureSpec, names: list[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in names[:5]) + (" and others" if len(names) > 5 else "")
    reaches = "reaches" if len(names) == 1 else "reach"
    many = f"more than {MOST_VALUES:,} values" if getattr(spec.domain, "whole", True) else "no end of values"
    if spec.width is not None and not getattr(spec.domain, "whole", True):
        many = "all real values between two ends"
    return f"{listed} {reaches} the score as a number, a coefficient times its value, and `{spec.name}` has {many} here"


def _remedy(spec: FeatureSpec, found: Declarations) -> str:
    if found.steps:
        two_ends = declaration(spec.name, "real in [LOW, HIGH]")
        return f"give it two ends, {two_ends}, or `integer` if it is whole"
    whole = declaration(spec.name, "integer in [LOW, HIGH]")
    whole = f"declare whole numbers in a `.sens` file, {whole} (audit and its like read it with --domain)"
    if spec.width is None:
        return f"{whole}, or train with bins of it (KBinsDiscretizer)"
    return f"{whole}, train with bins of it (KBinsDiscretizer), or use `check`, `compare` or `sweep`, which answer in steps"
