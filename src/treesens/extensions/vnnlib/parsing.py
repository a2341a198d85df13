"""Reads VNN-LIB properties, versions 1.0 and 2.0: linear constraints on the inputs X and outputs Y of one ONNX model.

Version 1 is the part of SMT-LIB that VNN-COMP uses (`declare-const X_0 Real`, `assert`); version 2 is the standard of
github.com/VNNLIB/VNNLIB-Standard, restricted to one network with one input and one output tensor. A file is read in one pass
over tokens; sizes, depths and exponents are limited, because files are untrusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Final, Literal, TypeAlias

from treesens.compiler.base.diagnostics import Source, Span
from treesens.errors import QueryError
from treesens.visible import visible

LARGEST: Final = 50_000_000
"""Maximum number of characters in a property."""
_DEEPEST: Final = 64
_LONGEST_NUMBER: Final = 400
_MOST_VARIABLES: Final = 1_000_000
_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|;[^\n]*)|(?P<version><[0-9]+\.[0-9]+>)|(?P<number>[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"""
    r"""|(?P<text>"[^"\n]*")|(?P<symbol><=|>=|==|!=|=>|[<>=+*/-]|[A-Za-z_][\w.-]*)|(?P<mark>[()\[\],])"""
)

Side = Literal["X", "Y"]
Operator = Literal["<", "<=", "=", "!=", ">=", ">"]
_OPERATORS: Final[dict[str, Operator]] = {
    "<": "<", "<=": "<=", "=": "=", "==": "=", "!=": "!=", ">=": ">=", ">": ">",
}  # fmt: skip


@dataclass(frozen=True)
class Linear:
    """The linear form constant + sum of coefficient * variable; a variable is a numbered input or output."""

    parts: dict[tuple[Side, int], Fraction]
    constant: Fraction = Fraction(0)


@dataclass(frozen=True)
class Compare:
    """`linear OP 0`"""

    linear: Linear
    operator: Operator


@dataclass(frozen=True)
class Junction:
    """The conjunction or the disjunction of some formulas."""

    kind: Literal["and", "or"]
    items: tuple[Formula, ...]


@dataclass(frozen=True)
class Negation:
    """`(not A)`"""

    item: Formula


Formula: TypeAlias = Compare | Junction | Negation


@dataclass(frozen=True)
class Tensor:
    """A declared tensor: its name, its element type as written, and its shape."""

    name: str
    kind: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True)
class Property:
    """A property: the conjunction of its assertions. Counterexamples satisfy the property; if none exist, it is `unsat`."""

    version: int
    inputs: Tensor
    outputs: Tensor
    formula: Junction


@dataclass(frozen=True)
class _Atom:
    kind: str
    text: str
    start: int
    index: tuple[int, ...] | None = None


@dataclass(frozen=True)
class _List:
    items: list[_Item]
    start: int

    @property
    def head(self) -> str:
        first = self.items[0] if self.items else None
        return first.text if isinstance(first, _Atom) else ""


_Item: TypeAlias = _Atom | _List


