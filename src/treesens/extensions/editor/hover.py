"""Markdown about the name or the word of the language under the cursor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from treesens.extensions.editor import names
from treesens.extensions.editor.context import innermost_bracket, name_of, points_of
from treesens.extensions.editor.reading import Reading, code_tokens
from treesens.grammar.constructs.registry import functions
from treesens.grammar.parsing.layout import declarations, is_word
from treesens.grammar.printing.printer import to_text

if TYPE_CHECKING:
    from lark import Token

MEANINGS: Final = {
    "model": '`model NAME from "FILE"`: a model file, read without its library; the path is relative to this file.',
    "data": '`data NAME from "FILE"`: a table of rows (CSV or Parquet); `label` names a column that is not an input.',
    "feature": (
        "`feature NAME: TYPE`: the possible values: `real in [0, 1]`, `integer in [0, 9]`, `category {A = 0, B = 1}`."
    ),
    "include": '`include "FILE"`: the declarations of another file, whose paths are relative to it.',
    "let": "`let NAME = 0.6`: a name for a number.",
    "param": "`param NAME = 0.05`: a name for a number that `-D NAME=0.1` replaces.",
    "define": "`define NAME(x, ..) = CONSTRAINTS`: a name for constraints, used as `NAME(a)`.",
    "onehot": "`onehot {f, g}`: exactly one of the features is 1, and the others are 0.",
    "domain": "`domain from DATA`: features that are not declared range over the table's values.",
    "measure": (
        "`measure NAME: uniform` (or cells, marginals of D, chow-liu of D, rows of D): the measure of a `share`."
    ),
    "decision": (
        "`decision NAME of P: OUTCOME when CONSTRAINT .. else OUTCOME`: the first outcome whose constraint holds; a "
        "question uses `decision(a) = OUTCOME`."
    ),
    "when": "`OUTCOME when CONSTRAINT`: a case of a decision; earlier cases did not hold.",
    "else": "`else OUTCOME`: the outcome if no case holds.",
    "query": "`query NAME: ..`: one question.",
    "for": (
        "`for each f in features:` repeats a question for every feature (`pairs`: every two features; `{f, g}`: only these)."
    ),
    "each": "`for each f in features:` repeats a question for every feature.",
    "find": (
        "`find a, b such that ..`: are there inputs that satisfy all constraints? Answers: found (verified), "
        "none (proved), unknown."
    ),
    "sensitive": (
        "`sensitive M to F gap G`: are there two inputs that agree on all features but F, one clearly on each "
        "side of the decision? `sensitive` is shorthand for a `find`, which `treesens explain` prints."
    ),
    "count": "`count rows of D as a such that ..`: the number of rows that satisfy the constraints.",
    "explain": "`explain row N of D`: features whose values alone are proved to decide the class of a row.",
    "maximize": "The greatest value of the following term, with a proved bound.",
    "minimize": "The smallest value of the following term, with a proved bound.",
    "share": (
        "`share of M`: the affected part of a measure, as a proved interval and an estimate within it. A share, from 0 to 1,"
        " is a part of the inputs as the measure weighs them, and not of people."
    ),
    "expect": (
        "`expect none` (or `some`, `share < 0.01`): makes the question a test; on a violation, the command exits with 10. "
        "`expect increasing(M, F)` (or `decreasing`) is a question by itself: the score never falls while F rises."
    ),
    "top": "`top N`: the N best answers, each in a separate region.",
    "diverse": "`top N diverse`: each answer is outside the widened regions of the other answers.",
    "real": "Any number in the interval or, without an interval, in the column's range.",
    "integer": "Whole numbers in the interval.",
    "category": "`category {NAME = value, ..}`: values with names, without an order.",
    "and": "Both hold.",
    "or": "At least one of the constraints holds. After a type, `or missing`: the value may be missing.",
    "not": "The constraint does not hold.",
    "implies": "If the first constraint holds, the second holds, too.",
    "in": "`a.f in [lo, hi]`, `a.f in {x, y}`; `find a in M`: the model that is applied to a point.",
    "except": "`a = b except {f, g}`: the points agree on every other feature.",
    "avoid": "`a, b avoid cavities(D, width = W)`: no point is in a box of at most W features without a row of D.",
    "typical": "`a typical of D at 95 %`: the point is in the region that contains this share of new inputs like the rows.",
    "by": "`typical .. by isolation`: the method; `class(a) = C by factor 2` or `by margin 1`: C leads clearly.",
    "inf": "No bound on this side.",
    "none": "The domain contains no such inputs: proved.",
    "some": "There are such inputs: found and verified.",
    "features": "Every feature on which the model splits.",
    "pairs": "Every two features.",
    "protected": "The protected features of the model, named in `treesens.toml` next to it.",
    "smallest": "`explain .. smallest`: no smaller set of features decides the class.",
    "from": '`from "FILE"`; `from A to B`: the classes between which the decision flips.',
    "as": "`count rows of D as a`: the name of the row in the constraints.",
    "to": "`sensitive M to F`: the features that may differ; all other features are equal in both inputs.",
    "label": "The column of a table that is not an input.",
    "rows": "`count rows of D`; `data D from .. rows N`: the first N rows only.",
    "row": "`row N of D`: a row of a table, counted from 0.",
    "of": "Names the table, the measure or the point.",
    "nearest": "`nearest row of D`: the row at the smallest distance; `distance(a, nearest row of D, l2)`.",
    "such": "`such that`: the constraints follow, one per line.",
    "that": "`such that`: the constraints follow, one per line.",
    "stored": "`integer in [0, 90] stored as [0, 1]`: the model stores the feature on another scale.",
    "missing": "`or missing` in a type: the value may be missing; `missing(a.f)`: the value is missing.",
    "gap": (
        "`gap G`: in probability, on both sides of the cut-off: one input has 0.5 + G or more, the other 0.5 "
        "- G or less, so that they are 2 G apart (`gap 0.1`: 0.6 and 0.4). If the model has a cut-off, the cut-off "
        "replaces 0.5. For a regressor: two values that are G or more apart. `margin M` is in raw score."
    ),
    "margin": (
        "`margin M`: in raw score, on both sides of the decision: one input has M or more, the other -M or "
        "less. `margin(a)` is the raw score of a point, whose sign decides between two classes; `margin(a, C)` is the "
        "raw score of one class."
    ),
    "factor": "`by factor K`: a class is K times as probable as each of the other classes.",
    "near": "`near D`: among all answers, an answer that looks like the rows of a table.",
    "using": "`near D using likelihood` (or cavities, both, distance): the measure of likeness to the rows.",
    "at": "`typical of D at 95 %`: the region's share of new inputs.",
    "without": "`explain row N of D without F`: reasons and changes leave these features out.",
}
"""A sentence about each word of the language."""


@dataclass(frozen=True)
class Card:
    """Markdown about the text between two character offsets."""

    markdown: str
    start: int
    end: int


def card(reading: Reading, offset: int) -> Card | None:
    """The card of the name or word under the cursor, if any."""
    code = code_tokens(reading.source.text)
    for part in declarations(code) if code else ():
        for index, token in enumerate(part):
            start, end = token.start_pos or 0, token.end_pos or 0
            if start <= offset < end or (offset == end and token.type in ("NAME", "QUOTED")):
                text = _about(reading, part, index) or _meaning(part, index)
                return Card(text, start, end) if text else None
    return None


def _meaning(part: list[Token], index: int) -> str | None:
    """The meaning of a word that is not a name."""
    after_dot = index > 0 and part[index - 1].type == "DOT"
    is_name = part[index].type in ("NAME", "QUOTED", "STRING") or after_dot
    return None if is_name else MEANINGS.get(part[index].value.strip())


def _about(reading: Reading, part: list[Token], index: int) -> str | None:
    token, name = part[index], name_of(part[index])
    before = part[index - 1].type if index else ""
    decision = reading.found.decisions.get(name)
    if decision is not None and before not in ("DOT", "EXCEPT"):
        return f"```sens\n{to_text(decision)}\n```"
    if name in reading.names and before not in ("DOT", "EXCEPT"):
        return f"```sens\n{to_text(reading.names[name])}\n```"
    if token.type in ("FUNCTION", "PREDICATE"):
        return f"`{functions()[name]}`" if name in functions() else None
    if token.type == "STRING" and before == "FROM":
        declared = name_of(part[1])
        return names.model_card(reading, declared) or names.data_card(reading, declared)
    if token.type not in ("NAME", "QUOTED") and not is_word(token):
        return None
    if before == "DOT":
        model = points_of(part).get(name_of(part[index - 2])) if index > 1 else None
        return names.feature_card(reading, name, model)
    if before in ("FEATURE", "EXCEPT") or (before == "TO" and "FROM" not in [t.type for t in part]):
        return names.feature_card(reading, name)
    opener = innermost_bracket(part[:index])
    if opener is not None and part[opener].type == "LBRACE" and part[opener - 1].type != "CATEGORY":
        return names.feature_card(reading, name)
    if is_word(token) and before not in ("MODEL", "DATA", "SENSITIVE", "NEAR", "OF", "IN", "FROM"):
        return None
    model = names.model_card(reading, name)
    data = names.data_card(reading, name)
    return data or model if before in ("DATA", "OF", "NEAR", "FROM", "LPAR", "COMMA") else model or data
