"""Builds questions and files as objects: `find`, `count` and `sensitive`, with the live models and frames named in them.

Questions passed as objects are answered by `treesens.check_text`, like texts. An object can also refer to a feature whose name
cannot be written in a text (because it contains a backquote); such an object cannot be printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, Unpack

from treesens.errors import UsageError
from treesens.extensions.builder.arguments import (
    Numeric,
    label_of,
    name_of,
    names_of,
    number_of,
    optional,
    whole_of,
    word_of,
    wrong,
)
from treesens.extensions.builder.declarations import Declaration, Live, by_name, live_or_name
from treesens.extensions.builder.points import Point, point_of
from treesens.extensions.builder.terms import Constraint, Quantity, formula_of, quantity_of
from treesens.grammar.parsing.parser import parse as parse_text
from treesens.grammar.printing.printer import placed, shown_text, to_text
from treesens.grammar.tree import ast
from treesens.grammar.tree.words import NEARNESS

if TYPE_CHECKING:
    from treesens.python.answer import Answer, Answers
    from treesens.solve.options import CallOptions

Nearness: TypeAlias = Literal["likelihood", "cavities", "both", "distance"]
Choice: TypeAlias = "str | Sequence[str]"
UNNAMED: Final = "question"
MODEL, DATA = "model", "data"
"""The names of live models and frames in the text."""


@dataclass(frozen=True, eq=False, repr=False)
class Question:
    """One question: an immutable object that prints as `.sens` text; every method returns a new question.

    `live` maps names in the text to the models and tables that were passed as objects.
    """

    node: ast.Query
    live: Live = field(default_factory=Live)

    def __str__(self) -> str:
        return to_text(self.node)

    def __repr__(self) -> str:
        return f"<{shown_text(self.node)}>"

    @property
    def name(self) -> str:
        return self.node.name.text

    def named(self, name: str) -> Question:
        """The same question with another name."""
        return replace(self, node=ast.Query(name_of(name, "name"), self.node.body, self.node.sweeps))

    def such_that(self, *constraints: Constraint) -> Question:
        """The question with additional constraints."""
        body = self._body(ast.Find, ast.Count, clause="constraints")
        more = tuple(formula_of(item, f"constraint {i + 1}") for i, item in enumerate(constraints))
        return self._with(replace_fields(body, constraints=(*body.constraints, *more)))

    def maximize(self, quantity: Quantity) -> Question:
        return self._aimed("maximize", quantity)

    def minimize(self, quantity: Quantity) -> Question:
        return self._aimed("minimize", quantity)

    def top(self, number: int, *, diverse: bool = False) -> Question:
        """Requests the best answers, each in a region disjoint from earlier answers' regions."""
        body = self._body(ast.Find, ast.Sensitive, clause="`top`")
        return self._with(replace_fields(body, top=ast.Top(whole_of(number, "number"), bool(diverse))))

    def expect(self, verdict: Literal["none", "some"]) -> Question:
        """Makes the question an assertion."""
        verdicts: tuple[Literal["none", "some"], ...] = ("none", "some")
        if isinstance(self.node.body, ast.Monotone):
            raise UsageError(
                f"`expect {self.node.body.direction}` is an assertion already", remedy="leave `expect` out"
            )
        return self._with(replace_fields(self.node.body, expect=ast.Expect(word_of(verdict, verdicts, "verdict"))))

    def share_of(self, measure: str) -> Question:
        """Requests the share under a measure, which the file has to declare with `ts.query.measure`."""
        body = self._body(ast.Find, ast.Sensitive, clause="share")
        return self._with(replace_fields(body, share=name_of(measure, "measure")))

    def expect_share(self, operator: Literal["<", "<=", ">", ">="], bound: Numeric) -> Question:
        """Sets the assertion to a bound on the share; 0.01 means 1 %."""
        body = self._body(ast.Find, ast.Sensitive, clause="share")
        if body.share is None:
            raise UsageError("the question has no share", remedy="write `.share_of(MEASURE)` first")
        operators: tuple[Literal["<", "<=", ">", ">="], ...] = ("<", "<=", ">", ">=")
        wanted = ast.ExpectShare(word_of(operator, operators, "operator"), number_of(bound, "bound"))
        return self._with(replace_fields(body, expect=wanted))

    def for_each(self, parameter: str | Sequence[str], choices: ast.Many | Sequence[Choice]) -> Question:
        """Repeats the question for every choice; later sweeps are nested inside earlier ones."""
        over: tuple[ast.Features, ...] | ast.Many
        if isinstance(choices, str):
            words: tuple[ast.Many, ...] = ("features", "pairs", "protected")
            over = word_of(choices, words, "choices")
        else:
            over = tuple(ast.Features(names_of(choice, f"choices[{i}]")) for i, choice in enumerate(choices))
            if not over:
                raise UsageError("`choices` is empty", remedy="pass at least one feature")
        sweep = ast.Each(names_of(parameter, "parameter"), over)
        return replace(self, node=ast.Query(self.node.name, self.node.body, (*self.node.sweeps, sweep)))

    def answer(
        self,
        models: Any = None,
        data: Any = None,
        *,
        declare: Sequence[Declaration] = (),
        **options: Unpack[CallOptions],
    ) -> Answer:
        """The answer, for live models and frames (see `File.answers`). A sweep has several answers: use `File.answers`."""
        found = file(*declare, self).answers(models, data, **options)
        if len(found) != 1:
            raise UsageError(
                f"`{self.name}` is a sweep of {len(found)} questions", remedy="write `ts.query.file(..).answers(..)`"
            )
        return next(iter(found.values()))

    def with_sources(self, models: Any = None, data: Any = None) -> tuple[ast.File, dict[str, Any], dict[str, Any]]:
        """`File.with_sources` for a file that contains only this question."""
        return file(self).with_sources(models, data)

    def _aimed(self, sense: Literal["maximize", "minimize"], quantity: Quantity) -> Question:
        body = self._body(ast.Find, clause=f"`{sense}`")
        return self._with(replace_fields(body, objective=ast.Objective(sense, quantity_of(quantity, "quantity"))))

    def _body(self, *kinds: type[ast.Find] | type[ast.Count] | type[ast.Sensitive], clause: str) -> Any:
        if not isinstance(self.node.body, kinds):
            word = type(self.node.body).__name__.lower()
            raise UsageError(f"`{word}` takes no {clause}", remedy="write a `find`")
        return self.node.body

    def _with(self, body: ast.Body) -> Question:
        return replace(self, node=ast.Query(self.node.name, body, self.node.sweeps))