def parse_property(text: str, name: str = "<property>") -> Property:
    """Reads a property. Raises QueryError, with the location, unless the text is a property with one input and one output."""
    return _Reader(Source(name, text)).property()


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tensors: dict[str, tuple[Side, Tensor]] = {}
        self.counts: dict[Side, set[int]] = {"X": set(), "Y": set()}

    def fail(self, message: str, start: int, remedy: str = "see docs/vnnlib.md") -> QueryError:
        return QueryError(message, place=Span(self.source, start, start + 1).place, remedy=remedy)

    def property(self) -> Property:
        if len(self.source.text) > LARGEST:
            raise self.fail(f"the property exceeds {LARGEST // 1_000_000} MB", 0)
        version, found = 1, list[Formula]()
        for item in self._items():
            if isinstance(item, _Atom):
                raise self.fail(f"`{visible(item.text)[:40]}` is outside brackets", item.start)
            match item.head:
                case "vnnlib-version":
                    version = self._version(item)
                case "declare-const" | "declare-fun":
                    self._constant(item)
                case "declare-network":
                    self._network(item)
                case "assert" if len(item.items) == 2:
                    found.append(self._formula(item.items[1]))
                case "set-logic" | "set-info" | "check-sat" | "get-model" | "exit":
                    pass
                case head:
                    raise self.fail(f"`{visible(head)[:40]}` is neither a declaration nor an assertion", item.start)
        if not found:
            raise self.fail("the property asserts nothing", 0)
        inputs, outputs = (self._tensor(side) for side in ("X", "Y"))
        return Property(version, inputs, outputs, Junction("and", tuple(found)))

    # --- text ---------------------------------------------------------------------------------------------------------

    def _tokens(self) -> Iterator[_Atom]:
        at, text = 0, self.source.text
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.fail(f"`{visible(text[at])}` has no meaning here", at)
            if match.lastgroup != "skip":
                yield _Atom(match.lastgroup or "", match.group(), at)
            at = match.end()

    def _items(self) -> Iterator[_Item]:
        """Yields the expressions of the file. Raises QueryError if an expression is not closed or is nested too deeply."""
        open_lists: list[_List] = []
        pending: list[int] | None = None
        for token in self._tokens():
            if pending is not None:
                pending = self._indexed(open_lists, pending, token)
                continue
            match token.text:
                case "[" if token.kind == "mark":
                    pending = []
                case "(" if token.kind == "mark":
                    if len(open_lists) == _DEEPEST:
                        raise self.fail("this is nested too deeply", token.start)
                    open_lists.append(_List([], token.start))
                case ")" if token.kind == "mark":
                    if not open_lists:
                        raise self.fail("a closing bracket without an opening bracket", token.start)
                    done = open_lists.pop()
                    if open_lists:
                        open_lists[-1].items.append(done)
                    else:
                        yield done
                case _ if token.kind == "mark":
                    raise self.fail(f"`{token.text}` has no meaning here", token.start)
                case _ if open_lists:
                    open_lists[-1].items.append(token)
                case _:
                    yield token
        if open_lists or pending is not None:
            raise self.fail("a bracket is not closed", open_lists[-1].start if open_lists else len(self.source.text))

    def _indexed(self, open_lists: list[_List], pending: list[int], token: _Atom) -> list[int] | None:
        """Attaches the numbers in square brackets to the word before them."""
        if token.text == "]":
            last = open_lists[-1].items[-1] if open_lists and open_lists[-1].items else None
            if not isinstance(last, _Atom) or last.kind != "symbol" or last.index is not None:
                raise self.fail("an index must follow a name", token.start)
            open_lists[-1].items[-1] = _Atom(last.kind, last.text, last.start, tuple(pending))
            return None
        if token.text == ",":
            return pending
        if token.kind != "number" or not token.text.isdecimal() or len(token.text) > 9 or len(pending) == 16:
            raise self.fail("an index is a list of whole numbers", token.start)
        return [*pending, int(token.text)]

    # --- declarations -------------------------------------------------------------------------------------------------

    def _version(self, item: _List) -> int:
        text = item.items[1].text if len(item.items) == 2 and isinstance(item.items[1], _Atom) else ""
        if text not in {"<1.0>", "<2.0>"}:
            raise self.fail("versions are <1.0> and <2.0>", item.start)
        return int(text[1])

    def _constant(self, item: _List) -> None:
        """`(declare-const X_0 Real)`"""
        name = item.items[1] if len(item.items) >= 3 else None
        found = re.fullmatch(r"([XY])_([0-9]{1,7})", name.text) if isinstance(name, _Atom) else None
        if found is None or int(found[2]) >= _MOST_VARIABLES:
            raise self.fail("variables are X_0, X_1, .. and Y_0, Y_1, ..", item.start)
        self.counts["X" if found[1] == "X" else "Y"].add(int(found[2]))

    def _network(self, item: _List) -> None:
        """`(declare-network f (declare-input X float32 [1,5]) (declare-output Y float32 [1,2]))`"""
        for part in item.items[2:]:
            head = part.head if isinstance(part, _List) else ""
            if head not in {"declare-input", "declare-output"} or not isinstance(part, _List):
                raise self.fail("a network may contain only an input and an output here", part.start)
            words = [word for word in part.items[1:3] if isinstance(word, _Atom)]
            if len(words) != 2 or words[1].index is None:
                raise self.fail("a tensor has a name, a type and a shape", part.start)
            side: Side = "X" if head == "declare-input" else "Y"
            tensor = Tensor(words[0].text, words[1].text, words[1].index)
            if tensor.size > _MOST_VARIABLES or tensor.name in self.tensors:
                raise self.fail(f"the tensor `{visible(tensor.name)[:40]}` is too large, or declared twice", part.start)
            if any(known == side for known, _ in self.tensors.values()):
                raise self.fail("a property has one input and one output", part.start)
            self.tensors[tensor.name] = (side, tensor)

    def _tensor(self, side: Side) -> Tensor:
        declared = [tensor for known, tensor in self.tensors.values() if known == side]
        if declared:
            return declared[0]
        numbers = self.counts[side]
        if not numbers or numbers != set(range(len(numbers))):
            what = "inputs X_0, X_1, .." if side == "X" else "outputs Y_0, Y_1, .."
            raise self.fail(f"the {what} are not all declared", 0)
        return Tensor(side, "Real", (1, len(numbers)))

    # --- assertions ---------------------------------------------------------------------------------------------------

    def _formula(self, item: _Item) -> Formula:
        if isinstance(item, _Atom):
            raise self.fail(f"`{visible(item.text)[:40]}` is not a formula", item.start)
        head, rest = item.head, item.items[1:]
        if head in {"and", "or"} and rest:
            return Junction("and" if head == "and" else "or", tuple(self._formula(part) for part in rest))
        if head == "not" and len(rest) == 1:
            return Negation(self._formula(rest[0]))
        if head in _OPERATORS and len(rest) == 2:
            left, right = (self._linear(part) for part in rest)
            return Compare(_sum([left, _times(right, Fraction(-1))]), _OPERATORS[head])
        raise self.fail(f"`{visible(head)[:40]}` is not a comparison of two sums, nor `and`, `or` or `not`", item.start)

    def _linear(self, item: _Item) -> Linear:
        if isinstance(item, _Atom):
            return Linear({}, self._number(item)) if item.kind == "number" else self._variable(item)
        parts = [self._linear(part) for part in item.items[1:]]
        match item.head:
            case "+" if parts:
                return _sum(parts)
            case "-" if len(parts) == 1:
                return _times(parts[0], Fraction(-1))
            case "-" if parts:
                return _sum([parts[0], *(_times(part, Fraction(-1)) for part in parts[1:])])
            case "*" if parts and sum(bool(part.parts) for part in parts) <= 1:
                factor = prod((part.constant for part in parts if not part.parts), start=Fraction(1))
                return _times(next((part for part in parts if part.parts), Linear({}, Fraction(1))), factor)
            case "*" if parts:
                raise self.fail("two variables are multiplied, which is not linear", item.start)
        raise self.fail(f"`{visible(item.head)[:40]}` is neither a sum nor a product", item.start)

    def _number(self, atom: _Atom) -> Fraction:
        digits, _, exponent = atom.text.lower().partition("e")
        if len(digits) > _LONGEST_NUMBER or abs(int(exponent[:6] or "0")) > _LONGEST_NUMBER or len(exponent) > 6:
            raise self.fail("the number is too long", atom.start)
        return Fraction(atom.text)

    def _variable(self, atom: _Atom) -> Linear:
        found = re.fullmatch(r"([XY])_([0-9]{1,7})", atom.text) if atom.index is None else None
        if found is not None and int(found[2]) in self.counts["X" if found[1] == "X" else "Y"]:
            return Linear({("X" if found[1] == "X" else "Y", int(found[2])): Fraction(1)})
        if atom.kind == "symbol" and atom.text in self.tensors:
            side, tensor = self.tensors[atom.text]
            index = atom.index or ()
            if len(index) != len(tensor.shape) or any(i >= n for i, n in zip(index, tensor.shape, strict=True)):
                raise self.fail(f"`{visible(atom.text)[:40]}` has the shape {list(tensor.shape)}", atom.start)
            number = 0
            for i, n in zip(index, tensor.shape, strict=True):
                number = number * n + i
            return Linear({(side, number): Fraction(1)})
        raise self.fail(f"`{visible(atom.text)[:40]}` is not declared", atom.start)


