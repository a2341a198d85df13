"""Makes a failing case smaller, as long as the same kind of failure stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.oracle.asking import run_case
from tests.oracle.brute import World
from tests.oracle.cases import Case, given
from tests.oracle.judge import Finding
from tests.oracle.language import Node
from tests.oracle.models import Model, evaluate
from tests.oracle.spaces import Feature, complete, quoted


def shrunk(case: Case, finding: Finding, seconds: float = 20.0) -> tuple[Case, Finding]:
    """The smallest case found in the time, with its finding."""
    end = time.monotonic() + seconds
    best = replace(case, questions=[finding.question])
    kept = fails(best, finding)
    if kept is None:
        return case, finding
    smaller = True
    while smaller and time.monotonic() < end:
        smaller = False
        for make in candidates(best):
            if time.monotonic() > end:
                break
            try:
                candidate = make()
            except (ValueError, IndexError, KeyError):
                continue
            found = fails(candidate, finding)
            if found is not None:
                best, kept, smaller = candidate, found, True
                break
    return best, kept


def fails(case: Case, like: Finding) -> Finding | None:
    """The finding of the same kind that the only question of a case still has."""
    for judged in run_case(case, like.options):
        for found in judged.findings:
            if found.kind == like.kind and (like.kind != "error" or found.detail[:40] == like.detail[:40]):
                return found
    return None


def candidates(case: Case) -> Iterator[Callable[[], Case]]:
    """Smaller cases: fewer constraints, fewer trees, fewer values, fewer rows."""
    question = case.questions[0]
    for smaller in simpler(question):
        yield lambda q=smaller: replace(case, questions=[q])
    for name, model in case.models.items():
        if model.shorten is not None and model.trees > 1:
            for count in range(1, model.trees):
                yield lambda n=name, c=count: rebuilt(case, models={**case.models, n: shortened(case.models[n], c)})
    for i, f in enumerate(case.features):
        if case.domain is not None:
            continue  # the values of a column are not all of its range
        for fewer in narrower(f):
            yield lambda i=i, fewer=fewer: rebuilt(case, features=[*case.features[:i], fewer, *case.features[i + 1 :]])
    for name in case.frames:
        yield lambda n=name: fewer_rows(case, n)


def shortened(model: Model, trees: int) -> Model:
    """The model with the first trees only."""
    assert model.shorten is not None
    return replace(model.shorten(trees), coded=model.coded)


def simpler(question: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The question without one of its parts."""
    if question.get("wording"):
        yield {**question, "wording": None}
    for key in ("expect", "top", "objective"):
        if question.get(key):
            yield {**question, key: None}
    constraints = question["constraints"]
    for k, node in enumerate(constraints):
        if len(constraints) > 1:
            yield {**question, "constraints": constraints[:k] + constraints[k + 1 :]}
        for part in parts(node):
            yield {**question, "constraints": [*constraints[:k], part, *constraints[k + 1 :]]}


def parts(node: Node) -> Iterator[Node]:
    kind, *rest = node
    if kind in ("and", "or"):
        yield from rest[0]
    elif kind in ("not", "implies"):
        yield from rest


def narrower(feature: Feature) -> Iterator[Feature]:
    """The feature with a value less at one end (integers), or without one category."""
    whole = [k for k, v in enumerate(feature.typed) if v is not None]
    if feature.group is not None or feature.unit is not None or len(whole) <= 2 or feature.kind == "real":
        return
    ends = (
        [whole[1:], whole[:-1]]
        if feature.kind == "integer"
        else [whole[:k] + whole[k + 1 :] for k in range(len(whole))]
    )
    for kept in ends:
        yield with_values(feature, kept)


