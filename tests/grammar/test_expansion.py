"""Names for numbers, constraints and files: the tree with them and the tree without them are the same."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.grammar import trees
from tests.oracle.cases import draw_case
from tests.oracle.language import text_of
from tests.oracle.naming import with_names, write_names
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.errors import UsageError
from treesens.extensions.editor.occurrences import ROLES
from treesens.grammar.constructs.construct import Applied
from treesens.grammar.parsing.parser import parse, parse_tree, read
from treesens.grammar.printing.formatter import format_text
from treesens.grammar.printing.printer import to_text
from treesens.grammar.tree import ast

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")
budget = settings(max_examples=100, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
LABELS = (
    *((ast.ClassIs, "label"), (ast.Prob, "label"), (ast.Margin, "label"), (ast.Flip, "source"), (ast.Flip, "target")),
    *((ast.Monotone, "label"), (ast.ValueSet, "values")),
)


def _named(item: Any, named: st.DataObject, values: dict[Fraction, str], place: tuple[Any, str] = (None, "")) -> Any:
    """The tree with names in the place of some numbers, which `values` collects."""
    if isinstance(item, tuple):
        return tuple(_named(part, named, values, place) for part in item)
    if isinstance(item, ast.Number | ast.Whole) and named.draw(st.booleans()):
        name = ast.Name(values.setdefault(abs(Fraction(item.value)), f"number{len(values)}"))
        if place in LABELS and item.value >= 0:
            return name
        return ast.Constant(name, Fraction(-1 if item.value < 0 else 1), isinstance(item, ast.Whole))
    if not isinstance(item, ast.Node):
        return item
    if isinstance(item, ast.CategoryItem) and item.name is None:
        return item  # a number without a name is the category itself
    parts = {field: _named(getattr(item, field), named, values, (type(item), field)) for field in item.__match_args__}
    if isinstance(item, ast.Comparison):
        if item.operator == "=" and isinstance(item.left, ast.Number):
            return item  # `x = y` would be two points
        if isinstance(item.left, ast.FeatureOf | ast.ClassOf) and isinstance(parts["right"], ast.Constant):
            parts["right"] = parts["right"].name if parts["right"].factor > 0 else parts["right"]
    return replace(item, **parts)


@budget
@given(trees.files, st.data())
def test_numbers_with_names(tree: ast.File, data: st.DataObject) -> None:
    values: dict[Fraction, str] = {}
    named = _named(tree, data, values)
    lets = tuple(ast.Let(ast.Name(name), ast.Number(value), data.draw(st.booleans())) for value, name in values.items())
    whole = ast.File((*lets, *named.declarations))
    text = to_text(whole)
    assert parse_tree(text) == whole
    assert format_text(text) == text
    assert parse(text) == tree
    changed = {let.name.text: let.value.value for let in lets if let.replaceable and isinstance(let.value, ast.Number)}
    other = [replace(let, value=ast.Number(Fraction(7))) if let.replaceable else let for let in lets]
    assert parse(to_text(ast.File((*other, *named.declarations))), parameters=changed) == tree


def _points(item: Any, new: dict[str, str], place: Any = None) -> Any:
    """A constraint about parameters instead of points."""
    if isinstance(item, tuple):
        return tuple(_points(part, new, place) for part in item)
    if isinstance(item, ast.Name) and ROLES.get(place) == "point":
        return ast.Name(new.setdefault(item.text, f"parameter{len(new)}"))
    if not isinstance(item, ast.Node):
        return item
    return replace(item, **{f: _points(getattr(item, f), new, (type(item), f)) for f in item.__match_args__})


@budget
@given(trees.formulas, trees.formulas)
def test_constraints_with_names(first: ast.Formula, second: ast.Formula) -> None:
    definitions: list[ast.Declaration] = []
    calls: list[ast.Formula] = []
    for number, formula in enumerate((first, ast.Not(second))):
        new: dict[str, str] = {}
        body = _points(formula, new)
        parameters = tuple(map(ast.Name, new.values()))
        definitions += [ast.Define(ast.Name(f"holds{number}"), parameters, (body,))] if new else []
        arguments = tuple(map(ast.Name, new))
        calls.append(Applied(ast.Name(f"holds{number}"), arguments) if new else formula)
    query = ast.Query(ast.Name("q"), ast.Find((ast.Point(ast.Name("a")),), (first, ast.Not(second))))
    applied = replace(query, body=replace(query.body, constraints=tuple(calls)))
    whole = ast.File((*definitions, applied))
    text = to_text(whole)
    assert parse_tree(text) == whole
    assert format_text(text) == text
    assert parse(text) == ast.File((query,))


HEAD = 'model m from "m.json"\n'


def expanded(text: str) -> str:
    return to_text(parse(HEAD + text)).removeprefix(HEAD).strip()


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("let x = 1 - 2 * 0.25\nquery q: sensitive m to f gap x", "query q: sensitive m to f gap 0.5"),
        ("let y = x / 4\nlet x = 1\nquery q: find a such that a.f in {-y, x}", "query q: find a such that a.f in {-0.25, 1}"),
        ("param gap = 0.05\nquery q: sensitive m to f gap gap", "query q: sensitive m to f gap 0.05"),
        (
            "for each g in {0.05, 0.1}:\n  query q: sensitive m to f gap g",
            "query `q[0.05]`: sensitive m to f gap 0.05\nquery `q[0.1]`: sensitive m to f gap 0.1",
        ),
        (
            "query q:\n  for each n in (0.1, 0.4] by 0.1:\n    for each k in {1, 2}: find a such that a.f = n\n  top k",
            "".join(
                f"query `q[{n}, {k}]`: find a such that a.f = {n}\n  top {k}\n" for n in (0.2, 0.3, 0.4) for k in (1, 2)
            ),
        ),
        ("query q: for each n in [1, 2] by 0.75: sensitive m to f gap n",
         "query `q[1]`: sensitive m to f gap 1\nquery `q[1.75]`: sensitive m to f gap 1.75"),
        (
            "query q: for each f in features: for each g in {1, 2}: sensitive m to f margin g",
            "query `q[1]`: for each f in features: sensitive m to f margin 1\n"
            "query `q[2]`: for each f in features: sensitive m to f margin 2",
        ),
        (
            "define ok(x) =\n  prob(x) >= 0.5\n  not x.f = 1\nquery q: find a such that not ok(a) or ok(a)",
            "query q: find a such that not (prob(a) >= 0.5 and not a.f = 1) or (prob(a) >= 0.5 and not a.f = 1)",
        ),
        (
            "let d = 2\ndefine close(x, y, f, n) = abs(x.f - y.f) <= n; low(y, n)\ndefine low(x, n) = x.`2` <= -n\n"
            "query q: find a, b such that close(b, a, `my f`, d * 3)",
            "query q: find a, b such that abs(b.`my f` - a.`my f`) <= 6 and a.`2` <= -6",
        ),
        ('let Male = 3\nquery q: find a such that a.sex = "Male"', "query q: find a such that a.sex = Male"),
        (
            "let n = 3\nquery q: find a such that a = row n of d except f; a avoid cavities(d, width = n, limit = n);"
            " a typical of d at n %; class(a) = n by factor n; n <= prob(a, n)",
            "query q: find a such that a = row 3 of d except f; a avoid cavities(d, width = 3, limit = 3);"
            " a typical of d at 3 %; class(a) = 3 by factor 3; 3 <= prob(a, 3)",
        ),
        ("let p = 3\nquery q: sensitive m to f share of s expect share <= p %",
         "query q: sensitive m to f share of s expect share <= 0.03"),
        ("let n = 3\ndata d from \"d\" rows n\nfeature f: real in [0, n] stored as [-n, 1]\nfeature g: category {A = n}",
         "data d from \"d\" rows 3\nfeature f: real in [0, 3] stored as [-3, 1]\nfeature g: category {A = 3}"),
    ],
)  # fmt: skip
def test_what_names_stand_for(text: str, same: str) -> None:
    assert parse(HEAD + text) == parse(HEAD + same)
    assert expanded(text) == expanded(same)


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        ("let x = y\nlet y = x", "E122", "defined by itself"),
        ("let x = a.f", "S056", "is not a number"),
        ("let x = 1 / 3", "S056", "no decimal form"),
        ("let x = 1 / 0", "S056", "is not a number"),
        ("let x = 1e399 * 1e399", "S056", "no decimal form"),
        ("let x = 1\nlet x = 2", "E107", "twice"),
        ("define f(x) = f(x)\nquery q: find a such that f(a)", "E122", "defined by itself"),
        ("define f(x) = prob(x) >= 1\nquery q: find a such that f(a, a)", "S041", "takes 1 arguments, not 2"),
        ("define f(x) = prob(b) >= prob(x)", "E104", "not a parameter"),
        ("define f(x, y) = prob(x) >= 1", "E113", "is not used"),
        ("define f(x) = g(b) and g(x)\ndefine g(x) = prob(x) >= 1\nquery q: find a, b such that f(a)",
         "E104", "`b` is not a parameter"),
        ("define f(x) = g(x, h)\ndefine g(x, f) = x.f >= 1\nquery q: for each h in features: find a such that f(a);"
         " a = row 1 of d except h", "E114", "not known in a definition"),
        ("define f(x) = x.x >= 1", "E114", "used as a feature and a point"),
        ("define at(x) = x.f >= 1", "S016", "word of the language"),
        ("define prob(x) = x.f >= 1", "E114", "function of the language"),
        ("define f(x, n) = prob(x) >= n\nquery q: find a such that f(a, b)", "E121", "no number is called `b`"),
        ("define f(x) = prob(x) >= 1\nquery q: find a such that f(3)", "E114", "is a number here, not a point"),
        ("define f(x) = x.g >= 1\nquery q: for each g in features: find a such that f(a); a = row 1 of d except g",
         "E114", "not known in a definition"),
        ("let a = 1\nquery q: find a such that prob(a) >= 0.5", "E114", "hides the number"),
        ("let g = 1\nquery q: for each g in features: sensitive m to g", "E114", "hides the number"),
        ("query q: for each g in {1, 2}: for each g in features: sensitive m to g gap g", "E114", "hides another"),
        ("query q: for each g in {1}: find g such that g.f >= g", "E114", "hides another"),
        ("query q: for each g in {1, 2}: sensitive m to f", "E113", "is not used"),
        ("query q: for each g in {1, f}: sensitive m to f gap g", "E121", "over numbers or over features"),
        ("query q: for each g in [1, 0] by 1: sensitive m to f gap g", "E301", "is empty"),
        ("query q: for each g in [0, 1] by 0: sensitive m to f gap g", "E301", "above 0"),
        ("query q: for each g in [0, inf] by 1: sensitive m to f gap g", "E301", "two ends"),
        ("query q: for each g in [0, 1e9] by 1: sensitive m to f gap g", "E220", "too many"),
        ("query q: for each g, h in {1, 2}: sensitive m to f gap g", "E221", "one parameter"),
        ("query q: for each g in {0.5, 1}: find a such that prob(a) >= 1; a = row g of d", "S008", "`0.5`"),
        ("query q: find a such that probb(a) >= 0.5", "S040", "unknown function `probb`"),
        ("query q: find a such that ok(foo(a))\ndefine ok(x) = prob(x) >= 1", "S040", "unknown function `foo`"),
        ("query q: find a such that (probb(a)) >= 0.5 or prob(a) >= 1", "S040", "unknown function `probb`"),
        ("query q: find a such that aproved(a)\ndefine approved(x) = prob(x) >= 1", "S040", "`aproved`"),
        ("query q: sensitive m to f gap g", "E121", "no number is called `g`"),
        ("query q: find a such that prob(a) >= cutof\nlet cutoff = 1", "S033", "does not belong to a point"),
        ('include "x.sens"', "S055", "without a path"),
    ],
)  # fmt: skip
def test_mistakes(text: str, code: str, part: str) -> None:
    with pytest.raises(DiagnosticsError, match=part) as error:
        parse(HEAD + text)
    assert {item.code for item in error.value.diagnostics} == {code}


def test_definitions_that_grow_without_end_are_refused() -> None:
    doubled = "".join(f"define f{n + 1}(x) = f{n}(x) and f{n}(x)\n" for n in range(40))
    with pytest.raises(DiagnosticsError, match="S007"):
        parse(f"define f0(x) = prob(x) >= 1\n{doubled}query q: find a such that f40(a)")
    nested = "".join(f"define f{n + 1}(x) = not f{n}(x)\n" for n in range(2000))
    with pytest.raises(DiagnosticsError, match="S007"):
        parse(f"define f0(x) = prob(x) >= 1\n{nested}query q: find a such that f2000(a)")


def test_a_message_shows_every_place_of_a_use() -> None:
    text = "define is(x, n) = x = row n of d\n"
    text += "query q: find a such that is(a, 0.5)\n"
    with pytest.raises(DiagnosticsError) as error:
        parse(text, "q.sens")
    shown = str(error.value)
    assert "q.sens:2:33: error[S008]" in shown
    assert "used here: q.sens:1:27" in shown
    assert "used here: q.sens:2:27" in shown


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(20, 28))
def test_questions_of_the_oracle_with_names(seed: int) -> None:
    """The oracle judges the answers to the text with names, which has the tree of the text without."""
    case = draw_case(seed)
    text = case.header() + "\n" + "\n".join(dict.fromkeys(text_of(q) for q in case.questions))
    written, naming = write_names(text)
    named = parse(written, parameters=naming.given)
    old = [naming.swept.get(query.name.text, query.name.text) for query in named.queries]
    queries = dict(zip(named.queries, old, strict=True))
    found = [replace(d, name=ast.Name(queries[d])) if isinstance(d, ast.Query) else d for d in named.declarations]
    assert tuple(found) == parse(text).declarations
    assert parse(with_names(text)[0]) == named


# --- files and parameters ---------------------------------------------------------------------------------------------


def test_included_files(tmp_path: Path) -> None:
    (tmp_path / "domains" / "parts").mkdir(parents=True)
    (tmp_path / "q.sens").write_text(
        'include "domains/d.sens"\ninclude "domains/parts/n.sens"\nquery q: sensitive m to f gap n\n'
    )
    (tmp_path / "domains" / "d.sens").write_text(
        'include "parts/n.sens"\nmodel m from "m.json"\ndata d from "/d.csv" rows n\n'
    )
    (tmp_path / "domains" / "parts" / "n.sens").write_text(
        'param n = 2\ndefine inside(x) = x avoid cavities("c.json")\nquery r: find a such that inside(a)\n'
    )
    same = f'model m from "{Path("domains", "m.json")}"\ndata d from "/d.csv" rows 5\n'
    same += f'query r: find a such that a avoid cavities("{Path("domains", "parts", "c.json")}")\n'
    same += "query q: sensitive m to f gap 5\n"
    found = read(tmp_path / "q.sens", {"n": 5})
    assert set(found.declarations) == set(parse(same).declarations)
    assert [[(name, number.value) for name, number in query.parameters] for query in found.queries] == [[("n", 5)]] * 2


def test_mistakes_in_included_files(tmp_path: Path) -> None:
    for name, text in (
        ("one", 'include "two.sens"\n'),
        ("two", 'include "one.sens"\nmodel m form "m"\n'),
        ("three", 'include "no"'),
    ):
        (tmp_path / f"{name}.sens").write_text(text)
    with pytest.raises(DiagnosticsError) as error:
        read(tmp_path / "one.sens")
    places = {(one.code, one.span.place.rsplit("/", 1)[1]) for one in error.value.diagnostics if one.span}
    assert places == {("S055", "two.sens:1:9"), ("S015", "two.sens:2:9")}
    with pytest.raises(DiagnosticsError, match=r"three.sens:1:9: error\[S063\]: the file cannot be read"):
        read(tmp_path / "three.sens")


def test_parameters() -> None:
    text = "param gap = 0.05\nlet half = `gap` / 2\nquery q: sensitive m to f gap half\n"
    text += "query p: sensitive m to f margin 1\n"
    for value in (0.1, "0.1", "1e-1", Fraction(1, 10)):
        found = parse(text, parameters={"gap": value})
        assert to_text(found) == to_text(
            parse("query q: sensitive m to f gap 0.05\nquery p: sensitive m to f margin 1\n")
        )
        assert [bool(query.parameters) for query in found.queries] == [True, False]
    for wrong, part in (({"gpa": 1}, "did you mean `gap`"), ({"half": 1}, "write `param half`")):
        with pytest.raises(UsageError, match="no parameter") as error:
            parse(text, parameters=wrong)
        assert part in (error.value.remedy or "")
    for value in ("x", "inf", "nan", "", "1/3", True, None, float("inf"), [1], Fraction(1, 3), "1e999", "0x1"):
        with pytest.raises(UsageError, match="not a number"):
            parse(text, parameters={"gap": value})
