"""From the words of a claim back to its statement: what a reader understands is what the checker has checked.

`reading.py` reads the words, and shares nothing with what prints them. A number or a word that is another one is another
statement, or is no sentence; and what is read from changed words of a certificate is accepted only if it is true.
"""

from __future__ import annotations

import copy
import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from treesens.extensions.treesens_verify.words import in_full

from tests.extensions.certify.made import Made, make
from tests.extensions.certify.mutations import judge
from tests.extensions.certify.reading import FREE, Unread, read
from tests.extensions.certify.test_words import FURTHER, Document, changes, claims, model_of, plain, said, statement
from treesens.extensions import treesens_verify as checker

READ = [*claims()]
"""Claims of every kind. Not read are curves and cavities in statements."""


def in_order(value: Any) -> Any:
    """The normal form of what is read, and of what is checked: numbers as floats, and lists that have no order sorted."""
    if isinstance(value, dict):
        return {k: sorted(map(in_order, v), key=json.dumps) if k == "domain" else in_order(v) for k, v in value.items()}
    return [in_order(one) for one in value] if isinstance(value, list) else plain(value)


def allowed(stated: Document) -> Document:
    """A set without fields that say nothing."""
    found = {name: stated[name] for name in ("runs", "values", "missing") if stated.get(name)}
    return {**found, "whole": True} if stated.get("whole") and stated.get("runs") else found


def lists(one: Document) -> Document:
    """Rows, sets, orders and clauses; a clause of one set of a feature that has sets is one more set."""
    single = {(p, f) for p, f, _ in one["domain"]}
    clauses = [[[p, f, allowed(s)] for p, f, s in clause] for clause in one["clauses"]]
    more = [clause[0] for clause in clauses if len(clause) == 1 and tuple(clause[0][:2]) in single]
    return {
        "rows": one["rows"],
        "domain": [*([p, f, allowed(s)] for p, f, s in one["domain"]), *more],
        "orders": one["orders"],
        "clauses": [clause for clause in clauses if clause[0] not in more] if all(clauses) else clauses,
        **further(one),
    }


def further(one: Document) -> Document:
    return {
        "changes": [{**x, "features": sorted(x["features"])} for x in one.get("changes", [])],
        "apart": [{**x, "features": sorted(x["features"])} for x in one.get("apart", [])],
        "values": [{**x, "terms": [term(*t) for t in x["terms"]]} for x in one.get("values", [])],
        "chances": one.get("chances", []),
        "either": [list(map(lists, ways)) for ways in one.get("either", [])],
    }


def term(c: str, p: int, f: int, *distance: Any) -> list[Any]:
    if not distance:
        return [c, p, f]
    other, unit, power = [*distance, None, 1][: len(distance)] + [None, 1][len(distance) - 1 :]
    return [c, p, f, {"point": other["point"]} if "point" in other else {"value": other.get("value")}, unit, power]


def stated_models(stated: list[Document], models: list[Any]) -> list[Document]:
    facts = (("total", "total"), ("average", "average"), ("learnt", "learnt"), ("made_from", "made_from"))
    return [{**one, **{name: getattr(m, at) for name, at in facts}} for one, m in zip(stated, models, strict=True)]


def expected(statement: Document, models: list[Any] | None = None, **instead: Any) -> Document:
    """What the words of a statement have to say."""
    stated = {**statement, **instead}
    known = [model_of(one) for one in stated["models"]] if models is None else models
    points = []
    for p, point in enumerate(stated["points"]):
        model, listed = known[point["model"]], {f for q, f, _ in stated["domain"] if q == p}
        free = set(range(len(model.features))) - listed
        kinds = (free - set(model.categories), free & set(model.categories), listed & set(model.categories))
        points.append({**point, "free": {words: sorted(k) for words, k in zip(FREE, kinds, strict=True) if k}})
    same = stated["same_except"] if len(points) == 2 else None
    return {
        "models": stated_models(stated["models"], known),
        "points": points,
        "same_except": same if same is None else sorted(same),
        **lists({**stated, **stated.get("further", {})}),
    }


