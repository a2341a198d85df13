"""Replaces the names that a file declares for numbers, constraints and other files, before anything is bound.

`include`, `let`, `param`, `define` and the numbers of a `for each` are replaced on the syntax tree, so every later stage sees
the tree of the file without them. A copied node keeps the place of its text and the place of its use (`Span.used`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

from treesens.compiler.base.diagnostics import Diagnostics, Source, Span, did_you_mean
from treesens.errors import UsageError
from treesens.grammar.constructs.construct import Applied
from treesens.grammar.constructs.decided import DecidedAlike
from treesens.grammar.constructs.registry import functions
from treesens.grammar.parsing.build_terms import listed, unknown_number
from treesens.grammar.printing.print_terms import decimal
from treesens.grammar.tree import ast

MOST_QUESTIONS: Final = 100_000
"""Maximum number of questions that the numbers of one query's `for each` make."""
_MOST_COPIES: Final = 100_000
_DEEPEST: Final = 200
_LONGEST: Final = 400
_NUMBER: Final = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")

Parse: TypeAlias = Callable[[Path, Span, Diagnostics], "ast.File | None"]
"""Parses an included file (`parser.parse_included`)."""
Local: TypeAlias = "ast.Name | ast.Number"
"""The meaning of a parameter: a number, or the name of a point, a feature, a class or a category."""
N = TypeVar("N", bound=ast.Node)
T = TypeVar("T")

_VALUES: Final = {
    *((ast.Comparison, "left"), (ast.Comparison, "right"), (ast.ClassIs, "label"), (ast.ValueSet, "values")),
    *((ast.Prob, "label"), (ast.Margin, "label"), (ast.Flip, "source"), (ast.Flip, "target"), (ast.Monotone, "label")),
}
"""The fields in which a name is a number, a class or a category."""


class _Mistake(Exception):
    """Raised after a message in the diagnostics."""


def expand(
    file: ast.File,
    path: Path | None,
    parse: Parse,
    diagnostics: Diagnostics,
    parameters: Mapping[str, object] | None = None,
) -> ast.File:
    """The tree without names for numbers, constraints and files; the same object if it has none. `path` is the file's own path.

    Mistakes go to `diagnostics`. Raises UsageError for `parameters` that the file does not declare, or that are not numbers.
    """
    declarations = included(file, path, parse, diagnostics)
    names = _Expander(diagnostics, given={name: _given(name, value) for name, value in (parameters or {}).items()})
    plain = names.collect(declarations)
    names.check_parameters()
    names.read.clear()
    shared = [names.attempt(lambda d=d: names.node(d)) for d in plain if not isinstance(d, ast.Query)]  # type: ignore[misc]
    read, names.read = names.read, set()
    others = iter(shared)
    found: list[ast.Declaration] = []
    for declaration in plain:
        if isinstance(declaration, ast.Query):
            found += names.attempt(lambda d=declaration: list(names.query(d, read))) or ()  # type: ignore[misc]
        elif (other := next(others)) is not None:
            found.append(other)
    if len(found) == len(file.declarations) and all(a is b for a, b in zip(found, file.declarations, strict=True)):
        return file
    listed = tuple(found)
    return replace(file, declarations=listed, expanded=True, numbers=tuple(names.numbers), choices=tuple(names.choices))


def included(file: ast.File, path: Path | None, parse: Parse, diagnostics: Diagnostics) -> list[ast.Declaration]:
    """The declarations of a file and of all files that it includes, each file once; arguments are as for `expand`."""
    return list(_Files(path, parse, diagnostics).declarations(file))


# --- files ------------------------------------------------------------------------------------------------------------


