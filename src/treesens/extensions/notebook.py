"""Shows answers in a notebook as HTML for pages of any style; all text from files is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from treesens.extensions.answers.reason_words import reason_words
from treesens.python.answer import Answer, Answers, Explanations, Info
from treesens.report.changes import Names, change_words, changed_features, row_of
from treesens.report.explain import Explanation
from treesens.visible import visible

_PLAIN = ("format", "task", "trees", "leaves", "link", "number_type", "library_version", "sha256")


def html(shown: object) -> str | None:
    """The HTML of a result of the Python interface; None for other objects."""
    match shown:
        case Answer(question=question, result=result):
            row = None if result.witness is None else row_of(question, result.witness)
            changed = change_words(shown.to_dict(), row, Names.of(question.models[0]))
            return answer_html(shown.to_dict(), question.query.space.names, shown.notes, changed)
        case Answers():
            return answers_html([answer.to_dict() for answer in shown.values()], shown.errors)
        case Info():
            return model_html(shown)
        case Explanation():
            lines = "".join(f"<li><code>{text(line)}</code></li>" for line in shown.formulas)
            return f"<p><b>{text(shown.record['query'])}</b>: {text(shown.sentence)}</p><ul>{lines}</ul>"
        case Explanations():
            return "".join(html(one) or "" for one in shown.values())
    return None


def text(value: Any) -> str:
    """A value for display: numbers have their significant digits, and names are escaped."""
    if value is None:
        return "missing"
    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
    return escape(visible(shown, lines=True))


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], marked: Sequence[bool] = ()) -> str:
    """A table with the rows in `marked` highlighted; the first cell of each row is a header cell."""
    top = "".join(f'<th scope="col">{text(name)}</th>' for name in head)
    body = []
    for number, (first, *cells) in enumerate(rows):
        style = (
            ' style="font-weight:bold;background:#fff3cd;color:#222"' if number < len(marked) and marked[number] else ""
        )
        rest = "".join(f"<td>{cell if isinstance(cell, Markup) else text(cell)}</td>" for cell in cells)
        body.append(f'<tr{style}><th scope="row">{text(first)}</th>{rest}</tr>')
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table>"


class Markup(str):
    """Text that is already HTML."""


def answer_html(
    record: Mapping[str, Any], features: Sequence[str], notes: Sequence[str] = (), changed: str = ""
) -> str:
    """The HTML of an answer: verdict, the sentence `changed`, objective, count, points, scores, nearest row, notes."""
    lines = [f"<b>{text(record['query'])}</b>: {text(record['verdict'])} ({text(record['proof'] or record['reason'])})"]
    if changed:
        lines.append(text(changed))
    goal = record.get("objective")
    if goal:
        bound = "no bound" if goal["bound"] is None else f"bound {text(goal['bound'])}"
        lines.append(f"{text(goal['sense'])} {text(goal['kind'])}: {text(goal['value'])} ({bound})")
    count = record.get("count")
    if count:
        more = "" if count["at_least"] == count["at_most"] else f" to {count['at_most']:,}"
        lines.append(f"{count['at_least']:,}{more} of {count['total']:,} rows")
    why = record.get("explanation")
    if why:
        lines += [text(line) for line in reason_words(why).splitlines()]
    near = record.get("nearest_row")
    if near:
        lines.append(f"nearest row: {near['index']} of {text(near['data'])}, {text(near['distance_l2'])} away")
    head = "".join(f"<p>{line}</p>" for line in lines)
    below = "".join(f"<p><small>{text(note)}</small></p>" for note in notes)
    return head + (points_html(record, features) if record.get("points") else "") + below


def points_html(record: Mapping[str, Any], features: Sequence[str]) -> str:
    """The points of a record side by side, with changes marked and with scores; equal features are collapsed."""
    points, scores = record["points"], record["scores"]
    names = list(points)
    changed = set(changed_features(points)) if len(names) > 1 else set()
    order = [f for f in features if f in changed] or list(features)
    equal = [f for f in features if f not in order]
    below = [[f"→ {key}", *(_score(scores[name].get(key)) for name in names)] for key in scores[names[0]]]
    rows = [[f, *(points[name][f] for name in names)] for f in order] + below
    shown = table(["", *names], rows, [f in changed for f in order])
    if not equal:
        return shown
    alike = table(["", "both" if len(names) == 2 else "all"], [[f, points[names[0]][f]] for f in equal])
    return f"{shown}<details><summary>{len(equal)} features are equal</summary>{alike}</details>"


def _score(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Markup("<br>".join(f"{text(name)}: {text(one)}" for name, one in value.items()))
    return value


def answers_html(records: Sequence[Mapping[str, Any]], errors: Mapping[str, Any]) -> str:
    """A table with a line per answer, followed by the errors."""
    rows = [
        [r["query"], r["verdict"], r["proof"] or r["reason"], (r.get("objective") or {}).get("value", "")]
        for r in records
    ]
    failed = "".join(f"<p><b>{text(name)}</b>: {text(error)}</p>" for name, error in errors.items())
    return table(["query", "verdict", "why", "objective"], rows) + failed


def model_html(facts: Mapping[str, Any]) -> str:
    """Two tables: the facts about a model, and its features."""
    plain = [[name.replace("_", " "), facts[name]] for name in _PLAIN if facts[name] is not None]
    plain.insert(3, ["depth", f"at most {facts['depth']['max']}, {facts['depth']['mean']} on average"])
    if facts["classes"]:
        plain.insert(2, ["classes", ", ".join(map(str, facts["classes"]))])
    features = sorted(facts["features"], key=lambda one: -one["splits"])
    lines = [[f["name"], f["kind"], f["splits"], f["trees"], _range(f)] for f in features]
    notes = "".join(f"<p>{text(note)}</p>" for note in facts["notes"])
    head = ["feature", "kind", "nodes that ask for it", "trees", "cuts or categories"]
    return table(["", "model"], plain) + table(head, lines) + notes


def _range(feature: Mapping[str, Any]) -> str:
    if feature["labels"]:
        return ", ".join(map(str, feature["labels"]))
    ends = feature["range_of_cuts"]
    return "" if ends is None else f"{feature['guards']} from {ends[0]:.6g} to {ends[1]:.6g}"


def columns_html(columns: Mapping[str, Sequence[Any]]) -> str:
    """Columns of equal length as a table."""
    return table(list(columns), [["" if v is None else v for v in row] for row in zip(*columns.values(), strict=True)])
