"""Decides VNN-LIB properties of ONNX tree ensembles by a verified counterexample or by the proof that none exists.

A property is converted to one question about one point. The inputs are float32 numbers within their bounds, because the graph
reads float32. The graph's outputs are scores, values, or probabilities. A counterexample is accepted if the outputs of
onnxruntime, compared exactly, also satisfy the property.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Ensemble, Task
from treesens.compiler.result import Verdict
from treesens.errors import QueryError
from treesens.extensions.formats.onnx.library import graph_scores, score_output
from treesens.extensions.studies.decisions import check_scores, label_of_class
from treesens.extensions.studies.questions import bind_study
from treesens.extensions.studies.running import one_at_a_time
from treesens.extensions.vnnlib.parsing import (
    Compare,
    Formula,
    Junction,
    Negation,
    Operator,
    Property,
    compared,
    holds,
)
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.solve.options import Options
from treesens.solve.question import answer

Status = Literal["sat", "unsat", "unknown", "timeout"]
_A = ast.Name("a")
_FLIPPED: dict[Operator, Operator] = {"<": ">", "<=": ">=", "=": "=", "!=": "!=", ">=": "<=", ">": "<"}


@dataclass(frozen=True)
class Outcome:
    """`sat` with inputs and outputs that satisfy the property, `unsat` (proved), `timeout`, or `unknown` with the reason."""

    status: Status
    inputs: tuple[float, ...] = ()
    outputs: tuple[float, ...] = ()
    reason: str = ""


def decide_property(
    model: LoadedModel,
    data: bytes,
    asked: Property,
    *,
    time_limit: float = 60.0,
    seed: int = 0,
    stop: threading.Event | None = None,
) -> Outcome:
    """Decides a property of the ONNX model whose file content is `data`. Raises QueryError for outputs that the model lacks."""
    ensemble = model.ensemble
    _check_shapes(ensemble, asked)
    score_output(data)
    found = _Translator(ensemble).formula(asked.formula)
    if found is False:
        return Outcome("unsat", reason="the assertions contradict each other")
    if found is True:
        anything = np.zeros((1, ensemble.n_features))
        margins = ensemble.margins_emulated(anything)
        shown = ensemble.probabilities(margins) if ensemble.classes else margins
        return _confirmed(ensemble, data, asked, anything[0], shown[0].tolist())
    conjuncts = found.items if isinstance(found, ast.And) else (found,)
    query = ast.Query(ast.Name("q"), ast.Find((ast.Point(_A),), conjuncts))
    declared = ast.Model(ast.Name("m"), ast.Text("m"))
    try:
        question = bind_study(model, None, (declared, query), None)[0]
    except DiagnosticsError as error:
        if {item.code for item in error.diagnostics} <= {"E309"}:
            return Outcome("unsat", reason="no input satisfies the assertions about inputs")
        raise
    budget = Budget.of(time_limit, stop)
    predict = [one_at_a_time(model.replay)]
    result = answer(
        question.query, Options(time_limit=time_limit, seed=seed, library_predict=predict, regions=False), budget
    )
    if result.verdict is Verdict.NONE:
        return Outcome("unsat", reason=result.reason)
    if result.witness is None:
        return Outcome("timeout" if budget.over else "unknown", reason=result.reason)
    witness = result.witness
    emulated = witness.probabilities[0] if ensemble.classes else witness.margins[0]
    return _confirmed(ensemble, data, asked, witness.values[0], emulated)


def _confirmed(
    ensemble: Ensemble, data: bytes, asked: Property, values: FloatArray, emulated: Sequence[float]
) -> Outcome:
    """The counterexample if the graph itself confirms it; without onnxruntime, the emulated outputs decide."""
    inputs = tuple(float(x) for x in values)
    scores = graph_scores(data, values)
    if scores is None:
        scores = [1.0 - emulated[0], emulated[0]] if ensemble.classes and len(emulated) == 1 else list(emulated)
    if len(scores) != asked.outputs.size:
        raise QueryError(f"the graph has {len(scores)} outputs, but the property declares {asked.outputs.size}")
    if not holds(asked.formula, [Fraction(x) for x in inputs], [Fraction(y) for y in scores]):
        return Outcome(
            "unknown", reason="a counterexample exists in exact arithmetic, but not for onnxruntime's rounded outputs"
        )
    return Outcome("sat", inputs, tuple(scores))


def _check_shapes(ensemble: Ensemble, asked: Property) -> None:
    check_scores(ensemble, "a property of VNN-LIB")
    outputs = max(ensemble.n_outputs, len(ensemble.classes or ()))
    for what, wanted, tensor in (("inputs", ensemble.n_features, asked.inputs), ("outputs", outputs, asked.outputs)):
        if tensor.size != wanted:
            raise QueryError(f"the model has {wanted} {what}, but the property declares {tensor.size}")
    if asked.inputs.kind.lower() not in {"real", "float32"} or asked.outputs.kind.lower() not in {"real", "float32"}:
        raise QueryError("tensors of tree ensembles are `float32`, or `Real`")


class _Translator:
    """Translates formulas of a property to the language; parts that are already decided become bools."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble

    def formula(self, found: Formula) -> ast.Formula | bool:
        if isinstance(found, Negation):
            inside = self.formula(found.item)
            return not inside if isinstance(inside, bool) else ast.Not(inside)
        if isinstance(found, Compare):
            return self._comparison(found)
        return self._junction(found)

    def _junction(self, found: Junction) -> ast.Formula | bool:
        settles = found.kind == "or"
        items: list[ast.Formula] = []
        for item in map(self.formula, found.items):
            if isinstance(item, bool):
                if item is settles:
                    return settles
                continue
            same = ast.Or if found.kind == "or" else ast.And
            items += item.items if isinstance(item, same) else [item]
        if not items:
            return not settles
        if len(items) == 1:
            return items[0]
        return ast.Or(tuple(items)) if found.kind == "or" else ast.And(tuple(items))

    def _comparison(self, found: Compare) -> ast.Formula | bool:
        sides = {side for side, _ in found.linear.parts}
        if len(sides) == 2:
            raise QueryError("an assertion compares input with output", remedy="compare inputs or outputs with numbers")
        if not sides:
            return compared(found.linear.constant, found.operator)
        if found.operator in ("=", "!=") and ("Y" in sides or len(found.linear.parts) > 1):
            first, second = (Compare(found.linear, o) for o in (("<=", ">=") if found.operator == "=" else ("<", ">")))
            return self._junction(Junction("and" if found.operator == "=" else "or", (first, second)))
        return self._of_inputs(found) if "X" in sides else self._of_outputs(found)

    def _of_inputs(self, found: Compare) -> ast.Formula | bool:
        if len(found.linear.parts) == 1 and (settled := _of_no_float32(found)) is not None:
            return settled
        names = self.ensemble.feature_names
        terms = [(ast.FeatureOf(_A, ast.Name(names[n])), c) for (_, n), c in found.linear.parts.items()]
        return _bounded(terms, found.operator, -found.linear.constant)

    def _of_outputs(self, found: Compare) -> ast.Formula | bool:
        linear, ensemble = found.linear, self.ensemble
        parts = {number: coefficient for (_, number), coefficient in linear.parts.items()}
        if not ensemble.classes or ensemble.task is Task.REGRESSION:
            if not ensemble.link.is_linear:
                raise QueryError("the outputs of this model are not sums of its trees")
            single = ast.ValueOf(_A)
            terms = [
                (single if ensemble.n_outputs == 1 else ast.Margin(_A, ast.Number(Fraction(n))), c)
                for n, c in parts.items()
            ]
            return _bounded(terms, found.operator, -linear.constant)
        if ensemble.n_outputs == 1:
            return self._of_two_classes(parts, found)
        # Probabilities of several classes are ordered like their scores; no other relation between them is linear.
        ordered = ensemble.link.is_share and linear.constant == 0 and len(parts) == 2 and sum(parts.values()) == 0
        if not ensemble.link.is_linear and not ordered:
            raise QueryError(
                "probabilities of several classes can only be compared in pairs", remedy="write (>= Y_1 Y_0)"
            )
        terms = [(ast.Margin(_A, label_of_class(ensemble, n)), c) for n, c in parts.items()]
        return _bounded(terms, found.operator, -linear.constant)

    def _of_two_classes(self, parts: dict[int, Fraction], found: Compare) -> ast.Formula | bool:
        """Translates a comparison for two classes: Y_1 is the probability p of the second class, and Y_0 is 1 - p."""
        if not self.ensemble.link.is_probability:
            raise QueryError(
                "the two outputs of this model are not probabilities", remedy="convert it with post_transform LOGISTIC"
            )
        first, second = parts.get(0, Fraction(0)), parts.get(1, Fraction(0))
        slope, rest = second - first, found.linear.constant + first
        if slope == 0:
            return compared(rest, found.operator)
        bound = -rest / slope
        if not 0 < bound < 1:
            raise QueryError(
                "a probability is compared with a number that is not strictly between 0 and 1",
                remedy="rounded probabilities reach 0 and 1, but exact probabilities do not",
            )
        return _bounded([(ast.Prob(_A, label_of_class(self.ensemble, 1)), slope)], found.operator, -rest)