def with_values(feature: Feature, kept: list[int]) -> Feature:
    """The feature over some of its values, declared anew."""
    end = [len(feature.typed) - 1] if feature.missing else []
    typed = tuple(feature.typed[k] for k in [*kept, *end])
    more = " or missing" if feature.missing else ""
    if feature.kind == "integer":
        text = f"integer in [{typed[0]}, {typed[len(kept) - 1]}]"
        width: float | None = float(typed[len(kept) - 1] - typed[0])
    else:
        coded = feature.codes != "label" and isinstance(feature.typed[0], str)
        shown = [str(v) if str(v).isdigit() else quoted(str(v)) for v in typed if v is not None]
        text = (
            "category {"
            + ", ".join(f"{s} = {feature.stored[k]:g}" if coded else s for s, k in zip(shown, kept, strict=True))
            + "}"
        )
        width = 1.0
    user = tuple(feature.user[k] for k in [*kept, *end])
    if feature.kind == "category":
        user = tuple(float(n) for n in range(len(kept))) + tuple(float("nan") for _ in end)
    stored = tuple(feature.stored[k] for k in [*kept, *end])
    return replace(feature, typed=typed, user=user, stored=stored, width=width, declaration=text + more)


def rebuilt(case: Case, *, features: list[Feature] | None = None, models: Any = None) -> Case:
    """The case over other features or models, with tables that stay as they are."""
    features, models = features or case.features, models or case.models
    space = complete(features)
    points = {name: evaluate(model, space) for name, model in models.items()}
    tables = {name: replaced(rows, case.features, features, models) for name, rows in case.world.tables.items()}
    return replace(case, features=list(features), models=models, world=World(space, points, tables))


def replaced(rows: Any, before: list[Feature], features: list[Feature], models: Any) -> Any:
    """A table's places and values in a smaller domain; a category that is no longer there has a number of its own."""
    places, user = rows.places.copy(), rows.user.copy()
    for i, (old, new) in enumerate(zip(before, features, strict=True)):
        if old is new:
            continue
        for r in range(len(places)):
            value = old.typed[places[r, i]] if places[r, i] >= 0 else None
            if places[r, i] < 0 or (value is None and not new.missing):
                continue
            place = new.position(value)
            places[r, i] = -1 if place is None else place
            if new.kind == "category":
                user[r, i] = 100.0 + old.typed.index(value) if place is None else new.user[place]
    del models
    inside = rows.inside & (places >= 0).all(axis=1)
    return replace(rows, user=user, places=places, inside=inside)


def fewer_rows(case: Case, name: str) -> Case:
    """The case with half of the rows of a table, but no row that the question names."""
    if name == case.domain:
        raise ValueError("domains come from it")
    rows = case.world.tables[name]
    needed = max(
        [
            n + 1
            for data, n in named_rows(case.questions[0]["constraints"], case.questions[0]["objective"])
            if data == name
        ],
        default=1,
    )
    count = max(needed, len(rows.user) // 2)
    if count >= len(rows.user):
        raise ValueError("no row may go")
    cut = replace(
        rows, user=rows.user[:count], places=rows.places[:count], inside=rows.inside[:count],
        cells={m: c[:count] for m, c in rows.cells.items()}, stored=[s[:count] for s in rows.stored],
    )  # fmt: skip
    frame = case.frames[name].iloc[:count]
    return replace(
        case,
        world=World(case.world.space, case.world.points, {**case.world.tables, name: cut}),
        frames={**case.frames, name: frame},
        limits={k: v for k, v in case.limits.items() if k != name},
        sources={**case.sources, name: given(frame, case.forms[name], name)},
    )


def named_rows(*nodes: Any) -> Iterator[tuple[str, int]]:
    for node in nodes:
        if not isinstance(node, list) or not node:
            continue
        if node[0] in ("pin", "rowdistance"):
            yield node[2], int(node[3])
        for part in node:
            if isinstance(part, list):
                yield from named_rows(part)


def size_of(case: Case) -> dict[str, int]:
    """How large a case is, for reports."""
    return {
        "combinations": int(np.prod([len(f.typed) for f in case.features])),
        "trees": sum(m.trees for m in case.models.values()),
        "rows": sum(len(r.user) for r in case.world.tables.values()),
    }