def meant(claim: Document, parts: list[Document]) -> Document:
    """What a claim of every kind has to say, from the claim and the statements of its parts."""
    kind = claim["kind"]
    stated = [part["statement"] for part in parts]
    if kind == "same":
        return {"says": "same", "models": stated_models(claim["models"], list(map(model_of, claim["models"])))}
    if kind == "equal":
        return {"says": "equal", "statement": expected(stated[0], rows=[])}
    if kind == "between" and None in (claim["reached"], claim["beyond"]):
        return {"says": "reached" if claim["beyond"] is None else "beyond", "statement": expected(stated[0])}
    if kind == "between":
        ends = [stated[claim[end]]["rows"] for end in ("reached", "beyond")]
        moved = [pair for pair in zip(*ends, strict=True) if pair[0] != pair[1]]
        kept = [row for row, other in zip(*ends, strict=True) if row == other]
        reached, beyond = ([pair[i] for pair in moved] for i in range(2))
        base = expected(stated[0], rows=kept)
        return {"says": "between", "statement": base, "reached": reached, "beyond": beyond}
    if kind == "border":
        least = sorted(sorted(part["statement"]["same_except"]) for part in parts if part["claim"] == "found")
        base = expected(stated[0], same_except=None)
        return {"says": "border", "features": sorted(claim["features"]), "least": least, "statement": base}
    if kind in ("reason", "smallest", "change"):
        return of_row(claim, stated)
    if kind == "cover":
        return {"says": "cover", "parts": 2, "whole": {"says": "none", "statement": in_all(stated[0], 1)}}
    if kind == "cases":
        return {"says": "none", "statement": expected({**claim["whole"]["statement"], **further_of(claim)})}
    if kind == "rows":
        mine = [stated[i] for i in claim["parts"]]
        return counted("rows", mine, [one["domain"][-3:] for one in mine], in_all(stated[0], 3))
    if kind == "share":
        whole = expected({**claim["whole"]["statement"], **further_of(claim)})
        measure = [draw(*one) for one in claim["measure"]]
        return {"says": "share", "least": 0, "most": 1, "varied": [], "measure": measure, "statement": whole}
    rows = claim["rows"]
    by = "values" if "values" in rows[0] else "sets"
    whole = expected({**claim["whole"]["statement"], **further_of(claim)})
    return counted(by, rows, [one[by] for one in rows], whole)


def draw(feature: int | None, sets: list[list[Any]], after: int | None = None, chances: Any = None) -> Document:
    mine = [[allowed(one), weight, *(group or [0])] for one, weight, *group in sets]
    return {"feature": feature, "sets": mine, "after": after, "chances": chances or [["1"]]}


def further_of(claim: Document) -> Document:
    return {name: claim["whole"].get(name, []) for name in ("either", "changes", "apart", "values", "chances")}


def in_all(statement: Document, last: int) -> Document:
    """A statement without the sets that are those of a part."""
    return expected(statement, domain=statement["domain"][:-last])


def counted(says: str, rows: list[Any], listed: list[Any], question: Document) -> Document:
    """That all of some rows answer."""
    from hashlib import sha256

    texts = [json.dumps(one, separators=(",", ":"), sort_keys=True) for one in listed]
    facts = {"rows": len(rows), "have": len(rows), "different": len(set(texts)), "of": len(rows)}
    digest = sha256(f"[{','.join(texts)}]".encode()).hexdigest()
    return {"says": says, **facts, "list": digest, "statement": question}


def of_row(claim: Document, stated: list[Document]) -> Document:
    """What is claimed of a row: the values that it keeps, in one case."""
    pins = dict(claim["row"])
    count = len(claim["kept"][0])
    base = expected(stated[0], rows=[], domain=stated[0]["domain"][: len(stated[0]["domain"]) - count])
    case = {"rows": stated[0]["rows"], "places": [], "free": []}
    of = claim["features"] if claim["kind"] != "change" else list(pins)
    values = [[0, f, allowed(pins[f])] for f in sorted(of)]
    if claim["kind"] == "change":
        return {"says": "change", "statement": base, "values": values, "case": case, "features": claim["features"]}
    found = {"says": claim["kind"], "statement": base, "values": values, "cases": [case]}
    return {**found, "fewer": len(of) - 1} if claim["kind"] == "smallest" else found


NAMES = ["f0", "sum of all", "caf\u00e9"]


@pytest.mark.parametrize("kind", READ)
def test_what_is_read_is_what_is_claimed(kind: str) -> None:
    claim, parts = claims()[kind]
    lines = said(claim, parts)
    assert lines is not None
    assert in_order(read(lines, NAMES)) == in_order(meant(claim, parts))


def test_inputs_are_read() -> None:
    """What a certificate of inputs prints: its statement, and every value, in the numbers of the model."""
    stated = statement(2, further={**FURTHER, "cavities": []})
    inputs: list[list[float | None]] = [[0.1, None, 3.0], [-1.5e-7, 2.0**60, 0.0]]
    problem = checker.core.Problem(stated, list(map(model_of, stated["models"])), found=True)
    lines = [*checker.in_words(problem), *in_full(problem, inputs)]
    values = [[p, [list(one) for one in enumerate(point)]] for p, point in enumerate(inputs)]
    meaning = {"says": "found", "statement": expected(stated), "inputs": values}
    mine = in_order(read(lines, NAMES))
    assert mine == in_order(meaning)
    found = [text for text in other_words("\n".join(lines[-2:])) if in_order(understood([*lines[:-2], text])) == mine]
    assert found == []


