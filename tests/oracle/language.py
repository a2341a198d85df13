"""Questions as nested lists, and their text.

Constraints (P and Q are names of points, F of features, `data` of tables, numbers are texts):
    ["and"|"or", [..]]  ["not", A]  ["implies", A, B]
    ["equal", P, Q, [F..]]                 a = b except {..}
    ["pin", P, data, row, [F..]]           a = row N of D except {..}
    ["compare", sum, op, sum]              sums: [[coefficient, term], ..]; terms below, ["one"] for constants
    ["category", P, F, op, label]          ["within", P, F, low, high, "[)", negated]   ["among", P, F, [..], negated]
    ["missing", P, F]                      ["abs", P, F, Q, op, number]
    ["class", P, op, C, by, number]        by: "" | "factor" | "margin"
    ["classes", P, op, Q]                  ["changes", P, Q, op, number]
    ["cavities", [P..], data, width] or ["cavities", [P..], data, width, limit or "all"]
    ["decided", D, op, outcome]  ["alike", D, op, D]      see decisions.py
Terms: ["feature", P, F] ["prob"|"margin"|"value", P, class or None] ["distance", P, Q, norm]
    ["rowdistance", P, data, row, norm] ["nearest", P, data, norm] ["likelihood", [[P, data]..]] ["changes", P, Q]
A question: name, points [[P, model]..], count (data or None), constraints, objective [sense, sum] or None, top, diverse,
expect, share (a measure), bound [op, number], `wording` (its text, if that is a shorthand that the constraints spell out),
and `loop` (the text of the `for each` that makes it, among others).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.oracle import decisions
from tests.oracle.spaces import quoted

Node = list[Any]


def measure_name(measure: str) -> str:
    """The name under which a header declares a measure."""
    return "M_" + measure.replace(" ", "_")


def text_of(question: dict[str, Any]) -> str:
    """The question as a `query` of a `.sens` file."""
    if question.get("loop"):
        return str(question["loop"])
    head = f"query {quoted(question['name'])}:"
    if question.get("explain"):
        return f"{head}\n  {explained_text(question)}{_end(question, objective=False)}\n"
    if question.get("wording"):
        return f"{head}\n  {question['wording']}{_end(question, objective=False)}\n"
    points = question["points"]
    models = {model for _, model in points}
    if len(models) == 1:
        named = ", ".join(p for p, _ in points) + f" in {points[0][1]}"
    else:
        named = ", ".join(f"{p} in {m}" for p, m in points)
    start = f"count rows of {question['count']} as {named}" if question.get("count") else f"find {named}"
    lines = "".join(f"\n    {constraint(node)}" for node in question["constraints"])
    before = "".join(decisions.declaration(made, constraint) for made in decisions.declared(question["constraints"]))
    return f"{before}{head}\n  {start} such that{lines}{_end(question, objective=True)}\n"


def explained_text(question: dict[str, Any]) -> str:
    """The body of the query."""
    asked = question["explain"]
    without = f" without {{{', '.join(map(quoted, asked['without']))}}}" if asked["without"] else ""
    few = " smallest" if asked["smallest"] else ""
    return f"explain row {asked['row']} of {asked['data']} in {question['points'][0][1]}{without}{few}"


def _end(question: dict[str, Any], *, objective: bool) -> str:
    parts = []
    if objective and question.get("objective"):
        sense, terms = question["objective"]
        parts.append(f"{sense} {sum_text(terms)}")
    if question.get("top"):
        parts.append(f"top {question['top']}" + (" diverse" if question.get("diverse") else ""))
    if question.get("expect"):
        parts.append(f"expect {question['expect']}")
    if question.get("share"):
        parts.append(f"share of {measure_name(question['share'])}")
        if question.get("bound"):
            parts.append(f"expect share {' '.join(question['bound'])}")
    return "".join(f"\n  {part}" for part in parts)


def constraint(node: Node) -> str:
    """One constraint, in brackets if it has parts."""
    kind, *rest = node
    if kind in ("and", "or"):
        return "(" + f" {kind} ".join(constraint(n) for n in rest[0]) + ")"
    if kind == "not":
        return f"not ({constraint(rest[0])})"
    if kind == "implies":
        return f"({constraint(rest[0])} implies {constraint(rest[1])})"
    return _WRITERS[kind](*rest)


def _equal(p: str, q: str, free: list[str]) -> str:
    return f"{p} = {q}" + _except(free)


def _except(free: list[str]) -> str:
    return f" except {{{', '.join(map(quoted, free))}}}" if free else ""


def _compare(left: Node, op: str, right: Node) -> str:
    return f"{sum_text(left)} {op} {sum_text(right)}"


def _within(p: str, f: str, low: str, high: str, ends: str, negated: bool) -> str:
    return f"{p}.{quoted(f)} {'not ' if negated else ''}in {ends[0]}{low}, {high}{ends[1]}"


def _among(p: str, f: str, members: list[str], negated: bool) -> str:
    return f"{p}.{quoted(f)} {'not ' if negated else ''}in {{{', '.join(members)}}}"


def _class(p: str, op: str, c: str, by: str, size: str) -> str:
    return f"class({p}) {op} {c}" + (f" by {by} {size}" if by else "")


def _typical(points: list[str], data: str, level: str | None, way: str | None) -> str:
    at = f" at {level} %" if level else ""
    return f"{', '.join(points)} typical of {data}{at}" + (f" by {way}" if way else "")


_WRITERS: dict[str, Any] = {
    "typical": _typical,
    "decided": decisions.text,
    "alike": decisions.text,
    "equal": _equal,
    "pin": lambda p, data, row, free: f"{p} = row {row} of {data}" + _except(free),
    "compare": _compare,
    "category": lambda p, f, op, label: f"{p}.{quoted(f)} {op} {label}",
    "within": _within,
    "among": _among,
    "missing": lambda p, f: f"missing({p}.{quoted(f)})",
    "abs": lambda p, f, q, op, c: f"abs({p}.{quoted(f)} - {q}.{quoted(f)}) {op} {c}",
    "class": _class,
    "classes": lambda p, op, q: f"class({p}) {op} class({q})",
    "changes": lambda p, q, op, c: f"changes({p}, {q}) {op} {c}",
    "cavities": lambda points, data, width, *limit: (
        f"{', '.join(points)} avoid cavities({data}, width = {width}" + "".join(f", limit = {n}" for n in limit) + ")"
    ),
}


def sum_text(terms: Node) -> str:
    """`2 * a.x - b.y + 3`."""
    out = ""
    for coefficient, term in terms:
        negative = coefficient.startswith("-")
        size = coefficient.lstrip("-")
        body = size if term[0] == "one" else (term_text(term) if size == "1" else f"{size} * {term_text(term)}")
        out += (f" {'-' if negative else '+'} " if out else ("-" if negative else "")) + body
    return out


def term_text(term: Node) -> str:
    kind, *rest = term
    if kind == "feature":
        return f"{rest[0]}.{quoted(rest[1])}"
    if kind in ("prob", "margin", "value"):
        return f"{kind}({rest[0]}" + (f", {rest[1]})" if rest[1] is not None else ")")
    if kind == "likelihood":
        return " * ".join(f"likelihood({p}, {data})" for p, data in rest[0])
    if kind == "typicality":
        return f"typicality({rest[0]}, {rest[1]}" + (f", {rest[2]})" if rest[2] else ")")
    if kind == "changes":
        return f"changes({rest[0]}, {rest[1]})"
    if kind == "distance":
        return f"distance({rest[0]}, {rest[1]}, {rest[2]})"
    if kind == "rowdistance":
        return f"distance({rest[0]}, row {rest[2]} of {rest[1]}, {rest[3]})"
    return f"distance({rest[0]}, nearest row of {rest[1]}, {rest[2]})"


def constructs(question: dict[str, Any]) -> Iterator[str]:
    """The names of the constructs that a question uses, for the table of coverage."""
    if question.get("explain"):
        asked = question["explain"]
        yield "explain" + (" without" if asked["without"] else "") + (" smallest" if asked["smallest"] else "")
        return
    yield "count" if question.get("count") else ("two points" if len(question["points"]) > 1 else "one point")
    if len({m for _, m in question["points"]}) > 1:
        yield "two models"
    if question.get("wording"):
        yield "shorthand"
    if question.get("near"):
        yield f"near using {question['near']}"
    if question.get("loop"):
        yield question.get("construct", "every pair of classes")
    for node in question["constraints"]:
        yield from _parts(node)
    if question.get("objective"):
        terms = question["objective"][1]
        yield f"objective {terms[0][1][0]}"
    if question.get("top"):
        yield "top N diverse" if question.get("diverse") else "top N"
    if question.get("expect"):
        yield "expect"
    if question.get("share"):
        yield f"share of {question['share'].split()[0]}"


_WITH_FORMS = (
    "cavities", "class by", "distance", "explain", "for each", "near using", "objective",
    "rowdistance", "share of", "top N", "typical",
)  # fmt: skip


def family(construct: str) -> str:
    """The construct of the language of which `constructs` names a form: `near using` of `near using both`."""
    return next((name for name in _WITH_FORMS if construct == name or construct.startswith(name + " ")), construct)


def _parts(node: Node) -> Iterator[str]:
    kind, *rest = node
    if kind in ("and", "or"):
        yield kind
        for part in rest[0]:
            yield from _parts(part)
    elif kind in ("not", "implies"):
        yield kind
        for part in rest:
            yield from _parts(part)
    elif kind == "compare":
        terms = [term for _, term in [*rest[0], *rest[2]] if term[0] != "one"]
        yield "comparison of sums" if len(terms) > 1 else "comparison"
        yield from {f"{t[0]} {t[-1]}" if "distance" in t[0] else t[0] for t in terms}
    elif kind == "cavities":
        yield f"cavities {rest[2]}" + (" limit" if len(rest) > 3 else "")
    elif kind == "typical":
        yield f"typical {rest[3] or 'chow-liu'}"
    elif kind == "class" and rest[3]:
        yield f"class by {rest[3]}" + (
            f" {rest[4]}" if rest[4] in ("0", "1") and (rest[3] == "factor") == (rest[4] == "1") else ""
        )
    else:
        yield kind