@dataclass
class _Files:
    """Reads the included files, each once."""

    path: Path | None
    parse: Parse
    diagnostics: Diagnostics
    done: set[str] = field(default_factory=set)

    def declarations(self, file: ast.File, folder: str = "", within: tuple[str, ...] = ()) -> Iterator[ast.Declaration]:
        """The declarations of a file in `folder`, which is relative to the first file, and of all files that it includes."""
        within = within or (() if self.path is None else (os.path.realpath(self.path),))
        for node in file.declarations:
            if isinstance(node, ast.Include):
                yield from self._included(node.path, folder, within)
            else:
                yield _moved(node, folder) if folder else node

    def _included(self, path: ast.Text, folder: str, within: tuple[str, ...]) -> Iterator[ast.Declaration]:
        if self.path is None:
            self.diagnostics.error(
                "S055", "a text without a path cannot include a file", path.span, "write it to a file"
            )
            return
        place = os.path.join(folder, path.value)
        real = os.path.realpath(self.path.parent / place)
        if real in within:
            message = f"`{path.value}` includes itself" if real == within[-1] else f"`{path.value}` includes this file"
            self.diagnostics.error("S055", message, path.span, "remove one of the `include`")
        elif real not in self.done:
            self.done.add(real)
            tree = self.parse(self.path.parent / place, path.span, self.diagnostics)
            if tree is not None:
                yield from self.declarations(tree, os.path.dirname(place), (*within, real))


def _moved(item: T, folder: str) -> T:
    """A node whose paths are relative to the first file."""
    if isinstance(item, tuple):
        return cast("T", tuple(_moved(part, folder) for part in item))
    if isinstance(item, ast.Text):
        return replace(item, value=os.path.join(folder, item.value))
    if not isinstance(item, ast.Node):
        return item
    parts: dict[str, Any] = {name: _moved(getattr(item, name), folder) for name in item.__match_args__}
    return replace(item, **parts)


# --- values -----------------------------------------------------------------------------------------------------------


def _exact(value: object) -> Fraction | None:
    """The number that a text, or the shortest decimal of a number, denotes in the language; None for anything else."""
    try:
        text = (
            value
            if isinstance(value, str)
            else str(value)
            if isinstance(value, int)
            else repr(float(cast("float", value)))
        )
        text = str(value) if isinstance(value, Decimal) else text
        fits = not isinstance(value, bool) and len(text) <= _LONGEST and _NUMBER.fullmatch(text)
        number = value if isinstance(value, Fraction) else Fraction(text if fits else "")
    except (TypeError, ValueError, OverflowError):
        return None
    return number if _is_written(number) else None


def _is_written(number: Fraction) -> bool:
    """True if the number has a decimal form that the language can read."""
    try:
        mantissa, _, exponent = decimal(number).partition("e")
    except ValueError:
        return False
    return len(mantissa) <= _LONGEST and int(exponent or "0") <= _LONGEST


def _given(name: str, value: object) -> ast.Number:
    number = _exact(value)
    if number is None:
        shown = f"the parameter `{name}` is {str(value)[:60]!r}, not a number"
        raise UsageError(shown, remedy=f"write e.g. {name}=0.05")
    text = f"{name} = {decimal(number)}"
    return ast.Number(number, span=Span(Source("<parameters>", text), len(name) + 3, len(text)))


