"""Predictions of JPMML-Evaluator, the reference program for PMML, which needs Java and the package jpmml-evaluator.

A whole file does not output scores before their link, so the nested model that computes them is evaluated as a separate file.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from tests.extensions.formats.java import java_with
from treesens.compiler.model import Ensemble
from treesens.compiler.model.evaluate import Predicted, positions
from treesens.errors import ModelError
from treesens.extensions.formats.pmml.fields import Column
from treesens.extensions.formats.pmml.frontend import _columns
from treesens.extensions.formats.pmml.models import MODELS, Read, Sum, read_model
from treesens.extensions.formats.pmml.xml import Element, parse

_NAMESPACE = "http://www.dmg.org/PMML-4_4"


def library_of(ensemble: Ensemble) -> Evaluator:
    """The library's model of the file from which an ensemble was read."""
    root = parse(Path(ensemble.source.path).read_bytes(), ensemble.source.path)
    (model,) = (child for child in root.children if child.tag in MODELS)
    fields, _ = _columns(root, model)
    shared = root.child("TransformationDictionary")
    if shared is not None:
        fields.derive(shared)
    return Evaluator(root, model, fields.columns, read_model(model, fields), ensemble)


class Evaluator:
    """A file for JPMML-Evaluator; Java starts on first use.

    `within` is the file's model if `model` is nested in it.
    """

    def __init__(
        self,
        root: Element,
        model: Element,
        columns: Sequence[Column],
        read: Read,
        ensemble: Ensemble,
        within: Element | None = None,
    ) -> None:
        self._root, self._model, self._columns, self._read = root, model, columns, read
        self._ensemble, self._within = ensemble, within
        self._asked: dict[Sum | None, Any] = {}
        self._voters = [Evaluator(root, v.model, columns, v.read, ensemble, within or model) for v in read.voters]
        self._ballots: list[Any] = []

    def margins(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Scores before the link [rows, outputs], in the arithmetic of the file; for models that vote the scores of all."""
        if self._voters:
            return np.concatenate([voter.margins(rows).astype(np.float64) for voter in self._voters], axis=1)
        if self._read.ballots:
            return self._votes(rows)
        if self._read.width > 1:
            return self._shares(rows)
        kind = np.float32 if self._read.sums[0].context == "float" else np.float64
        found = np.empty((len(rows), len(self._read.sums)), dtype=kind)
        for output, part in enumerate(self._read.sums):
            answers = self._ask(self._opened(part), rows)
            given = part.handed_on
            found[:, output] = [float(_there(a.get(given))) if given else _number(a) for a in answers]
        return found

    def predicts(self, rows: NDArray[np.float64]) -> Predicted:
        """The results of the whole file: its probabilities, or its value, and its class."""
        answers, ensemble = self._ask(self._whole(), rows), self._ensemble
        if not ensemble.classes:
            return Predicted(np.array([[_number(answer)] for answer in answers]), None)
        labels = np.array([str(_target(answer)) for answer in answers])
        voted = not ensemble.link.is_known or ensemble.link.votes
        shown = None if voted else self._shares(rows)[:, -ensemble.n_outputs :]
        return Predicted(shown, positions(labels, ensemble.classes))

    def _votes(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The votes for every class: each tree is evaluated separately for its predicted class."""
        trees = [tree for tree, _ in self._read.ballots]
        self._ballots = self._ballots or [_open(self._document(t, alone=True, around=t)) for t in trees]
        found, places = np.zeros((len(rows), len(self._read.classes))), np.arange(len(rows))
        for evaluator, (_, value) in zip(self._ballots, self._read.ballots, strict=True):
            said = np.array([str(_target(answer)) for answer in self._ask(evaluator, rows)])
            chosen = positions(said, self._read.classes)
            if (chosen < 0).any():
                raise ModelError(f"JPMML predicted `{said[chosen < 0][0]}`, which is not one of the classes")
            found[places, chosen] += value
        return found

    def _shares(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """The probabilities of all classes, in their order."""
        names = [f"treesens {label}" for label in self._read.classes]
        found = [[_there(answer.get(name)) for name in names] for answer in self._ask(self._whole(), rows)]
        return np.array(found, dtype=np.float64).reshape(len(rows), len(names))

    def _whole(self) -> Any:
        if None not in self._asked:
            self._asked[None] = _open(self._document(self._model, alone=False))
        return self._asked[None]

    def _opened(self, part: Sum) -> Any:
        """The evaluator of one sum."""
        if part.model is self._model and not self._read.classes and self._read.link.is_linear:
            return self._whole()
        if part not in self._asked:
            model = part.model if part.table is None else _of_table(part.model, part.table)
            self._asked[part] = _open(self._document(model, alone=True, around=part.model))
        return self._asked[part]

    def _ask(self, evaluator: Any, rows: NDArray[np.float64]) -> list[dict[str, Any]]:
        answers = []
        for row in rows:
            given = {c.name: _value(c, x) for c, x in zip(self._columns, row.tolist(), strict=True)}
            try:
                answers.append(dict(evaluator.evaluate(given)))
            except Exception as error:  # noqa: BLE001 - Java's exceptions have no common Python class
                raise ModelError(f"JPMML refused to predict: {str(error).splitlines()[0][:300]}") from None
        return answers

    def _document(self, model: Element, *, alone: bool, around: Element | None = None) -> str:
        """The file with one model: the whole, or a nested one that gives a sum, with the derived fields around it."""
        kept = [
            _written(child)
            for child in self._root.children
            if child.tag in ("DataDictionary", "TransformationDictionary")
        ]
        outer = _path(self._within or self._model, around or model)
        local = [child for holder in outer[:-1] for child in holder.each("LocalTransformations")]
        shared = [child for holder in local for child in holder.children]
        voted = not self._read.link.is_known or self._read.link.votes
        outputs = "" if alone or voted else _outputs(self._read.classes)
        body = _written(
            model,
            schema=self._schema(alone or self._within is not None),
            derived=shared,
            outputs_at=None if alone else model if voted else self._last(model),
            outputs=outputs,
        )
        version = self._root.get("version")
        return f'<PMML xmlns="{_NAMESPACE}" version="{version}"><Header/>{"".join(kept)}{body}</PMML>'

    @staticmethod
    def _last(model: Element) -> Element:
        """The model that gives the probabilities: the last one of a chain."""
        while True:
            inside = model.child("Segmentation")
            if inside is None or inside.get("multipleModelMethod") != "modelChain":
                return model
            last = list(inside.each("Segment"))[-1]
            model = next(child for child in last.children if child.tag in MODELS)

    def _schema(self, alone: bool) -> str | None:
        if not alone:
            return None
        whole = (self._within or self._model).need("MiningSchema")
        fields = [f for f in whole.each("MiningField") if f.get("usageType", "active") == "active"]
        return f"<MiningSchema>{''.join(_written(f) for f in fields)}</MiningSchema>"


def _open(document: str) -> Any:
    try:
        import jpmml_evaluator
        from jpmml_evaluator.jpype import JPypeBackend

        java_with(Path(jpmml_evaluator.__file__).parent.rglob("*.jar"))
    except ImportError:
        raise ModelError(
            "replay in JPMML-Evaluator needs Java and the packages jpmml-evaluator (AGPL) and jpype1, which are not installed",
            remedy="pip install jpmml-evaluator jpype1, and install Java; or replay=emulated",
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pmml"
        path.write_text(document, encoding="utf-8")
        try:
            return jpmml_evaluator.make_evaluator(str(path), backend=JPypeBackend())
        except Exception as error:  # noqa: BLE001 - Java's exceptions have no common Python class
            raise ModelError(f"JPMML cannot read the file: {str(error).splitlines()[0][:300]}") from None


def _of_table(model: Element, table: Element) -> Element:
    """A regression whose value is one table of a classifier."""
    plain = {name: value for name, value in table.attributes.items() if name != "targetCategory"}
    one = Element(table.tag, plain, table.line, table.place, table.children)
    kept = [child for child in model.children if child.tag in ("MiningSchema", "LocalTransformations")]
    attributes = {k: v for k, v in model.attributes.items() if k == "x-mathContext"} | {"functionName": "regression"}
    return Element(model.tag, attributes, model.line, model.place, [*kept, one])


def _path(outer: Element, inner: Element) -> list[Element]:
    """The elements from one down to another."""
    if outer is inner:
        return [outer]
    for child in outer.children:
        found = _path(child, inner)
        if found:
            return [outer, *found]
    return []


def _outputs(classes: Sequence[str]) -> str:
    fields = (
        f'<OutputField name={quoteattr(f"treesens {label}")} optype="continuous" dataType="double" '
        f'feature="probability" value={quoteattr(label)}/>'
        for label in classes
    )
    return f"<Output>{''.join(fields)}</Output>" if classes else ""


def _written(
    element: Element,
    *,
    schema: str | None = None,
    derived: Sequence[Element] = (),
    outputs_at: Element | None = None,
    outputs: str = "",
) -> str:
    """An element as text again: a model with another schema and more derived fields, one nested model with our outputs."""
    shown = {name: value for name, value in element.attributes.items() if name != "isFinalResult"}
    attributes = "".join(f" {name}={quoteattr(value)}" for name, value in shown.items())
    replaced = (
        *(("Output",) if element is outputs_at else ()),
        *(("LocalTransformations",) if derived else ()),
        "Extension",
    )
    parts = []
    for child in element.children:
        if child.tag in replaced:
            continue
        if child.tag != "MiningSchema":
            parts.append(_written(child, outputs_at=outputs_at, outputs=outputs))
            continue
        parts.append(_written(child) if schema is None else schema)
        if element is outputs_at:
            parts.append(outputs)
        if derived:
            own = [c for holder in element.each("LocalTransformations") for c in holder.children]
            every = "".join(_written(c) for c in (*derived, *own))
            parts.append(f"<LocalTransformations>{every}</LocalTransformations>")
    if not element.children:
        parts.append(escape(element.text))
    return f"<{element.tag}{attributes}>{''.join(parts)}</{element.tag}>"


def _value(column: Column, x: float) -> Any:
    """A cell in Java's form: None if it is missing, otherwise a text or a number of its type."""
    if math.isnan(x):
        return None
    if column.categories is None:
        return int(x) if column.kind == "integer" and x.is_integer() and abs(x) < 2**31 else x
    code = int(x) if 0 <= x < len(column.categories) else -1
    text = column.categories[code] if code >= 0 else "other" + "".join(column.categories)[:100]
    return {"true": True, "false": False}.get(text, text) if column.kind == "boolean" else text


def _target(answer: dict[str, Any]) -> Any:
    """The predicted value, the first of an answer."""
    return _there(next(iter(answer.values()), None))


def _there(value: Any) -> Any:
    if value is None:
        raise ModelError("JPMML has no prediction for this input", remedy="do not declare features as missing")
    return value


def _number(answer: dict[str, Any]) -> float:
    return float(_target(answer))
