"""Elementwise operators before the trees of an ONNX graph: Scaler and Imputer (ai.onnx.ml 1 to 5), and sums, differences,
products and quotients with constants.

onnxruntime computes in float32: a Scaler computes (x - offset) * scale, an Imputer replaces NaN by a constant (scaler.cc,
imputer.cc, element_wise_ops.cc). If factors are positive, these operators are monotone, so a threshold after them is a
threshold on the input: the greatest float32 whose image is at most the threshold, found by bisection in their arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import largest_true
from treesens.errors import ModelError
from treesens.extensions.formats.onnx.known import TABLE
from treesens.extensions.formats.onnx.trees import Attributes
from treesens.frontends.columns import Nodes
from treesens.frontends.documents import check_names

Float32 = NDArray[np.float32]
_FLOAT = 1
_ARITHMETIC: dict[str, Callable[[Float32, Float32], Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
}
READ = ("Scaler", "Imputer", "Identity", "Cast", *_ARITHMETIC)
"""Operators allowed before the trees."""
_REMEDY = "convert the tree model alone"


@dataclass(frozen=True, eq=False)
class Step:
    """An operation with one number per column, float32[columns], or a single number; `Fill` replaces NaN by the number."""

    name: str
    numbers: Float32

    def of(self, columns: NDArray[np.int64]) -> Float32:
        """The constants of the operation for these columns."""
        return self.numbers[columns if len(self.numbers) > 1 else np.zeros_like(columns)]

    def after(self, x: Float32, columns: NDArray[np.int64]) -> Float32:
        """The operation's results for the values `x`, float32[n], of these columns."""
        if self.name == "Fill":
            return np.where(np.isnan(x), self.of(columns), x)
        return np.asarray(_ARITHMETIC[self.name](x, self.of(columns)), np.float32)


def nodes_before(graph: Any, node: Any, given: str, place: str) -> list[Any]:
    """Operators between the input `given` and the trees, in order. Raises ModelError for other operators and for branches."""
    makers = {output: other for other in graph.node for output in other.output}
    constants = {value.name for value in graph.initializer}
    found: list[Any] = []
    wanted = list(node.input)
    while wanted != [given]:
        before = makers.get(wanted[0]) if len(wanted) == 1 else None
        if before is None or before.op_type not in READ or len(before.output) != 1 or len(found) > len(graph.node):
            what = "another input" if before is None else before.op_type
            raise ModelError(
                f"the trees take the output of {what[:40]} instead of the input", place=place, remedy=_REMEDY
            )
        found.insert(0, before)
        wanted = [name for name in before.input if name not in constants]
    return found


def longest(graph: Any, nodes: Sequence[Any]) -> int:
    """The maximum number of constants of an operator. An input without a declared width is taken to have this many columns."""
    lists = [len(attribute.floats) for node in nodes for attribute in node.attribute]
    named = {name for node in nodes for name in node.input}
    dims = [int(dim) for value in graph.initializer if value.name in named for dim in value.dims[-1:]]
    return max([0, *lists, *dims])


def steps_of(graph: Any, nodes: Sequence[Any], width: int, place: str) -> list[Step]:
    """The operations of these operators, over `width` columns. Raises ModelError for unsupported attributes."""
    constants = {value.name: value for value in graph.initializer}
    return [step for node in nodes for step in _steps(node, constants, width, place)]


def _steps(node: Any, constants: Mapping[str, Any], width: int, place: str) -> list[Step]:
    a = Attributes(node, place)
    check_names(TABLE, a.values(), place, node.op_type if node.op_type in TABLE else "arithmetic")
    match node.op_type:
        case "Scaler":
            steps = [
                Step("Sub", _numbers(a, "offset", a.floats("offset"), width, 0.0)),
                Step("Mul", _numbers(a, "scale", a.floats("scale"), width, 1.0)),
            ]
            if len(a.floats("offset")) != len(a.floats("scale")):
                raise a.error("scale", "offset and scale differ in length, which the runtime rejects")
            return steps
        case "Imputer":
            absent = next((x.f for x in node.attribute if x.name == "replaced_value_float"), 0.0)
            if not np.isnan(absent):
                raise a.error("replaced_value_float", f"an Imputer that replaces {absent:g}, not NaN, is not supported")
            name = "imputed_value_floats"
            return [Step("Fill", _numbers(a, name, a.floats(name), width, None))]
        case "Cast":
            if a.integer("to", 0) != _FLOAT:
                raise a.error("to", "a Cast to a type other than float32 is not supported")
            return []
        case "Identity":
            return []
    named = [number for number, name in enumerate(node.input) if name in constants]
    if len(node.input) != 2 or len(named) != 1 or (named == [0] and node.op_type in ("Sub", "Div")):
        raise a.error(
            "inputs", "an operation on two columns, or a constant minus or divided by a column, is not supported"
        )
    return [
        Step(node.op_type, _numbers(a, "inputs", _constant(a, constants[node.input[named[0]]], width), width, None))
    ]


def _constant(a: Attributes, tensor: Any, width: int) -> NDArray[np.float64]:
    """The values of a constant: a single number, or one per column."""
    shape = list(tensor.dims)
    if tensor.data_type != _FLOAT or shape not in ([], [1], [1, 1], [width], [1, width]):
        raise a.error("inputs", f"a constant of shape {str(shape)[:40]}, or not of type float32, is not supported")
    from onnx import numpy_helper

    try:
        return np.asarray(numpy_helper.to_array(tensor), np.float64).ravel()
    except (ValueError, TypeError) as error:
        raise a.error("inputs", f"a constant is damaged: {str(error)[:100]}") from None


def _numbers(a: Attributes, name: str, given: NDArray[np.float64], width: int, default: float | None) -> Float32:
    """A finite number, or a finite number per column."""
    with np.errstate(over="ignore"):
        values = given.astype(np.float32)
    if not len(values) and default is not None:
        return np.full(1, default, np.float32)
    if len(values) not in (1, width) or not np.isfinite(values).all():
        raise a.error(name, f"there are {len(values)} numbers for {width} columns, or a number is not finite")
    return values


def before_steps(nodes: Nodes, steps: Sequence[Step], place: str) -> Nodes:
    """The nodes with splits `x <= threshold` on the input. Raises ModelError if a step reverses a column that has splits."""
    at = np.flatnonzero(nodes.feature >= 0)
    columns, wanted = nodes.feature[at].astype(np.int64), nodes.threshold[at]
    for step in steps:
        bad = np.flatnonzero(step.of(columns) <= 0) if step.name in ("Mul", "Div") else np.zeros(0, np.int64)
        if len(bad):
            raise ModelError(
                f"a split uses feature {int(columns[bad[0]])}, which is multiplied by 0 or less before the trees",
                place=place,
                remedy=_REMEDY,
            )

    def follow(x: NDArray[Any]) -> Float32:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            made = x.astype(np.float32)
            for step in steps:
                made = step.after(made, columns)
        return made

    threshold, default_left = nodes.threshold.copy(), nodes.default_left.copy()
    with np.errstate(over="ignore"):
        threshold[at] = largest_true(lambda x: np.asarray(follow(x) <= wanted), len(at)).astype(np.float32)
    missing = follow(np.full(len(at), np.nan))
    default_left[at] = np.where(np.isnan(missing), default_left[at], missing <= wanted)
    return replace(nodes, threshold=threshold, default_left=default_left)