@dataclass
class _Expander:
    """Replaces names. `numbers` and `choices` are those of `ast.File`, and `read` the parameters on which nodes depend."""

    diagnostics: Diagnostics
    given: Mapping[str, ast.Number]
    constants: dict[str, ast.Let] = field(default_factory=dict)
    definitions: dict[str, ast.Define] = field(default_factory=dict)
    values: dict[str, tuple[ast.Number, frozenset[str]]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)  # the constants and definitions that are being replaced
    read: set[str] = field(default_factory=set)
    numbers: list[ast.Name] = field(default_factory=list)
    choices: list[ast.Name] = field(default_factory=list)
    loops: frozenset[str] = frozenset()  # the features' parameters in the loops around the query
    copies: int = 0

    def fail(self, code: str, message: str, span: Span, remedy: str = "") -> _Mistake:
        if not any((d.code, d.message, d.span) == (code, message, span) for d in self.diagnostics):
            self.diagnostics.error(code, message, span, remedy)
        return _Mistake()

    def attempt(self, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except _Mistake:
            return None

    # --- declarations ---

    def collect(self, declarations: Iterable[ast.Declaration]) -> list[ast.Declaration]:
        """Registers constants and definitions, checks each, and returns all other declarations."""
        others: list[ast.Declaration] = []
        for node in declarations:
            if not isinstance(node, ast.Let | ast.Define):
                others.append(node)
            elif node.name.text in self.constants or node.name.text in self.definitions:
                message = f"`{node.name.text}` is declared twice"
                self.fail("E107", message, node.name.span, "rename or remove one of the two")
            elif isinstance(node, ast.Let):
                self.constants[node.name.text] = node
            else:
                self.definitions[node.name.text] = node
        for name in self.constants:
            self.attempt(lambda name=name: self.value(name))  # type: ignore[misc]
        for definition in self.definitions.values():
            self.attempt(lambda one=definition: self._check_definition(one))  # type: ignore[misc]
        return others

    def check_parameters(self) -> None:
        replaceable = [name for name, node in self.constants.items() if node.replaceable]
        for name in self.given:
            if name not in replaceable:
                remedy = did_you_mean(name, replaceable) or f"declare it: `param {name} = 0.05`"
                if name in self.constants:
                    remedy = f"write `param {name}` instead of `let {name}`"
                raise UsageError(f"the file has no parameter `{name}`", remedy=remedy)

    def _check_definition(self, node: ast.Define) -> None:
        """Checks the names in a definition: its points are parameters, and a parameter has one kind."""
        kinds: dict[str, set[str]] = {name.text: set() for name in node.parameters}
        if len(kinds) < len(node.parameters):
            self.fail("E107", "two parameters have the same name", node.name.span, "rename one of the two")
        self._check_free(node.parameters)
        for name, kind in _names_in(node.constraints):
            if name.text in kinds:
                kinds[name.text].add(kind)
            elif kind == "point":
                self._no_parameter(name)
        for name in node.parameters:
            used = sorted(kinds[name.text] - {"argument", "value"})
            if not kinds[name.text]:
                self.fail("E113", f"the parameter `{name.text}` is not used", name.span, "use it, or remove it")
            elif len(used) > 1:
                self.fail("E114", f"`{name.text}` is used as a {' and a '.join(used)}", name.span, "use two parameters")

    def _no_parameter(self, name: ast.Name) -> _Mistake:
        message = f"the point `{name.text}` is not a parameter of the definition"
        return self.fail("E104", message, name.span, "add it to the parameters")

    def _check_free(self, names: Iterable[ast.Name], taken: Iterable[str] = ()) -> None:
        """E114 for a point or parameter with the name of a number."""
        for name in names:
            if name.text in self.constants or name.text in taken:
                what = "another parameter" if name.text in taken else "the number of the same name"
                raise self.fail("E114", f"`{name.text}` hides {what}", name.span, "rename one of the two")

    def query(self, node: ast.Query, read: set[str]) -> Iterator[ast.Query]:
        """The queries that a query makes, one for each combination of the numbers in its loops."""
        self.read = set(read)
        kept: list[ast.Each] = []
        counted: dict[str, list[ast.Number]] = {}
        names = [name for sweep in node.sweeps for name in sweep.parameters]
        self._check_free(names)
        for sweep in node.sweeps:
            numbers, (name, *_) = self._sweep(sweep), sweep.parameters
            if numbers is None:
                kept.append(sweep)
                continue
            self._check_free([name], [other.text for other in names if other is not name])
            counted[name.text] = numbers
            if name.text not in {used.text for used, _ in _names_in((node.body,))}:
                self.fail("E113", f"the parameter `{name.text}` is not used", name.span, "use it, or remove the loop")
        if isinstance(node.body, ast.Find | ast.Count):
            self._check_free([point.name for point in node.body.points], counted)
        if (total := prod(map(len, counted.values()))) > MOST_QUESTIONS:
            raise self.fail("E220", f"{total:,} questions are too many", node.name.span, f"at most {MOST_QUESTIONS:,}")
        self.loops = frozenset(name.text for sweep in kept for name in sweep.parameters)
        before = set(self.read)
        for picked in product(*counted.values()):
            self.read = set(before)
            body = self.node(node.body, dict(zip(counted, picked, strict=True)))
            made = replace(node, parameters=self._parameters()) if self.read else node
            if counted or body is not node.body:
                labels = f"[{', '.join(decimal(number.value) for number in picked)}]" if picked else ""
                name = replace(node.name, text=f"{node.name.text}{labels}")
                made = replace(made, name=name, body=body, sweeps=tuple(kept), expanded=True)
            yield made

    def _parameters(self) -> tuple[tuple[str, ast.Number], ...]:
        return tuple((name, self.values[name][0]) for name in self.constants if name in self.read)

    # --- loops over numbers ---

    def _sweep(self, sweep: ast.Each) -> list[ast.Number] | None:
        """The numbers of a loop; None if its choices are features."""
        choices = sweep.choices
        if isinstance(choices, str):
            return None
        if isinstance(choices, ast.Range):
            found = self._range(choices)
        else:
            named = [_number_of(choice) for choice in choices]
            known = [one is not None and (not isinstance(one, ast.Name) or one.text in self.constants) for one in named]
            if not any(known):
                return None
            if not all(known):
                other = choices[known.index(False)].span
                raise self.fail("E121", "a loop is over numbers or over features", other, "write two loops")
            self.choices += [one for one in named if isinstance(one, ast.Name)]
            found = [self._number(one, {}) for one in named if one is not None]
        if len(sweep.parameters) > 1:
            raise self.fail("E221", "a number has one parameter", sweep.parameters[1].span, "write two loops")
        return list({number.value: number for number in found}.values())

    def _range(self, node: ast.Range) -> list[ast.Number]:
        low, high, step = self.node(node.interval.low), self.node(node.interval.high), self.node(node.step)
        if isinstance(low, ast.Infinity) or isinstance(high, ast.Infinity):
            raise self.fail("E301", "a loop needs two ends", node.interval.span, "write numbers instead of `inf`")
        if step.value <= 0:
            raise self.fail("E301", "the step of a loop must be above 0", node.step.span, "write a positive number")
        count = (high.value - low.value) // step.value + 1
        if count > MOST_QUESTIONS:
            raise self.fail("E220", f"{count:,} questions are too many", node.span, f"at most {MOST_QUESTIONS:,}")
        values = [low.value + step.value * i for i in range(max(0, count))]
        values = values[1:] if node.interval.low_open else values
        values = [v for v in values if v < high.value] if node.interval.high_open else values
        if not values:
            raise self.fail("E301", "the loop is empty", node.interval.span, "swap the ends")
        return [ast.Number(value, span=node.span) for value in values]

    # --- numbers ---

    def value(self, name: str) -> ast.Number:
        """The number of a constant, at the place of its declaration."""
        if name not in self.values:
            node = self.constants[name]
            if name in self.open:
                raise self.fail("E122", f"`{name}` is defined by itself", node.name.span, "give it a number")
            before, self.read = self.read, set()
            self.open.append(name)
            try:
                number = self.given[name] if name in self.given else self._evaluated(node.value, {})
                if node.replaceable:
                    self.read.add(name)
                self.values[name] = number, frozenset(self.read)
            finally:
                self.open.pop()
                self.read = before
        number, read = self.values[name]
        self.read |= read
        return number

    def _evaluated(self, node: ast.Expression, local: Mapping[str, Local]) -> ast.Number:
        """The number that an expression of numbers denotes."""
        number = self._computed(node, local)
        if not _is_written(number):
            remedy = "write a number; a quotient such as `x / 3` is possible where the name is used"
            raise self.fail("S056", f"`{node.span.text}` has no decimal form", node.span, remedy)
        return ast.Number(number, span=node.span)

    def _computed(self, node: ast.Expression, local: Mapping[str, Local]) -> Fraction:
        match node:
            case ast.Number(value):
                return value
            case ast.Constant():
                return self._number(node, local).value
            case ast.Negate(operand):
                return -self._computed(operand, local)
            case ast.Sum(terms):
                return sum((self._computed(term, local) for term in terms), Fraction(0))
            case ast.Product(factors):
                return prod((self._computed(factor, local) for factor in factors), start=Fraction(1))
            case ast.Quotient(above, below) if (divisor := self._computed(below, local)) != 0:
                return self._computed(above, local) / divisor
        raise self.fail("S056", f"`{node.span.text}` is not a number", node.span, "write numbers and names of numbers")

    def _number(self, node: ast.Node, local: Mapping[str, Local]) -> ast.Number:
        """The number that a `Constant`, the name of a number or a number denotes."""
        if isinstance(node, ast.Number):
            return node
        one = node if isinstance(node, ast.Constant) else ast.Constant(cast("ast.Name", node))
        name, factor = one.name, one.factor
        found = local.get(name.text)
        if found is None and name.text in self.constants:
            found = self.value(name.text)
        if isinstance(found, ast.Name) and found.text in self.constants:
            found = self.value(found.text)
        if not isinstance(found, ast.Number):
            known = [*self.constants, *local]
            shown = name if found is None else found
            raise self.fail("E121", f"no number is called `{shown.text}`", shown.span, unknown_number(shown, known))
        return ast.Number(found.value * factor, span=_used(found.span, name.span))

    # --- nodes ---

    def node(self, node: N, local: Mapping[str, Local] | None = None, used: Span | None = None, depth: int = 0) -> N:
        """A node with all names replaced; the same object if nothing changes. `used` is the place of the nodes' definition."""
        local = local or {}
        if depth > _DEEPEST:
            raise self.fail("S007", "the definitions are nested too deeply", _used(node.span, used), "use fewer")
        ends = (
            [getattr(end, "name", None) for end in (node.low, node.high)] if isinstance(node, ast.Interval) else [None]
        )
        if all(isinstance(end, ast.Name) and end.text not in {*self.constants, *local} for end in ends):
            names = cast("list[ast.Name]", ends)
            raise self.fail("E121", f"no number is called `{names[0].text}`", node.span, listed(names))
        if isinstance(node, ast.Constant):
            number = self._number(node if used is None else replace(node, name=_placed(node.name, used)), local)
            return cast("N", self._whole(number) if node.whole else number)
        if isinstance(node, Applied):
            return cast("N", self._applied(node, local, used, depth))
        if isinstance(node, ast.Decision):
            self._check_free([node.point.name])
        changes: dict[str, Any] = {}
        for part in node.__match_args__:
            old = getattr(node, part)
            items = old if isinstance(old, tuple) else (old,)
            new: list[object] = []
            for item in items:
                if isinstance(item, ast.Name):
                    new.append(self._name(item, (type(node), part), local, used))
                else:
                    new.append(self.node(item, local, used, depth + 1) if isinstance(item, ast.Node) else item)
            if any(a is not b for a, b in zip(items, new, strict=True)):
                changes[part] = tuple(new) if isinstance(old, tuple) else new[0]
        if not changes and used is None:
            return node
        return replace(node, **changes, span=_used(node.span, used))

    def _whole(self, number: ast.Number) -> ast.Whole:
        if number.value.denominator != 1 or number.value < 0:
            message = f"`{decimal(number.value)}` is not a whole number"
            raise self.fail("S008", message, number.span, "a row, a width and a number of answers are whole numbers")
        return ast.Whole(int(number.value), span=number.span)

    def _name(
        self, name: ast.Name, place: tuple[type[ast.Node], str], local: Mapping[str, Local], used: Span | None
    ) -> ast.Name | ast.Number:
        """A name in a field of a node: a number where a number is possible, or the meaning of a parameter."""
        found, placed, kind = local.get(name.text), _placed(name, used), _kind(*place)
        meant = found if isinstance(found, ast.Name) else placed
        if kind == "value" and not _is_quoted(meant):
            if not isinstance(found, ast.Number) and meant.text not in self.constants:
                return meant
            self.numbers.append(meant)
            return self._number(placed, local)
        if isinstance(found, ast.Number) and kind in ("point", "feature"):
            message = f"`{name.text}` is a number here, not a {kind}"
            raise self.fail("E114", message, placed.span, "rename the number")
        if meant.span.used is not None and kind == "point":  # the text of a definition names it
            raise self._no_parameter(meant)
        if meant.span.used is not None and kind == "feature" and meant.text in self.loops:
            message = f"the loop's parameter `{meant.text}` is not known in a definition"
            raise self.fail("E114", message, meant.span, "make it a parameter of the definition")
        return meant

    def _applied(self, node: Applied, local: Mapping[str, Local], used: Span | None, depth: int) -> ast.Formula:
        """The constraints of a definition, for the arguments of a call."""
        name, place = node.name.text, _used(node.span, used)
        found = self.definitions.get(name)
        if found is None:
            remedy = did_you_mean(name, [*self.definitions, *functions()])
            raise self.fail("S040", f"unknown function `{name}`", _used(node.name.span, used), remedy)
        if name in self.open:
            raise self.fail("E122", f"`{name}` is defined by itself", found.name.span, "remove the recursion")
        if len(node.arguments) != len(found.parameters):
            listed = ", ".join(one.text for one in found.parameters)
            message = f"`{name}` takes {len(found.parameters)} arguments, not {len(node.arguments)}"
            raise self.fail("S041", message, place, f"write `{name}({listed})`")
        self.copies += 1
        if self.copies > _MOST_COPIES:
            raise self.fail("S007", "the definitions make too many constraints", place, "use fewer")
        given: dict[str, Local] = {}
        for parameter, argument in zip(found.parameters, node.arguments, strict=True):
            if isinstance(argument, ast.Name):
                given[parameter.text] = local.get(argument.text) or _placed(argument, used)
            else:
                number = self._evaluated(argument, local)
                given[parameter.text] = replace(number, span=_used(number.span, used))
        self.open.append(name)
        try:
            parts = [self.node(one, given, place, depth + 1) for one in found.constraints]
        finally:
            self.open.pop()
        whole = found.constraints[0].span.to(found.constraints[-1].span)
        return parts[0] if len(parts) == 1 else ast.And(tuple(parts), span=_used(whole, place))


# --- names ------------------------------------------------------------------------------------------------------------


def _is_quoted(name: ast.Name) -> bool:
    """True for a name in double quotes, which is always the name of a class or a category."""
    return name.span.text[:1] == '"'


def _used(span: Span, used: Span | None) -> Span:
    """The span with the place of its use; its own use, inside a definition, comes first."""
    if used is None:
        return span
    return replace(span, used=used if span.used is None else _used(span.used, used))


def _placed(name: ast.Name, used: Span | None) -> ast.Name:
    return name if used is None else replace(name, span=_used(name.span, used))


def _number_of(choice: ast.Features | ast.Number) -> ast.Name | ast.Number | None:
    """A choice of a loop that may be a number."""
    if isinstance(choice, ast.Features):
        return choice.names[0] if len(choice.names) == 1 else None
    return choice


def _kind(node: type[ast.Node], part: str) -> str:
    """The kind of a name in a field."""
    if part in ("point", "points", "first", "second") or (node, part) == (ast.Distance, "target"):
        return "point"
    if issubclass(node, ast.PointsEqual | DecidedAlike) and part in ("left", "right"):
        return "point"
    if (node, part) in ((ast.FeatureOf, "feature"), (ast.Features, "names")):
        return "feature"
    if (node, part) in _VALUES:
        return "value"
    return "argument" if node is Applied else "number" if node is ast.Constant else "name"


def _names_in(items: Iterable[object]) -> Iterator[tuple[ast.Name, str]]:
    """All names in nodes, with their kinds."""
    for node in items:
        for part in node.__match_args__ if isinstance(node, ast.Node) else ():
            value = getattr(node, part)
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, ast.Name):
                    yield item, _kind(type(cast("ast.Node", node)), part)
                else:
                    yield from _names_in((item,))