def replace_fields(node: Any, **changes: Any) -> Any:
    """The node with some fields replaced."""
    fields = {name: getattr(node, name) for name in node.__match_args__}
    return type(node)(**(fields | changes))


@dataclass(frozen=True, eq=False)
class Start:
    """A `find` or `count` that has no constraints yet."""

    body: ast.Find | ast.Count
    live: Live

    def such_that(self, *constraints: Constraint) -> Question:
        """The question with these constraints, each on a line of its own."""
        if not constraints:
            raise UsageError("the question has no constraints", remedy="add a constraint, e.g. `a.prob() >= 0.6`")
        return self._question().such_that(*constraints)

    def maximize(self, quantity: Quantity) -> Question:
        """For `find`: the unconstrained question that maximises a quantity."""
        return self._question().maximize(quantity)

    def minimize(self, quantity: Quantity) -> Question:
        """For `find`: the unconstrained question that minimises a quantity."""
        return self._question().minimize(quantity)

    def _question(self) -> Question:
        return Question(ast.Query(ast.Name(UNNAMED), self.body), self.live)


def find(*points: Point, model: Any = None) -> Start:
    """`find P, Q [in MODEL] ..`: `model` is a name, or a model for points without a model."""
    name, live = live_or_name(model, MODEL, "model")
    return Start(ast.Find(_points(points, name), ()), Live(models=live))


def count(data: Any, *points: Point, model: Any = None) -> Start:
    """`count rows of DATA as P[, Q] ..`: the number of rows that the first point can equal."""
    table, frames = live_or_name(data, DATA, "data")
    name, live = live_or_name(model, MODEL, "model")
    if table is None:
        raise wrong("data", "a name or a frame", data)
    return Start(ast.Count(table, _points(points, name), ()), Live(live, frames))