def understood(lines: list[str]) -> Document | None:
    """What lines say, if they say something."""
    try:
        return read("\n".join(lines).split("\n"), NAMES)
    except Unread:
        return None


@pytest.mark.parametrize("kind", ["between", "cases"])
def test_every_change_that_is_accepted_is_read(kind: str) -> None:
    """Other statements as well: empty lists, other names, sets and rows."""
    claim, parts = claims()[kind]
    count = 0
    for other, its_parts in itertools.islice(changes(claim, parts), 0, None, 12):
        lines = said(other, its_parts)
        if lines is not None:
            count += 1
            assert in_order(read(lines, NAMES)) == in_order(meant(other, its_parts)), "\n".join(lines)
    assert count > 20


WORD = re.compile(r"[0-9a-f]{64}|-?\d+(?:\.\d+)?|[A-Za-z]+|<=|>=|[<>^]")
OTHERS = {
    "<=": "<", ">=": ">", "<": "<=", ">": ">=", "a": "b", "b": "a", "all": "no", "some": "no", "none": "some", "at": "not",
    "most": "least", "least": "most", "or": "and", "and": "or", "from": "to", "up": "down", "missing": "present",
    "reached": "missed", "any": "no", "f0": "f1", "No": "These",
}  # fmt: skip


def other_words(text: str) -> Iterator[str]:
    """The text with one number or word that is another one."""
    for found in WORD.finditer(text):
        word = found.group()
        if len(word) == 64:
            new = word[1:] + ("0" if word[0] != "0" else "1")
        elif re.fullmatch(r"-?\d+", word):
            new = str(int(word) + 1)
        elif re.fullmatch(r"-?\d+\.\d+", word):
            new = str(float(word) + 0.25)
        else:
            new = OTHERS.get(word, word + "s")
        yield text[: found.start()] + new + text[found.end() :]


@pytest.mark.parametrize("kind", READ)
def test_every_other_word_is_another_claim(kind: str) -> None:
    claim, parts = claims()[kind]
    lines = said(claim, parts)
    assert lines is not None
    mine, text, readable = in_order(read(lines, NAMES)), "\n".join(lines).replace('"a file"', '"?"'), 0
    for other in other_words(text):
        try:
            found = read(other.split("\n"), NAMES)
        except Unread:
            continue
        readable += 1
        assert in_order(found) != mine, other
    assert readable > 5


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(1, tmp_path_factory.mktemp("reading"), gaps=("3.5",))


def words_of(document: Document, data: bytes) -> list[str]:
    models = [checker.read_model(data, stated) for stated in document["statement"]["models"]]
    return list(checker.in_words(checker.core.Problem(document["statement"], models)))


def restated(found: Document) -> Document:
    """The statement of a certificate, from what was read."""
    stated = {name: found[name] for name in ("same_except", "domain", "rows", "orders", "clauses")}
    models = [{name: one[name] for name in ("sha256", "format", "trees", "base")} for one in found["models"]]
    points = [{name: one[name] for name in ("name", "model")} for one in found["points"]]
    return {"models": models, "points": points, **stated}


def readable(lines: list[str], names: list[str], mine: Document) -> Iterator[tuple[str, Document]]:
    """Other statements of `none` in changed words."""
    for text in other_words("\n".join(lines)):
        try:
            found = read(text.split("\n"), names)
        except Unread:
            continue
        if found["says"] == "none" and restated(found["statement"]) != restated(mine):
            yield text, found["statement"]


def test_what_is_read_is_accepted_only_if_it_is_true(made: Made) -> None:
    """The statement that is read takes the place of the statement of a certificate; judged by the leaves of XGBoost."""
    dice, names, known = random.Random(1), [f"f{i}" for i in range(3)], dict[str, bool]()
    seen = Counter[str]()
    for document in made.documents.values():
        lines = words_of(document, made.data)
        found = read(lines, names)
        again = {**document, "statement": restated(found["statement"])}
        assert found["says"] == "none"
        assert judge(made, copy.deepcopy(again), known) == "accepted, and true"
        stated = {json.dumps(restated(one)): text for text, one in readable(lines, names, found["statement"])}
        for other in dice.sample([*stated], min(4, len(stated))):
            outcome = judge(made, {**document, "statement": json.loads(other)}, known)
            assert outcome != "accepted, and false", stated[other]
            seen[outcome] += 1
    assert seen["rejected"] > 10, seen