def _of_no_float32(found: Compare) -> bool | None:
    """The result of a comparison if all finite float32 inputs give the same result, e.g. `=` with a non-float32; or None."""
    ((coefficient,), most) = found.linear.parts.values(), Fraction(NumberType.FLOAT32.max)
    value = -found.linear.constant / coefficient
    operator = found.operator if coefficient > 0 else _FLIPPED[found.operator]
    if abs(value) > most or (operator, value) in ((">", most), ("<", -most)):
        return {"=": False, "!=": True}.get(operator, (operator in ("<", "<=")) == (value > 0))
    if operator in ("=", "!=") and Fraction(float(np.float32(float(value)))) != value:
        return operator == "!="
    return None


def _bounded(terms: Sequence[tuple[ast.Expression, Fraction]], operator: Operator, bound: Fraction) -> ast.Formula:
    """The formula `sum of coefficient * term OP bound`; a single term is compared without its coefficient."""
    if len(terms) == 1:
        (term, factor) = terms[0]
        return ast.Comparison(term, operator if factor > 0 else _FLIPPED[operator], ast.Number(bound / factor))
    parts = tuple(ast.Product((ast.Number(factor), term)) for term, factor in terms)
    return ast.Comparison(ast.Sum(parts), operator, ast.Number(bound))


