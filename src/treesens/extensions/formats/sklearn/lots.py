"""fairlearn's ThresholdOptimizer: it draws each decision at random between two cut-offs per group.

The optimizer (Hardt, Price and Srebro, *Equality of opportunity in supervised learning*, 2016) reads the groups apart from the
rows. Its refusal states the cut-offs as a decision of the language over the model inside: `yes` where the second class is sure,
`drawn` where it has a chance, and `no` elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from treesens.errors import ModelError
from treesens.grammar.printing.print_terms import name_text
from treesens.grammar.tree import ast

_SCORES = {"predict_proba": "prob(x)", "decision_function": "margin(x)"}
_SURE = 1e-9
"""The largest difference from 0 or 1 that is a rounding error of a chance."""
GROUP = "GROUP"
"""The name in the decision that users replace by their column of groups."""


def refuse_lots(obj: Any, place: str) -> None:
    """Raises ModelError for a fitted ThresholdOptimizer, with its cut-offs as a decision; returns None for other objects."""
    made = getattr(obj, "interpolated_thresholder_", None)
    if type(obj).__name__ != "ThresholdOptimizer" or made is None:
        return
    rules = made.interpolation_dict
    if any(rule[name].operator != ">" for rule in rules.values() for name in ("operation0", "operation1")):
        remedy = "pass its `estimator_`; or train it with flip=False, so that its cut-offs can be stated as a decision"
    else:
        score = _SCORES.get(getattr(obj, "_predict_method", ""), "prob(x)")
        cases = [case for group, rule in rules.items() for case in _cases(group, rule, score)]
        cases.sort(key=lambda case: not case.startswith("yes"))
        decision = " ".join(["decision drawn_by_group of x:", *cases, "else no"])
        remedy = f"pass its `estimator_`, and ask about this decision ({GROUP} is the column of groups): {decision}"
    raise ModelError(
        "a ThresholdOptimizer is not supported: it draws lots between cut-offs, and reads the groups apart from the rows",
        place=place,
        remedy=remedy,
    )


def _cases(group: Any, rule: Mapping[str, Any], score: str) -> Iterator[str]:
    """The cases of a group in which the second class has a chance, from the highest scores down, since the first one that holds
    counts. The chance rises with the score; cut-offs may be infinite.
    """
    cuts = [(float(rule[f"operation{k}"].threshold), float(rule[f"p{k}"])) for k in (0, 1)]
    ignored, constant = float(rule.get("p_ignore", 0)), float(rule.get("prediction_constant", 0))
    whole = isinstance(group, int | float | np.number) and not isinstance(group, bool)
    member = f"x.{GROUP} = {group:g}" if whole else f"x.{GROUP} = {name_text(ast.Name(str(group)))}"
    for least in sorted({-np.inf, *(cut for cut, _ in cuts if cut < np.inf)}, reverse=True):
        chance = ignored * constant + (1 - ignored) * sum(share for cut, share in cuts if cut <= least)
        if chance > _SURE:
            bound = "" if least == -np.inf else f" and {score} > {least!r}"
            yield f"{'yes' if chance >= 1 - _SURE else 'drawn'} when {member}{bound}"
