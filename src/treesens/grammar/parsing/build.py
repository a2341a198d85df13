"""Converts parse trees to syntax nodes: declarations and queries."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal, TypeVar, cast

from lark import Token, Tree

from treesens.compiler.base.diagnostics import Remedy, did_you_mean
from treesens.grammar.constructs.registry import functions
from treesens.grammar.parsing.build_formulas import FormulaBuilder
from treesens.grammar.parsing.build_terms import Branch, Child, Malformed, branches
from treesens.grammar.parsing.terminals import keywords
from treesens.grammar.tree import ast
from treesens.grammar.tree.words import MEASURES, NEARNESS

N = TypeVar("N")


def _has_numbers(sweep: ast.Each) -> bool:
    """True if the choices of a sweep may be numbers."""
    return not isinstance(sweep.choices, str)


_CLAUSES = {"data_label": "label", "data_rows": "rows", "flip": "from", "missing": "or missing", "stored": "stored as"}


class Builder(FormulaBuilder):
    """Builds the declarations of one file."""

    def declaration(self, tree: Branch) -> ast.Declaration | None:
        """The node of one declaration, or None after a mistake."""
        self.percentages.clear()
        node = self.attempt(lambda: self._declaration(tree))
        for span in self.percentages if tree.data != "let" else ():
            number = Decimal(span.text.rstrip("% \t")).scaleb(-2) if span.text[0] in "0123456789." else None
            remedy = "a percentage is a probability; write a number"
            text = "" if number is None else f"{number.normalize():f}"
            self.fail(
                "S001", f"`{span.text}` is a percentage", span, Remedy(f"{remedy}: `{text}`", text) if text else remedy
            )
        return node

    def _declaration(self, tree: Branch) -> ast.Declaration:
        parts, span = branches(tree), self.span(tree)
        match tree.data:
            case "model":
                name, path, *form = parts
                return ast.Model(self.name(name), self._text(path), self.name(form[0]) if form else None, span=span)
            case "data":
                return self._data(tree)
            case "feature":
                return self._feature(tree)
            case "onehot":
                return ast.OneHot(self.names(parts), span=span)
            case "domain":
                return ast.DomainFrom(self.name(parts[0]), span=span)
            case "measure":
                return self._measure(tree)
            case "decision":
                return self._decision(tree)
            case "query" | "sweep":
                return self._query(tree)
            case "include":
                return ast.Include(self._text(parts[0]), span=span)
            case "let":
                word, name, value = parts
                return ast.Let(self.name(name), self.quantity(value), word == "param", span=span)
            case "define":
                return self._define(tree)
            case rule:
                raise AssertionError(f"rule {rule} is not a declaration")

    def _text(self, child: Child) -> ast.Text:
        return ast.Text(str(child)[1:-1], span=self.span(child))

    def _clauses(self, children: list[Child]) -> dict[str, Branch]:
        """Clauses by rule; a duplicate is an error."""
        found: dict[str, Branch] = {}
        for child in children:
            assert isinstance(child, Tree)
            if child.data in found:
                said = _CLAUSES.get(child.data, child.data)
                raise self.fail("S050", f"`{said}` is given twice", self.span(child), "remove one of the two")
            found[child.data] = child
        return found

    def _data(self, tree: Branch) -> ast.Data:
        name, path, *options = branches(tree)
        clauses = self._clauses(options)
        label = self.name(branches(clauses["data_label"])[0]) if "data_label" in clauses else None
        rows = self.whole(branches(clauses["data_rows"])[0]) if "data_rows" in clauses else None
        return ast.Data(self.name(name), self._text(path), label, rows, span=self.span(tree))

    def _measure(self, tree: Branch) -> ast.Measure:
        """A measure: its kind, and its table if the measure is learnt from a table."""
        name, body = branches(tree)
        kind, *data = branches(cast(Branch, body))
        word = self.span(kind).text
        if word not in MEASURES:
            raise self.fail("S053", f"`{word}` is not a measure", self.span(kind), did_you_mean(word, MEASURES))
        learnt = word in MEASURES[2:]
        if learnt != bool(data):
            message = f"`{word}` is a measure of {'a table' if learnt else 'no table'}"
            remedy = f"write `{word} of DATA`" if learnt else "leave out `of`"
            raise self.fail("S018" if learnt else "S001", message, self.span(data[0] if data else kind), remedy)
        table = self.name(data[0]) if data else None
        return ast.Measure(self.name(name), cast("ast.MeasureKind", word), table, span=self.span(tree))

    def _decision(self, tree: Branch) -> ast.Decision:
        """A decision: its cases in their order, and the outcome if no case applies."""
        name, points_tree, *cases, otherwise = branches(tree)
        points = self._points(cast(Branch, points_tree))
        if len(points) > 1:
            raise self.fail("S052", f"a decision is about one point, not {len(points)}", self.span(points_tree))
        built = self.every(self._case, [cast(Branch, case) for case in cases])
        return ast.Decision(self.name(name), points[0], built, self.name(otherwise), span=self.span(tree))

    def _case(self, tree: Branch) -> ast.Case:
        outcome, condition = branches(tree)
        return ast.Case(self.name(outcome), self.formula(cast(Branch, condition)), span=self.span(tree))

    def _define(self, tree: Branch) -> ast.Define:
        """A definition; inside it, every parameter may be a number."""
        name, *parameters, body = branches(tree)
        if str(name) in functions():
            raise self.fail("E114", f"`{name}` is a function of the language", self.span(name), "rename the definition")
        if str(name) in keywords():
            raise self.fail("S016", f"`{name}` is a word of the language", self.span(name), "rename the definition")
        names, before, self.points = self.names(parameters), self.numbers, ()
        self.numbers = None if before is None else before | {one.text for one in names}
        try:
            return ast.Define(self.name(name), names, self._constraints(cast(Branch, body)), span=self.span(tree))
        finally:
            self.numbers = before

    def _feature(self, tree: Branch) -> ast.Feature:
        name, kind, *options = branches(tree)
        assert isinstance(kind, Tree)
        clauses = self._clauses(options)
        stored = clauses.get("stored")
        return ast.Feature(
            self.name(name),
            self._numeric(kind) if kind.data == "numeric" else self._category(kind),
            self.interval(cast(Branch, branches(stored)[0])) if stored is not None else None,
            "missing" in clauses,
            span=self.span(tree),
        )

    def _numeric(self, tree: Branch) -> ast.Numeric:
        kind, *domain = branches(tree)
        interval = self.interval(cast(Branch, domain[0])) if domain else None
        return ast.Numeric("real" if kind == "real" else "integer", interval, span=self.span(tree))

    def _category(self, tree: Branch) -> ast.Category:
        items = [cast(Branch, child) for child in branches(tree)]
        return ast.Category(self.every(self._category_item, items), span=self.span(tree))

    def _category_item(self, tree: Branch) -> ast.CategoryItem:
        parts = branches(tree)
        name: ast.Name | None = None
        value: ast.Number | None = None
        for part in parts:
            if isinstance(part, Tree) and part.data in ("number", "constant"):
                value = self.number(part)
            elif not isinstance(part, Token) or part.type != "EQUAL":
                name = self.name(part)
        return ast.CategoryItem(name, value, span=self.span(tree))

    # --- queries ------------------------------------------------------------------------------------------------------

    def _query(self, tree: Branch) -> ast.Query:
        """A query with its sweeps, which may be written before or after `query`."""
        span, sweeps = self.span(tree), list[ast.Each]()
        name: ast.Name | None = None
        inner = tree
        while inner.data in ("sweep", "each", "query"):
            *head, inside = branches(inner)
            if inner.data == "query":
                name = self.name(head[0])
            else:
                sweeps.append(self._each(inner))
            inner = cast(Branch, inside)
        assert name is not None
        before = self.numbers
        if before is not None:
            self.numbers = before | {p.text for sweep in sweeps if _has_numbers(sweep) for p in sweep.parameters}
        try:
            return ast.Query(name, self._body(inner), tuple(sweeps), span=span)
        finally:
            self.numbers = before

    def _each(self, tree: Branch) -> ast.Each:
        parameters, choices, _ = branches(tree)
        assert isinstance(parameters, Tree)
        assert isinstance(choices, Tree)
        over = branches(choices)
        span = self.span(tree).source
        where = self.span(parameters).to(self.span(choices))
        assert where.source is span
        names = self.names(branches(parameters))
        if isinstance(over[0], Token):
            words: tuple[ast.Many, ...] = ("features", "pairs", "protected")
            return ast.Each(names, next(word for word in words if over[0] == word), span=where)
        if isinstance(over[0], Tree) and over[0].data == "interval":
            step = self.number(cast(Branch, over[1]))
            steps = ast.Range(self.interval(over[0]), step, span=self.span(choices))
            return ast.Each(names, cast("ast.Many", steps), span=where)
        return ast.Each(names, self.every(self._choice, [cast(Branch, item) for item in over]), span=where)

    def _choice(self, tree: Branch) -> ast.Features:
        return cast("ast.Features", self.number(tree)) if tree.data == "number" else self.features(tree)

    def _body(self, tree: Branch) -> ast.Body:
        match tree.data:
            case "find":
                return self._find(tree)
            case "count":
                return self._count(tree)
            case "explain":
                return self._explain(tree)
            case "monotone":
                return self._monotone(tree)
            case _:
                return self._sensitive(tree)

    def _points(self, tree: Branch) -> tuple[ast.Point, ...]:
        """The points of a query: `a, b in M` assigns both points to M, and `a in M, b in N` assigns each to its own model."""
        found: list[ast.Point] = []
        for child in branches(tree):
            assert isinstance(child, Tree)
            name, *model = branches(child)
            found.append(ast.Point(self.name(name), self.name(model[0]) if model else None, span=self.span(child)))
        if len(found) > 2:
            raise self.fail("S052", f"a query is about one or two points, not {len(found)}", self.span(tree))
        last = found[-1].model
        if last is not None and all(point.model is None for point in found[:-1]):
            found = [ast.Point(point.name, last, span=point.span) for point in found]
        self.points = tuple(point.name.text for point in found)
        return tuple(found)

    def _constraints(self, tree: Branch) -> tuple[ast.Formula, ...]:
        return self.every(self.formula, [cast(Branch, child) for child in branches(tree)])

    def _find(self, tree: Branch) -> ast.Find:
        points_tree, *tail = branches(tree)
        points = self._points(cast(Branch, points_tree))
        constraints: tuple[ast.Formula, ...] | None = ()
        if tail and isinstance(tail[0], Tree) and tail[0].data == "constraints":
            constraints_tree = tail.pop(0)
            constraints = self.attempt(lambda: self._constraints(cast(Branch, constraints_tree)))
        clauses = self._clauses(tail)
        if constraints == () and "objective" not in clauses:
            remedy = "write `such that` and constraints after the points, or `maximize` or `minimize`"
            raise self.fail("S013", "the query has neither constraints nor an objective", self.span(tree), remedy)
        objective = self._objective(clauses.get("objective"))
        top, share, expect = self._top(clauses.get("top")), self._share(clauses), self._expect(clauses.get("expect"))
        self._check_share(clauses, share, expect)
        if constraints is None:
            raise Malformed
        return ast.Find(points, constraints, objective, top, share, expect, span=self.span(tree))

    def _count(self, tree: Branch) -> ast.Count:
        data, points_tree, constraints_tree, *tail = branches(tree)
        points = self._points(cast(Branch, points_tree))
        constraints = self._constraints(cast(Branch, constraints_tree))
        clauses = self._clauses(tail)
        self._only(clauses, ("expect",), "a count")
        expect = self._expect(clauses.get("expect"))
        if isinstance(expect, ast.ExpectShare):
            raise self._no_share(expect)
        return ast.Count(self.name(data), points, constraints, expect, span=self.span(tree))

    def _explain(self, tree: Branch) -> ast.Explain:
        row, *tail = branches(tree)
        clauses = self._clauses(tail)
        self._only(clauses, ("in_model", "without", "smallest", "expect"), "an explanation")
        model, without, expect = clauses.get("in_model"), clauses.get("without"), self._expect(clauses.get("expect"))
        if isinstance(expect, ast.ExpectShare):
            raise self._no_share(expect)
        return ast.Explain(
            self.row(cast(Branch, row)),
            None if model is None else self.name(branches(model)[0]),
            None if without is None else self.features(cast(Branch, branches(without)[0])),
            "smallest" in clauses,
            expect,
            span=self.span(tree),
        )

    def _only(self, clauses: dict[str, Branch], allowed: tuple[str, ...], what: str) -> None:
        for key, clause in clauses.items():
            if key not in allowed:
                word = self.span(clause).text.split()[0]
                raise self.fail("S001", f"{what} has no `{word}`", self.span(clause), "remove it, or write a `find`")

    def _objective(self, tree: Branch | None) -> ast.Objective | None:
        if tree is None:
            return None
        sense, expression = branches(tree)
        node = self.quantity(expression)
        return ast.Objective("maximize" if sense == "maximize" else "minimize", node, span=self.span(tree))

    def _top(self, tree: Branch | None) -> ast.Top | None:
        if tree is None:
            return None
        number, *diverse = branches(tree)
        return ast.Top(self.whole(number), bool(diverse), span=self.span(tree))

    def _share(self, clauses: dict[str, Branch]) -> ast.Name | None:
        """The measure of `share of MEASURE`; an expected share requires a measure."""
        return self.name(branches(clauses["share"])[0]) if "share" in clauses else None

    def _expect(self, tree: Branch | None) -> ast.Expect | ast.ExpectShare | None:
        if tree is None:
            return None
        (wanted,) = branches(tree)
        if isinstance(wanted, Tree):
            return self._expect_share(wanted)
        return ast.Expect("none" if wanted == "none" else "some", span=self.span(tree))

    def _expect_share(self, tree: Branch) -> ast.ExpectShare:
        operator, bound = branches(tree)
        if str(operator) not in ("<", "<=", ">", ">="):
            remedy = "write `<=`, `<`, `>=` or `>`"
            raise self.fail("S053", "a share is compared with a bound", self.span(operator), remedy)
        number = self.probability(cast(Branch, bound))
        return ast.ExpectShare(cast("Literal['<', '<=', '>', '>=']", str(operator)), number, span=self.span(tree))

    def _check_share(
        self, clauses: dict[str, Branch], share: ast.Name | None, expect: ast.Expect | ast.ExpectShare | None
    ) -> None:
        if share is None and isinstance(expect, ast.ExpectShare):
            raise self._no_share(expect)
        if share is not None and "top" in clauses:
            raise self.fail("E217", "a share covers all answers", self.span(clauses["top"]), "leave `top` out")

    def _no_share(self, expect: ast.ExpectShare) -> Malformed:
        return self.fail("S054", "the query has no share", expect.span, "add `share of MEASURE` to a `find`")

    def _sensitive(self, tree: Branch) -> ast.Sensitive:
        parts = branches(tree)
        model = None
        if isinstance(parts[0], Tree) and parts[0].data == "model_name":
            model = self.name(parts.pop(0))
        features, *rest = parts
        clauses = self._clauses(rest)
        allowed = ("gap", "margin", "flip", "factor", "near", "top", "share", "expect")
        self._only(clauses, allowed, "the shorthand `sensitive`")
        numbers = {
            key: (self.probability if key == "gap" else self.number)(cast(Branch, branches(clauses[key])[0]))
            for key in ("gap", "margin", "factor")
            if key in clauses
        }
        share, expect = self._share(clauses), self._expect(clauses.get("expect"))
        self._check_share(clauses, share, expect)
        return ast.Sensitive(
            model,
            self.features(cast(Branch, features)),
            numbers.get("gap"),
            numbers.get("margin"),
            self._flip(clauses.get("flip")),
            numbers.get("factor"),
            self._near(clauses.get("near")),
            self._top(clauses.get("top")),
            share,
            expect,
            span=self.span(tree),
        )

    def _monotone(self, tree: Branch) -> ast.Monotone:
        word, *names = branches(tree)
        if str(word) not in ("increasing", "decreasing"):
            remedy = "write `expect increasing(MODEL, F)` or `decreasing`, or start with `find` or `sensitive`"
            raise self.fail("S053", f"a model cannot be expected to be `{word}`", self.span(word), remedy)
        model, features, *label = names
        over = self.features(cast(Branch, features))
        if len(over.names) > 1:
            remedy = "use one feature at a time: `for each f in {..}`"
            raise self.fail("S053", "a score is increasing or decreasing in one feature", over.span, remedy)
        return ast.Monotone(
            cast("Literal['increasing', 'decreasing']", str(word)),
            self.name(model),
            over,
            self.label(branches(cast(Branch, label[0]))[0]) if label and label[0] is not None else None,
            span=self.span(tree),
        )

    def _flip(self, tree: Branch | None) -> ast.Flip | None:
        if tree is None:
            return None
        source, target = branches(tree)
        return ast.Flip(self.label(source), self.label(target), span=self.span(tree))

    def _near(self, tree: Branch | None) -> ast.Near | None:
        if tree is None:
            return None
        data, *using = branches(tree)
        kind = self.span(using[0]).text if using else "both"
        match kind:
            case "likelihood" | "cavities" | "both" | "distance":
                return ast.Near(self.name(data), kind, span=self.span(tree))
            case _:
                where = self.span(using[0])
                raise self.fail("S053", f"`{kind}` is not a measure of nearness", where, did_you_mean(kind, NEARNESS))