def result_text(outcome: Outcome, asked: Property) -> str:
    """The status, then the counterexample in the format of VNN-COMP (version 1) or of the standard (version 2)."""
    if asked.version >= 2:
        lines: list[str] = ["timed-out" if outcome.status == "timeout" else outcome.status]
        for tensor, values in ((asked.inputs, outcome.inputs), (asked.outputs, outcome.outputs)):
            if values:
                shape = ",".join(map(str, tensor.shape))
                lines += [f"{tensor.name} {tensor.kind} [{shape}]", *map(repr, values)]
        return "\n".join(lines) + "\n"
    pairs = [f"(X_{i} {x!r})" for i, x in enumerate(outcome.inputs)]
    pairs += [f"(Y_{i} {y!r})" for i, y in enumerate(outcome.outputs)]
    return f"{outcome.status}\n" + (f"({chr(10).join(pairs)})\n" if pairs else "")


def read_content(path: Path, model: LoadedModel) -> bytes:
    """The bytes of a model's file. Raises QueryError if the file has changed since the model was read."""
    import hashlib

    from treesens.compiler.base.files import open_regular

    with open_regular(path) as file:
        data = file.read()
    if hashlib.sha256(data).hexdigest() != model.ensemble.source.sha256:
        raise QueryError(f"`{path}` has changed while it was being read")
    return data