def explain(data: Any, row: int, *, model: Any = None, without: Choice = (), smallest: bool = False) -> Question:
    """`explain row N of DATA ..`: features, none of them in `without`, whose values alone decide the class of the row."""
    table, frames = live_or_name(data, DATA, "data")
    name, live = live_or_name(model, MODEL, "model")
    if table is None:
        raise wrong("data", "a name or a frame", data)
    barred = ast.Features(names_of(without, "without")) if without else None
    body = ast.Explain(ast.Row(whole_of(row, "row"), table), name, barred, bool(smallest))
    return Question(ast.Query(ast.Name(UNNAMED), body), Live(live, frames))


def _points(points: tuple[Point, ...], model: ast.Name | None) -> tuple[ast.Point, ...]:
    nodes = tuple(point_of(point, f"point {i + 1}") for i, point in enumerate(points))
    if not 1 <= len(nodes) <= 2:
        raise UsageError(f"a question is about one or two points, not {len(nodes)}", remedy="pass one or two points")
    nodes = tuple(ast.Point(node.name, node.model or model) for node in nodes)
    if nodes[0].model is None and nodes[-1].model is not None:
        remedy = "pass a model for both points, or `find(.., model=..)`"
        raise UsageError(f"point 1, `{nodes[0].name.text}`, has no model, and point 2 has one", remedy=remedy)
    return nodes


def sensitive(
    model: Any,
    features: Choice,
    *,
    gap: Numeric | None = None,
    margin: Numeric | None = None,
    flip: tuple[str | Numeric, str | Numeric] | None = None,
    factor: Numeric | None = None,
    near: Any = None,
    using: Nearness | None = None,
) -> Question:
    """`sensitive MODEL to F ..`: `model` and `near` are names, or a model and a frame; `flip` is (from, to)."""
    name, live = live_or_name(model, MODEL, "model")
    table, frames = live_or_name(near, DATA, "near")
    kinds: tuple[Nearness, ...] = ("likelihood", "cavities", "both", "distance")
    assert kinds == NEARNESS
    if using is not None and table is None:
        raise UsageError("`using` requires `near`", remedy="pass `near`")
    if flip is not None and (isinstance(flip, str) or len(flip) != 2):
        raise wrong("flip", "a pair of classes (from, to)", flip)
    body = ast.Sensitive(
        name,
        ast.Features(names_of(features, "features")),
        optional(number_of, gap, "gap"),
        optional(number_of, margin, "margin"),
        None if flip is None else ast.Flip(label_of(flip[0], "flip[0]"), label_of(flip[1], "flip[1]")),
        optional(number_of, factor, "factor"),
        None if table is None else ast.Near(table, word_of(using or "both", kinds, "using")),
    )
    return Question(ast.Query(ast.Name(UNNAMED), body), Live(live, frames))


def increasing(model: Any, feature: str, *, label: str | Numeric | None = None) -> Question:
    """`expect increasing(MODEL, F)`: `model` is a name or a model; `label` is the class if the model has several scores."""
    return _monotone("increasing", model, feature, label)


def decreasing(model: Any, feature: str, *, label: str | Numeric | None = None) -> Question:
    """`expect decreasing(MODEL, F)`: `model` is a name or a model; `label` is the class if the model has several scores."""
    return _monotone("decreasing", model, feature, label)


def _monotone(
    direction: Literal["increasing", "decreasing"], model: Any, feature: str, label: str | Numeric | None
) -> Question:
    name, live = live_or_name(model, MODEL, "model")
    if name is None:
        raise UsageError("`model` is missing", remedy="pass its name, or the model itself")
    over = ast.Features((name_of(feature, "feature"),))
    body = ast.Monotone(direction, name, over, optional(label_of, label, "label"))
    return Question(ast.Query(ast.Name(UNNAMED), body), Live(live, {}))