def _sum(items: Sequence[Linear]) -> Linear:
    parts: dict[tuple[Side, int], Fraction] = {}
    for item in items:
        for variable, coefficient in item.parts.items():
            parts[variable] = parts.get(variable, Fraction(0)) + coefficient
    return Linear({v: c for v, c in parts.items() if c}, sum((item.constant for item in items), Fraction(0)))


def _times(item: Linear, factor: Fraction) -> Linear:
    parts = {variable: coefficient * factor for variable, coefficient in item.parts.items()}
    return Linear(parts if factor else {}, item.constant * factor)


def holds(formula: Formula, inputs: Sequence[Fraction], outputs: Sequence[Fraction]) -> bool:
    """True if the given exact numbers satisfy a formula."""
    if isinstance(formula, Negation):
        return not holds(formula.item, inputs, outputs)
    if isinstance(formula, Junction):
        return (all if formula.kind == "and" else any)(holds(item, inputs, outputs) for item in formula.items)
    total = formula.linear.constant
    for (side, number), coefficient in formula.linear.parts.items():
        total += coefficient * (inputs if side == "X" else outputs)[number]
    return compared(total, formula.operator)


def compared(number: Fraction, operator: Operator) -> bool:
    """True if `number OP 0`."""
    match operator:
        case "<":
            return number < 0
        case "<=":
            return number <= 0
        case "=":
            return number == 0
        case "!=":
            return number != 0
        case ">=":
            return number >= 0
        case ">":
            return number > 0