# --- files ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class File:
    """Declarations and questions, in order; prints as a `.sens` file."""

    node: ast.File
    live: Live = field(default_factory=Live)

    def __str__(self) -> str:
        return to_text(self.node)

    def __repr__(self) -> str:
        return f"<file of {len(self.node.queries)} questions>"

    @property
    def declarations(self) -> tuple[Declaration, ...]:
        """The declarations other than questions."""
        return tuple(Declaration(node) for node in self.node.declarations if not isinstance(node, ast.Query))

    @property
    def questions(self) -> tuple[Question, ...]:
        return tuple(Question(node, self.live) for node in self.node.queries)

    def answers(self, models: Any = None, data: Any = None, **options: Unpack[CallOptions]) -> Answers:
        """The answers to all questions, for live models and frames; options are as for `treesens.check_text`.

        `models` and `data` map the names in the questions to models and frames (or paths); a single model or frame is used for
        the only name in use. If no object is passed for a declared name, the object is read from the declared path.
        """
        from treesens.python.questions import answer_tree

        return answer_tree(*self.with_sources(models, data), **options)

    def with_sources(self, models: Any = None, data: Any = None) -> tuple[ast.File, dict[str, Any], dict[str, Any]]:
        """The file with models and data replaced by names: a syntax tree, and the models and the data by name."""
        given = Live(
            by_name(models, _used(self.node, "model"), "models"), by_name(data, _used(self.node, "data"), "data")
        )
        live = self.live.joined(given)
        sources: tuple[dict[str, Any], dict[str, Any]] = {}, {}
        lines: list[ast.Declaration] = []
        for node in self.node.declarations:
            if isinstance(node, ast.Model):
                sources[0][node.name.text] = live.models.get(node.name.text, Path(node.path.value))
            elif isinstance(node, ast.Data):
                sources[1][node.name.text] = live.data.get(node.name.text, Path(node.path.value))
            lines.append(_by_name(node))
        more: list[ast.Declaration] = []
        for kind, known, things in ((ast.Model, sources[0], live.models), (ast.Data, sources[1], live.data)):
            for name in things.keys() - known.keys():
                more.append(_by_name(kind(name_of(name, "name"), ast.Text(""))))
                known[name] = things[name]
        tree = placed(ast.File((*more, *lines)), "<query>")
        return tree, _keyed(sources[0]), _keyed(sources[1])


def file(*parts: Declaration | Question) -> File:
    """A file with these declarations and questions."""
    nodes: list[ast.Declaration] = []
    live = Live()
    for index, part in enumerate(parts):
        if not isinstance(part, Declaration | Question):
            raise wrong(f"part {index + 1}", "a declaration or a question", part)
        nodes.append(part.node)
        if isinstance(part, Question):
            live = live.joined(part.live)
    return File(ast.File(tuple(nodes)), live)


def parse(text: str) -> File:
    """The objects of a text. Raises `DiagnosticsError`, with all mistakes, if the text is invalid."""
    if not isinstance(text, str):
        raise UsageError(f"{text!r:.60} is not a text", remedy='write e.g. "query q: sensitive m to {sex} gap 0.1"')
    return File(parse_text(text))


def _key(name: str) -> str:
    """The placeholder path of a name, because `check_text` finds objects by the last part of a path."""
    return name.replace("/", "∕").replace("\\", "∖").replace('"', "″")


def _keyed(things: Mapping[str, Any]) -> dict[str, Any]:
    return {_key(name): thing for name, thing in things.items()}


def _by_name(node: ast.Declaration) -> ast.Declaration:
    """The declaration of a model or data with its placeholder path."""
    if isinstance(node, ast.Model | ast.Data):
        changed: ast.Declaration = replace_fields(node, path=ast.Text(_key(node.name.text)))
        return changed
    return node


def _used(file: ast.File, kind: Literal["model", "data"]) -> set[str]:
    """The names of the models or data that a file declares or uses."""
    names: set[str] = set()
    stack: list[object] = [*file.declarations]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            stack += node
        elif isinstance(node, ast.Node):
            declared = isinstance(node, ast.Model if kind == "model" else ast.Data)
            name = node.name if isinstance(node, ast.Model | ast.Data) and declared else getattr(node, kind, None)
            names |= {name.text} if isinstance(name, ast.Name) else set()
            stack += [getattr(node, part) for part in node.__match_args__]
    return names
